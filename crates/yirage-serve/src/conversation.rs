//! A conversation as chat templates take it, from messages as clients send them.

use crate::error::ApiError;
use crate::fields::{Fields, Table, honoured, ignored, refused, wrong};
use serde_json::{Map, Value};

/// The roles that a message may have.
const ROLES: &[&str] = &["system", "developer", "user", "assistant", "tool", "function"];

const MESSAGE: Table = &[&[
    honoured("role", "{}"),
    honoured("content", "{}"),
    honoured("name", "{}"),
    honoured("tool_calls", "{}"),
    honoured("tool_call_id", "{}"),
    honoured("tool_name", "{}"),
    honoured("reasoning_content", "{}"),
    honoured("reasoning", "{}"),
    honoured("thinking", "{}"),
    // What clients send back of answers, and marks for other servers' caches.
    ignored("refusal", "{}"),
    ignored("annotations", "{}"),
    ignored("id", "{}"),
    ignored("status", "{}"),
    ignored("type", "{}"),
    ignored("reasoning_details", "{}"),
    ignored("cache_control", "{}"),
    refused("images", "only text is understood", &["[]"]),
    refused("audio", "only text is understood", &[]),
    refused("function_call", "it was replaced by `tool_calls`", &[]),
    refused("prefix", "only the last message is gone on from", &["false"]),
]];

const PART: Table = &[&[
    honoured("type", "{}"),
    honoured("text", "{}"),
    honoured("refusal", "{}"),
    ignored("annotations", "{}"),
    ignored("logprobs", "{}"),
    ignored("cache_control", "{}"),
    ignored("prompt_cache_breakpoint", "{}"),
]];

const CALL: Table =
    &[&[honoured("id", "{}"), honoured("type", "{}"), honoured("function", "{}"), ignored("index", "{}")]];

const FUNCTION: Table =
    &[&[honoured("name", "{}"), honoured("arguments", "{}"), ignored("index", "{}"), ignored("description", "{}")]];

/// Messages as templates expect them: texts instead of parts, arguments of calls as objects, thoughts under one name.
/// They stand in the field `root`; what changes nothing in them joins `ignored`.
///
/// # Errors
/// A message that makes no sense, by its place; parts that are no text.
pub(crate) fn messages(root: &str, list: Vec<Value>, ignored: &mut Vec<String>) -> Result<Vec<Value>, ApiError> {
    if list.is_empty() {
        return Err(ApiError::field(root, format!("`{root}` is empty; send at least one")));
    }
    let one = |(at, message)| one(Fields::within(message, MESSAGE, &format!("{root}[{at}]"))?, ignored);
    list.into_iter().enumerate().map(one).collect()
}

fn one(mut fields: Fields, ignored: &mut Vec<String>) -> Result<Value, ApiError> {
    let role = fields.text("role")?;
    let mut role = fields.need("role", role)?;
    if !ROLES.contains(&role.as_str()) {
        return Err(fields.error("role", format!("expected one of {}", ROLES.join(", "))));
    }
    let place = fields.at("content");
    let content = fields.take("content").map(|value| content(&place, value, ignored)).transpose()?;
    if role != "assistant" {
        fields.need("content", content.as_ref())?;
    }
    // Templates know the older word.
    if role == "developer" {
        role = "system".into();
    }
    let mut map = Map::new();
    map.insert("role".into(), role.into());
    // Templates ask for it without looking whether it is there.
    map.insert("content".into(), content.unwrap_or_default().into());
    let place = fields.at("tool_calls");
    if let Some(calls) = fields.list("tool_calls")? {
        map.insert("tool_calls".into(), tool_calls(&place, calls, ignored)?);
    }
    for name in ["name", "tool_call_id", "tool_name"] {
        if let Some(text) = fields.text(name)? {
            map.insert(name.into(), text.into());
        }
    }
    // vLLM's and ollama's words for thoughts; templates know the first one.
    for word in ["reasoning_content", "reasoning", "thinking"] {
        match fields.text(word)? {
            Some(_) if map.contains_key("reasoning_content") => ignored.push(format!("messages.{word}")),
            Some(thought) => drop(map.insert("reasoning_content".into(), thought.into())),
            None => {}
        }
    }
    fields.finish_into(ignored)?;
    Ok(Value::Object(map))
}

