//! The beginning of a request's prompt as blocks: equal beginnings have equal first blocks.

use crate::limits::{BLOCK_BYTES, MAX_BLOCKS};
use serde_json::Value;
use std::hash::{DefaultHasher, Hash, Hasher};

/// Fields that are a prompt, in the order in which templates render them, by the names of the protocols that servers speak.
const FIELDS: [&str; 9] =
    ["tools", "instructions", "system", "messages", "prompt", "input_prefix", "input", "query", "contents"];

/// The blocks of a request's prompt, at most 64 of 128 bytes each; each stands for all of the prompt up to its end, and for
/// the model. A body that is no JSON object, or has no prompt of a block, has none.
pub fn prompt_blocks(body: &[u8]) -> Vec<u64> {
    let Ok(Value::Object(fields)) = serde_json::from_slice(body) else { return Vec::new() };
    let mut text = String::new();
    for field in FIELDS {
        if let Some(value) = fields.get(field).filter(|value| !value.is_null()) {
            text.push_str(field);
            append(value, &mut text);
        }
        if text.len() >= BLOCK_BYTES * MAX_BLOCKS {
            break;
        }
    }
    let mut chain = DefaultHasher::new();
    fields.get("model").and_then(Value::as_str).hash(&mut chain);
    let blocks = text.as_bytes().chunks_exact(BLOCK_BYTES).take(MAX_BLOCKS);
    let of = |block: &[u8]| {
        block.hash(&mut chain);
        chain.finish()
    };
    blocks.map(of).collect()
}

/// What a value says, without what stands behind the last of a list: a conversation that goes on begins as it was.
fn append(value: &Value, text: &mut String) {
    match value {
        Value::String(words) => {
            text.push('\u{1}');
            text.push_str(words);
        }
        Value::Array(values) => values.iter().for_each(|value| append(value, text)),
        Value::Object(fields) => {
            text.push('\u{2}');
            for (name, value) in fields {
                text.push_str(name);
                append(value, text);
            }
        }
        other => text.push_str(&other.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use super::prompt_blocks;
    use serde_json::json;

    fn blocks(body: &serde_json::Value) -> Vec<u64> {
        prompt_blocks(body.to_string().as_bytes())
    }

    #[test]
    fn a_conversation_that_goes_on_begins_with_the_blocks_of_before() {
        let (long, other) = ("x".repeat(700), "y".repeat(700));
        let first = json!({"model": "m", "messages": [{"role": "user", "content": long}]});
        let next = json!({"temperature": 0, "model": "m", "messages": [
            {"role": "user", "content": long}, {"role": "assistant", "content": other}, {"role": "user", "content": "and?"}]});
        let (first, next) = (blocks(&first), blocks(&next));
        assert!(first.len() == 5 && next.len() > first.len() && next.starts_with(&first), "{first:?} {next:?}");
    }

    #[test]
    fn what_begins_otherwise_has_other_blocks() {
        let of = |model: &str, prompt: &str| blocks(&json!({"model": model, "prompt": prompt}));
        let (a, b) = ("a".repeat(300), format!("{}b", "a".repeat(299)));
        assert_ne!(of("m", &a), of("n", &a));
        assert_eq!((of("m", &a)[..1] == of("m", &b)[..1], of("m", &a).len()), (true, 2));
        assert_ne!(of("m", &a), of("m", &format!("b{a}")));
        assert_eq!(of("m", &"a".repeat(100_000)).len(), 64);
    }

    #[test]
    fn what_is_no_prompt_has_none() {
        for body in [&b""[..], b"[]", b"{", b"\xff", br#"{"prompt": "short"}"#, br#"{"n": 1}"#] {
            assert!(prompt_blocks(body).is_empty());
        }
    }
}
