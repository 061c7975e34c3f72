//! A conversation as chat templates take it, from messages as clients send them.

use crate::error::ApiError;
use crate::fields::wrong;
use serde_json::{Map, Value};

/// The roles that a message may have.
const ROLES: &[&str] = &["system", "developer", "user", "assistant", "tool", "function"];

/// Messages as templates expect them: texts instead of parts, arguments of calls as objects, thoughts under one name.
///
/// # Errors
/// A message that makes no sense, by its place; parts that are no text.
pub(crate) fn messages(list: Vec<Value>) -> Result<Vec<Value>, ApiError> {
    if list.is_empty() {
        return Err(ApiError::field("messages", "`messages` is empty; send at least one"));
    }
    list.into_iter().enumerate().map(|(at, message)| one(at, message)).collect()
}

fn one(at: usize, message: Value) -> Result<Value, ApiError> {
    let place = |field: &str| format!("messages[{at}]{field}");
    let Value::Object(mut map) = message else { return Err(wrong(&place(""), "an object", &message)) };
    let role = match map.get("role") {
        Some(Value::String(role)) if ROLES.contains(&role.as_str()) => role.clone(),
        Some(Value::String(_)) => {
            return Err(ApiError::field(
                place(".role"),
                format!("`{}`: expected one of {}", place(".role"), ROLES.join(", ")),
            ));
        }
        Some(other) => return Err(wrong(&place(".role"), "a string", other)),
        None => return Err(ApiError::field(place(".role"), format!("`{}` is missing", place(".role")))),
    };
    // Templates know the older word.
    if role == "developer" {
        map.insert("role".into(), Value::from("system"));
    }
    let content = match map.remove("content") {
        None | Some(Value::Null) => None,
        Some(Value::String(text)) => Some(text),
        Some(Value::Array(parts)) => Some(texts(&place(".content"), parts)?),
        Some(other) => return Err(wrong(&place(".content"), "a string or a list of parts", &other)),
    };
    let has_calls = map.get("tool_calls").is_some_and(|calls| !calls.is_null());
    if content.is_none() && role != "assistant" {
        return Err(ApiError::field(place(".content"), format!("`{}` is missing", place(".content"))));
    }
    if let Some(calls) = map.remove("tool_calls").filter(|calls| !calls.is_null()) {
        map.insert("tool_calls".into(), Value::Array(tool_calls(&place(".tool_calls"), calls)?));
    }
    // vLLM's and ollama's words for thoughts; templates know the other one.
    for word in ["reasoning", "thinking"] {
        if let Some(thought) = map.remove(word)
            && !map.contains_key("reasoning_content")
        {
            map.insert("reasoning_content".into(), thought);
        }
    }
    if map.remove("images").is_some_and(|images| images.as_array().is_none_or(|list| !list.is_empty())) {
        return Err(ApiError::unsupported(&place(".images"), "only text is understood"));
    }
    if content.is_some() || !has_calls {
        map.insert("content".into(), Value::from(content.unwrap_or_default()));
    } else {
        // Templates ask for it without looking whether it is there.
        map.insert("content".into(), Value::from(""));
    }
    Ok(Value::Object(map))
}

/// The texts of parts, joined.
fn texts(place: &str, parts: Vec<Value>) -> Result<String, ApiError> {
    let mut all = String::new();
    for (at, part) in parts.into_iter().enumerate() {
        let place = format!("{place}[{at}]");
        match part {
            Value::String(text) => all.push_str(&text),
            Value::Object(map) => {
                let kind = map.get("type").and_then(Value::as_str).unwrap_or_default();
                let text = map.get("text").or_else(|| map.get("refusal"));
                match (kind, text.and_then(Value::as_str)) {
                    ("text" | "input_text" | "output_text" | "refusal", Some(text)) => all.push_str(text),
                    ("text" | "input_text" | "output_text" | "refusal", None) => {
                        return Err(ApiError::field(&place, format!("`{place}`: a part without its text")));
                    }
                    _ => return Err(ApiError::unsupported(&place, "only parts of text are understood")),
                }
            }
            other => return Err(wrong(&place, "a part", &other)),
        }
    }
    Ok(all)
}

/// Calls with their arguments as objects, which templates write as JSON themselves.
fn tool_calls(place: &str, calls: Value) -> Result<Vec<Value>, ApiError> {
    let Value::Array(list) = calls else { return Err(wrong(place, "a list", &calls)) };
    let one = |(at, call): (usize, Value)| {
        let place = format!("{place}[{at}]");
        let Value::Object(mut call) = call else { return Err(wrong(&place, "an object", &call)) };
        let Some(Value::Object(mut function)) = call.remove("function") else {
            return Err(ApiError::field(format!("{place}.function"), format!("`{place}.function` is missing")));
        };
        if !function.get("name").is_some_and(Value::is_string) {
            return Err(ApiError::field(
                format!("{place}.function.name"),
                format!("`{place}.function.name` is missing"),
            ));
        }
        if let Some(Value::String(text)) = function.get("arguments") {
            let place = format!("{place}.function.arguments");
            let parsed =
                if text.trim().is_empty() { Ok(Map::new()) } else { serde_json::from_str::<Map<String, Value>>(text) };
            let object = parsed.map_err(|e| ApiError::field(&place, format!("`{place}` is no JSON object: {e}")))?;
            function.insert("arguments".into(), Value::Object(object));
        }
        call.insert("function".into(), Value::Object(function));
        Ok(Value::Object(call))
    };
    list.into_iter().enumerate().map(one).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn of(value: Value) -> Result<Vec<Value>, ApiError> {
        messages(value.as_array().unwrap().clone())
    }

    #[test]
    fn messages_become_what_templates_expect() {
        let call = json!({"id": "c", "type": "function", "function": {"name": "f", "arguments": "{\"x\": 1}"}});
        let sent = json!([
            {"role": "developer", "content": "be brief"},
            {"role": "user", "content": [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]},
            {"role": "assistant", "content": null, "tool_calls": [call], "reasoning": "hm"},
            {"role": "tool", "tool_call_id": "c", "content": "2"},
        ]);
        let call = json!({"id": "c", "type": "function", "function": {"name": "f", "arguments": {"x": 1}}});
        let wanted = json!([
            {"role": "system", "content": "be brief"},
            {"role": "user", "content": "ab"},
            {"role": "assistant", "content": "", "tool_calls": [call], "reasoning_content": "hm"},
            {"role": "tool", "tool_call_id": "c", "content": "2"},
        ]);
        assert_eq!(Value::Array(of(sent).unwrap()), wanted);
    }

    #[test]
    fn what_makes_no_sense_is_named_by_its_place() {
        let call = |arguments: &str| json!([{"function": {"name": "f", "arguments": arguments}}]);
        for (sent, param) in [
            (json!([]), "messages"),
            (json!([1]), "messages[0]"),
            (json!([{"content": "a"}]), "messages[0].role"),
            (json!([{"role": "king", "content": "a"}]), "messages[0].role"),
            (json!([{"role": "user"}]), "messages[0].content"),
            (json!([{"role": "user", "content": 3}]), "messages[0].content"),
            (json!([{"role": "user", "content": [{"type": "image_url"}]}]), "messages[0].content[0]"),
            (json!([{"role": "assistant", "tool_calls": call("{")}]), "messages[0].tool_calls[0].function.arguments"),
            (json!([{"role": "assistant", "tool_calls": [{}]}]), "messages[0].tool_calls[0].function"),
        ] {
            assert_eq!(of(sent).unwrap_err().param.as_deref(), Some(param));
        }
    }
}