/// The text of a message's content: a text, or parts that are joined.
///
/// # Errors
/// A part that is no text, by its place.
pub(crate) fn content(place: &str, value: Value, ignored: &mut Vec<String>) -> Result<String, ApiError> {
    match value {
        Value::String(text) => Ok(text),
        Value::Array(parts) => {
            let mut all = String::new();
            for (at, part) in parts.into_iter().enumerate() {
                all.push_str(&one_part(&format!("{place}[{at}]"), part, ignored)?);
            }
            Ok(all)
        }
        other => Err(wrong(place, "a string or a list of parts", &other)),
    }
}

fn one_part(place: &str, part: Value, ignored: &mut Vec<String>) -> Result<String, ApiError> {
    if let Value::String(text) = part {
        return Ok(text);
    }
    let mut fields = Fields::within(part, PART, place)?;
    let kind = fields.text("type")?.unwrap_or_default();
    if !matches!(kind.as_str(), "text" | "input_text" | "output_text" | "refusal") {
        return Err(ApiError::unsupported(place, "only parts of text are understood"));
    }
    let text = fields.text("text")?.or(fields.text("refusal")?);
    let text = text.ok_or_else(|| ApiError::field(place, format!("`{place}`: a part without its text")))?;
    fields.finish_into(ignored)?;
    Ok(text)
}

/// Calls with their arguments as objects, which templates write as JSON themselves.
fn tool_calls(place: &str, calls: Vec<Value>, ignored: &mut Vec<String>) -> Result<Value, ApiError> {
    let one = |(at, call): (usize, Value)| {
        let mut call = Fields::within(call, CALL, &format!("{place}[{at}]"))?;
        let mut out = Map::new();
        for name in ["id", "type"] {
            if let Some(text) = call.text(name)? {
                out.insert(name.into(), text.into());
            }
        }
        let function = call.fields("function", FUNCTION)?;
        let mut function = call.need("function", function)?;
        call.finish_into(ignored)?;
        let name = function.text("name")?;
        let mut inner = Map::from_iter([("name".to_owned(), Value::from(function.need("name", name)?))]);
        if let Some(arguments) = function.take("arguments") {
            inner.insert("arguments".into(), Value::Object(object(&function.at("arguments"), arguments)?));
        }
        function.finish_into(ignored)?;
        out.insert("function".into(), Value::Object(inner));
        Ok(Value::Object(out))
    };
    calls.into_iter().enumerate().map(one).collect()
}

/// Arguments as an object, from one or from its text.
fn object(place: &str, arguments: Value) -> Result<Map<String, Value>, ApiError> {
    match arguments {
        Value::Object(map) => Ok(map),
        Value::String(text) if text.trim().is_empty() => Ok(Map::new()),
        Value::String(text) => {
            serde_json::from_str(&text).map_err(|e| ApiError::field(place, format!("`{place}` is no JSON object: {e}")))
        }
        other => Err(wrong(place, "an object or its text", &other)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn of(value: Value) -> Result<Vec<Value>, ApiError> {
        messages("messages", value.as_array().unwrap().clone(), &mut Vec::new())
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
            (json!([{"role": "user", "content": "a", "contnet": 1}]), "messages[0].contnet"),
            (
                json!([{"role": "user", "content": [{"type": "text", "text": "a", "refusla": 1}]}]),
                "messages[0].content[0].refusla",
            ),
            (
                json!([{"role": "assistant", "tool_calls": [{"function": {"name": "f", "argument": 1}}]}]),
                "messages[0].tool_calls[0].function.argument",
            ),
        ] {
            assert_eq!(of(sent).unwrap_err().param.as_deref(), Some(param));
        }
    }

    #[test]
    fn what_changes_nothing_in_a_message_is_named_once_a_place() {
        let mut ignored = Vec::new();
        let mark = json!({"type": "ephemeral"});
        let part = json!({"type": "text", "text": "a", "cache_control": mark});
        let sent = json!([{"role": "user", "content": [part, part], "id": "m"}]);
        messages("messages", sent.as_array().unwrap().clone(), &mut ignored).unwrap();
        ignored.dedup();
        assert_eq!(ignored, ["messages.content.cache_control", "messages.id"]);
    }
}
