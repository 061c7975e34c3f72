//! Messages and tools of Anthropic's interface, as templates take them.

use crate::error::ApiError;
use crate::fields::wrong;
use crate::tools::{Tool, ToolUse, check_count};
use serde_json::{Map, Value, json};

/// The text of the system, in front of the messages.
///
/// # Errors
/// What is no text.
pub(super) fn system(value: &Value) -> Result<Value, ApiError> {
    let text = match value {
        Value::String(text) => text.clone(),
        Value::Array(blocks) => texts("system", blocks)?,
        other => return Err(wrong("system", "a string or blocks of text", other)),
    };
    Ok(json!({"role": "system", "content": text}))
}

fn texts(place: &str, blocks: &[Value]) -> Result<String, ApiError> {
    let mut all = String::new();
    for (at, block) in blocks.iter().enumerate() {
        let text = block.get("text").and_then(Value::as_str);
        match (block.get("type").and_then(Value::as_str), text) {
            (Some("text"), Some(text)) => all.push_str(text),
            _ => return Err(ApiError::unsupported(&format!("{place}[{at}]"), "only blocks of text are understood")),
        }
    }
    Ok(all)
}

/// Messages as templates take them: results of tools become messages of their own.
///
/// # Errors
/// A message that makes no sense, by its place.
pub(super) fn messages(list: &[Value]) -> Result<Vec<Value>, ApiError> {
    if list.is_empty() {
        return Err(ApiError::field("messages", "`messages` is empty; send at least one"));
    }
    let mut out = Vec::new();
    for (at, message) in list.iter().enumerate() {
        let place = format!("messages[{at}]");
        let role = message.get("role").and_then(Value::as_str).unwrap_or_default();
        if !matches!(role, "user" | "assistant") {
            let place = format!("{place}.role");
            return Err(ApiError::field(&place, format!("`{place}`: expected user or assistant")));
        }
        let place = format!("{place}.content");
        match message.get("content") {
            Some(Value::String(text)) => out.push(json!({"role": role, "content": text})),
            Some(Value::Array(blocks)) => {
                let read = Read::of(&place, blocks)?;
                out.extend(read.messages(role));
            }
            Some(other) => return Err(wrong(&place, "a string or blocks", other)),
            None => return Err(ApiError::field(&place, format!("`{place}` is missing"))),
        }
    }
    Ok(out)
}

/// What the blocks of a message hold.
#[derive(Default)]
struct Read {
    text: String,
    thought: String,
    calls: Vec<Value>,
    results: Vec<Value>,
}

impl Read {
    fn of(place: &str, blocks: &[Value]) -> Result<Read, ApiError> {
        let mut read = Read::default();
        for (at, block) in blocks.iter().enumerate() {
            let place = format!("{place}[{at}]");
            let text = |name: &str| block.get(name).and_then(Value::as_str);
            let need = |name: &str| {
                let place = format!("{place}.{name}");
                text(name).ok_or_else(|| ApiError::field(&place, format!("`{place}` is missing")))
            };
            match text("type") {
                Some("text") => read.text.push_str(need("text")?),
                Some("thinking") => read.thought.push_str(need("thinking")?),
                // Nobody but its makers can read it.
                Some("redacted_thinking") => {}
                Some("tool_use") => {
                    let input = block.get("input").cloned().unwrap_or_else(|| Value::Object(Map::new()));
                    let function = json!({"name": need("name")?, "arguments": input});
                    read.calls.push(json!({"id": need("id")?, "type": "function", "function": function}));
                }
                Some("tool_result") => {
                    let content = match block.get("content") {
                        None | Some(Value::Null) => String::new(),
                        Some(Value::String(text)) => text.clone(),
                        Some(Value::Array(blocks)) => texts(&format!("{place}.content"), blocks)?,
                        Some(other) => return Err(wrong(&format!("{place}.content"), "a string or blocks", other)),
                    };
                    let id = need("tool_use_id")?;
                    read.results.push(json!({"role": "tool", "tool_call_id": id, "content": content}));
                }
                Some(_) => return Err(ApiError::unsupported(&place, "only text, thoughts and tools are understood")),
                None => return Err(ApiError::field(format!("{place}.type"), format!("`{place}.type` is missing"))),
            }
        }
        Ok(read)
    }

    fn messages(self, role: &str) -> Vec<Value> {
        let mut out = self.results;
        let only_results = !out.is_empty() && self.text.is_empty() && self.calls.is_empty();
        if !only_results {
            let mut message = json!({"role": role, "content": self.text});
            if !self.calls.is_empty() {
                message["tool_calls"] = self.calls.into();
            }
            if !self.thought.is_empty() {
                message["reasoning_content"] = self.thought.into();
            }
            out.push(message);
        }
        out
    }
}

/// The tools, and whether they are to be called.
///
/// # Errors
/// A tool or choice that makes no sense.
pub(super) fn tools(list: &[Value], choice: Option<&Value>) -> Result<Option<ToolUse>, ApiError> {
    check_count(list.len())?;
    let mut tools = Vec::new();
    for (at, tool) in list.iter().enumerate() {
        let place = format!("tools[{at}]");
        if !matches!(tool.get("type").and_then(Value::as_str), None | Some("custom")) {
            return Err(ApiError::unsupported(&place, "only a client's own tools are called"));
        }
        let name = tool.get("name").and_then(Value::as_str).unwrap_or_default();
        let schema = tool.get("input_schema").cloned().unwrap_or(Value::Null);
        tools.push(Tool::new(&place, name, tool.get("description").and_then(Value::as_str), schema)?);
    }
    let of = |name: &str| choice.and_then(|choice| choice.get(name));
    let parallel = of("disable_parallel_tool_use").and_then(Value::as_bool) != Some(true);
    let choice = match (choice, of("type").and_then(Value::as_str)) {
        (None, _) | (_, Some("auto")) => json!("auto"),
        (_, Some("none")) => json!("none"),
        (_, Some("any")) => json!("required"),
        (_, Some("tool")) => json!({"type": "function", "function": {"name": of("name")}}),
        _ => return Err(ApiError::field("tool_choice", "`tool_choice.type`: expected auto, any, tool or none")),
    };
    ToolUse::new(tools, Some(&choice), parallel)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_become_messages_of_their_own() {
        let sent = json!([
            {"role": "user", "content": "add"},
            {"role": "assistant", "content": [
                {"type": "thinking", "thinking": "hm", "signature": ""}, {"type": "text", "text": "well"},
                {"type": "tool_use", "id": "c", "name": "f", "input": {"x": 1}}]},
            {"role": "user", "content": [
                {"type": "tool_result", "tool_use_id": "c", "content": [{"type": "text", "text": "2"}]},
                {"type": "text", "text": "go on"}]},
        ]);
        let function = json!({"name": "f", "arguments": {"x": 1}});
        let call = json!({"id": "c", "type": "function", "function": function});
        let wanted = [
            json!({"role": "user", "content": "add"}),
            json!({"role": "assistant", "content": "well", "tool_calls": [call], "reasoning_content": "hm"}),
            json!({"role": "tool", "tool_call_id": "c", "content": "2"}),
            json!({"role": "user", "content": "go on"}),
        ];
        assert_eq!(messages(sent.as_array().unwrap()).unwrap(), wanted);
        for wrong in [
            json!([]),
            json!([{"role": "system", "content": "x"}]),
            json!([{"role": "user", "content": [{"type": "image"}]}]),
        ] {
            assert!(messages(wrong.as_array().unwrap()).is_err(), "{wrong}");
        }
    }
}
