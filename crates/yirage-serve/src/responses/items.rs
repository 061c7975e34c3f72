//! Items of a conversation, as messages.

use crate::conversation;
use crate::error::ApiError;
use crate::fields::wrong;
use serde_json::{Value, json};

/// The messages of `input`: a text, or items.
///
/// # Errors
/// An item that makes no sense, by its place; one that no template knows.
pub(super) fn messages(input: Value) -> Result<Vec<Value>, ApiError> {
    let list = match input {
        Value::String(text) => return Ok(vec![json!({"role": "user", "content": text})]),
        Value::Array(list) => list,
        other => return Err(wrong("input", "a string or a list of items", &other)),
    };
    let mut out: Vec<Value> = Vec::new();
    let mut thought: Option<String> = None;
    for (at, item) in list.into_iter().enumerate() {
        let place = format!("input[{at}]");
        let text = |name: &str| item.get(name).and_then(Value::as_str);
        let need = |name: &str| {
            let place = format!("{place}.{name}");
            text(name).ok_or_else(|| ApiError::field(&place, format!("`{place}` is missing")))
        };
        match text("type").unwrap_or("message") {
            "message" => {
                let content = item.get("content").cloned().unwrap_or_default();
                let mut message = json!({"role": need("role")?, "content": content});
                if let Some(thought) = thought.take() {
                    message["reasoning_content"] = thought.into();
                }
                out.push(message);
            }
            "function_call" => {
                let function = json!({"name": need("name")?, "arguments": need("arguments")?});
                let call = json!({"id": need("call_id")?, "type": "function", "function": function});
                // Calls that follow each other are those of one message.
                let last = out.last_mut().filter(|last| last["role"] == "assistant" && last["tool_calls"].is_array());
                match last.and_then(|last| last["tool_calls"].as_array_mut()) {
                    Some(calls) => calls.push(call),
                    None => out.push(json!({
                        "role": "assistant", "content": "", "tool_calls": [call], "reasoning_content": thought.take(),
                    })),
                }
            }
            "function_call_output" => {
                let output = item.get("output").cloned().unwrap_or_default();
                out.push(json!({"role": "tool", "tool_call_id": need("call_id")?, "content": output}));
            }
            "reasoning" => {
                let parts = item.get("content").and_then(Value::as_array);
                let parts = parts.into_iter().flatten().filter_map(|part| part["text"].as_str());
                thought = Some(parts.collect());
            }
            other => {
                let why = format!("items of the type {other:?} are not understood");
                return Err(ApiError::unsupported(&place, &why));
            }
        }
    }
    for message in &mut out {
        if let Some(map) = message.as_object_mut() {
            map.retain(|_, value| !value.is_null());
        }
    }
    conversation::messages(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn items_become_messages() {
        let sent = json!([
            {"role": "user", "content": [{"type": "input_text", "text": "add"}]},
            {"type": "reasoning", "content": [{"type": "reasoning_text", "text": "hm"}]},
            {"type": "function_call", "call_id": "a", "name": "f", "arguments": "{\"x\":1}"},
            {"type": "function_call", "call_id": "b", "name": "f", "arguments": "{}"},
            {"type": "function_call_output", "call_id": "a", "output": "2"},
            {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "two"}]},
        ]);
        let call =
            |id, arguments| json!({"id": id, "type": "function", "function": {"name": "f", "arguments": arguments}});
        let calls = [call("a", json!({"x": 1})), call("b", json!({}))];
        let wanted = [
            json!({"role": "user", "content": "add"}),
            json!({"role": "assistant", "content": "", "tool_calls": calls, "reasoning_content": "hm"}),
            json!({"role": "tool", "tool_call_id": "a", "content": "2"}),
            json!({"role": "assistant", "content": "two"}),
        ];
        assert_eq!(messages(sent).unwrap(), wanted);
        assert_eq!(messages(json!("hi")).unwrap(), [json!({"role": "user", "content": "hi"})]);
        for wrong in [json!(3), json!([]), json!([{"type": "computer_call"}]), json!([{"type": "function_call"}])] {
            assert!(messages(wrong.clone()).is_err(), "{wrong}");
        }
    }
}
