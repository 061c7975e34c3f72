//! A conversation in one neutral form, from messages as clients send them.
//!
//! Content is a text, parts of text or null, arguments are an object or JSON text, all as they were sent. The shape that a
//! template reads is given to them where they are rendered, and not here.

use crate::error::ApiError;
use crate::fields::{FieldTable, Fields, honoured, ignored, refused, wrong};
use crate::pictures;
use serde_json::{Map, Value, json};
use yirage_model::chat::THOUGHT_NAMES;

/// The roles that a message may have.
const ROLES: &[&str] = &["system", "developer", "user", "assistant", "tool", "function"];

const MESSAGE: FieldTable = &[&[
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
    honoured("images", "{}"),
    refused("audio", "only text is understood", &[]),
    honoured("function_call", "{}"),
    refused("prefix", "only the last message is gone on from", &["false"]),
]];

const PART: FieldTable = &[&[
    honoured("type", "{}"),
    honoured("text", "{}"),
    honoured("refusal", "{}"),
    honoured("image_url", "{}"),
    honoured("data", "{}"),
    // Pictures have the one size that the model reads.
    ignored("detail", "{}"),
    ignored("annotations", "{}"),
    ignored("logprobs", "{}"),
    ignored("cache_control", "{}"),
    ignored("prompt_cache_breakpoint", "{}"),
]];

/// A thought as a part of content, as Mistral's interface has it.
const THOUGHT: FieldTable =
    &[&[honoured("type", "{}"), honoured("thinking", "{}"), ignored("closed", "{}"), ignored("signature", "{}")]];

const CALL: FieldTable = &[&[
    honoured("id", "{}"),
    honoured("type", "{}"),
    honoured("function", "{}"),
    honoured("custom", "{}"),
    ignored("index", "{}"),
]];

/// A call of a tool of free text.
const CUSTOM: FieldTable = &[&[honoured("name", "{}"), honoured("input", "{}")]];

const FUNCTION: FieldTable =
    &[&[honoured("name", "{}"), honoured("arguments", "{}"), ignored("index", "{}"), ignored("description", "{}")]];

/// Messages in the neutral form, thoughts under one name. They stand in the field `root`; what changes nothing in them
/// joins `ignored`.
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
    let mut content = fields.take("content");
    let thought = match content.as_mut().and_then(Value::as_array_mut).filter(|_| role == "assistant") {
        Some(parts) => taken_thought(&place, parts, ignored)?,
        None => None,
    };
    let content = match role.as_str() {
        "user" => content.map(|value| parts_with_pictures(&place, value, ignored)).transpose()?,
        _ => content.map(|value| parts(&place, value, ignored)).transpose()?,
    };
    let content = match fields.list("images")?.filter(|images| !images.is_empty()) {
        None => content,
        Some(_) if role != "user" => return Err(fields.error("images", "pictures are the user's")),
        Some(images) => Some(behind_images(&fields, images, content)?),
    };
    // A tool may have nothing to say.
    if !matches!(role.as_str(), "assistant" | "tool" | "function") {
        fields.need("content", content.as_ref())?;
    }
    // Templates know one word of each.
    if role == "developer" {
        role = "system".into();
    } else if role == "function" {
        role = "tool".into();
    }
    let mut map = Map::new();
    map.insert("role".into(), role.into());
    // Null where it is missing: templates ask for it without looking whether it is there.
    map.insert("content".into(), content.unwrap_or_default());
    let place = fields.at("tool_calls");
    // No calls are told as no list: templates ask whether there is one.
    if let Some(calls) = fields.list("tool_calls")?.filter(|calls| !calls.is_empty()) {
        map.insert("tool_calls".into(), tool_calls(&place, calls, ignored)?);
    }
    // The one call of the time before there were several.
    let place = fields.at("function_call");
    if let Some(call) = fields.object("function_call")?.filter(|_| !map.contains_key("tool_calls")) {
        let calls = vec![json!({"function": call})];
        map.insert("tool_calls".into(), tool_calls(&place, calls, ignored)?);
    }
    for name in ["name", "tool_call_id", "tool_name"] {
        if let Some(text) = fields.text(name)? {
            map.insert(name.into(), text.into());
        }
    }
    map.extend(thought.map(|thought| (THOUGHT_NAMES[0].to_owned(), thought.into())));
    // One name for them here; the template's own is put in where it is rendered.
    for word in THOUGHT_NAMES {
        match fields.text(word)? {
            Some(_) if map.contains_key(THOUGHT_NAMES[0]) => ignored.push(format!("messages.{word}")),
            Some(thought) => drop(map.insert(THOUGHT_NAMES[0].into(), thought.into())),
            None => {}
        }
    }
    fields.finish_into(ignored)?;
    Ok(Value::Object(map))
}

/// The thoughts among the parts of content, which are taken out of them.
///
/// # Errors
/// A thought that is no text, by its place.
fn taken_thought(place: &str, content: &mut Vec<Value>, ignored: &mut Vec<String>) -> Result<Option<String>, ApiError> {
    let mut thought: Option<String> = None;
    let mut kept = Vec::new();
    for (at, part) in std::mem::take(content).into_iter().enumerate() {
        if part["type"] != "thinking" {
            kept.push(part);
            continue;
        }
        let place = format!("{place}[{at}]");
        let mut fields = Fields::within(part, THOUGHT, &place)?;
        fields.take("type");
        let inner = fields.take("thinking");
        let inner = fields.need("thinking", inner)?;
        let text = match parts(&fields.at("thinking"), inner, ignored)? {
            Value::Array(texts) => texts.iter().filter_map(|part| part["text"].as_str()).collect(),
            text => text.as_str().unwrap_or_default().to_owned(),
        };
        fields.finish_into(ignored)?;
        thought.get_or_insert_default().push_str(&text);
    }
    *content = kept;
    Ok(thought)
}

/// The content of a message: a text, or parts of text where there are several.
///
/// # Errors
/// A part that is no text, by its place.
pub(crate) fn parts(place: &str, value: Value, ignored: &mut Vec<String>) -> Result<Value, ApiError> {
    match value {
        Value::String(text) => Ok(text.into()),
        Value::Array(parts) => {
            let one = |(at, part)| one_text(&format!("{place}[{at}]"), part, ignored);
            Ok(of_texts(parts.into_iter().enumerate().map(one).collect::<Result<_, _>>()?))
        }
        other => Err(wrong(place, "a string or a list of parts", &other)),
    }
}

/// The same of a message in which pictures may be.
///
/// # Errors
/// A part that is neither a text nor a picture, by its place.
pub(crate) fn parts_with_pictures(place: &str, value: Value, ignored: &mut Vec<String>) -> Result<Value, ApiError> {
    let Value::Array(parts) = value else { return self::parts(place, value, ignored) };
    let one = |(at, part)| one_part(&format!("{place}[{at}]"), part, ignored);
    let read = parts.into_iter().enumerate().map(one).collect::<Result<Vec<Value>, _>>()?;
    Ok(of_parts(read))
}

/// Content that consists of these texts and parts of pictures.
pub(crate) fn of_parts(said: Vec<Value>) -> Value {
    if said.iter().all(Value::is_string) {
        return of_texts(said.iter().filter_map(Value::as_str).map(str::to_owned).collect());
    }
    said.into_iter().map(as_part).collect()
}

fn as_part(part: Value) -> Value {
    if part.is_string() { json!({"type": "text", "text": part}) } else { part }
}

/// Content behind pictures that stand in a field of their own, as in ollama's interface.
fn behind_images(fields: &Fields, images: Vec<Value>, content: Option<Value>) -> Result<Value, ApiError> {
    let wanted = || fields.error("images", "expected files in base64");
    let one = |image: &Value| image.as_str().map(pictures::of_base64).ok_or_else(wanted);
    let before = images.iter().map(one).collect::<Result<Vec<Value>, ApiError>>()?;
    let behind = match content {
        Some(Value::Array(parts)) => parts,
        Some(text) => vec![as_part(text)],
        None => Vec::new(),
    };
    Ok(before.into_iter().chain(behind).collect())
}

/// Content that consists of these texts.
pub(crate) fn of_texts(mut texts: Vec<String>) -> Value {
    match texts.len() {
        0 => Value::from(""),
        1 => texts.remove(0).into(),
        _ => texts.into_iter().map(|text| json!({"type": "text", "text": text})).collect(),
    }
}

/// The text of a part.
fn one_text(place: &str, part: Value, ignored: &mut Vec<String>) -> Result<String, ApiError> {
    match one_part(place, part, ignored)? {
        Value::String(text) => Ok(text),
        _ => Err(ApiError::unsupported(place, "only parts of text are understood here; pictures are the user's")),
    }
}

/// A text, or the part of a picture.
fn one_part(place: &str, part: Value, ignored: &mut Vec<String>) -> Result<Value, ApiError> {
    if part.is_string() {
        return Ok(part);
    }
    let mut fields = Fields::within(part, PART, place)?;
    // What answers carry where there is none of it.
    ["annotations", "logprobs"].iter().for_each(|name| fields.leave_out(name, &json!([])));
    let without = |what: &str| ApiError::field(place, format!("`{place}`: a part without its {what}"));
    let read = match fields.text("type")?.unwrap_or_default().as_str() {
        "text" | "input_text" | "output_text" | "refusal" => {
            let text = fields.text("text")?.or(fields.text("refusal")?);
            text.ok_or_else(|| without("text"))?.into()
        }
        "image_url" | "input_image" => {
            // A URL, or an object with it and how it is to be looked at.
            let url = fields.take("image_url").ok_or_else(|| without("picture: `image_url` is missing"))?;
            let url =
                url.as_str().or(url["url"].as_str()).ok_or_else(|| without("picture: `image_url` has no `url`"))?;
            pictures::of_url(place, url)?
        }
        // One that was read before.
        "image" => pictures::of_base64(&fields.text("data")?.ok_or_else(|| without("picture: `data` is missing"))?),
        _ => return Err(ApiError::unsupported(place, "only parts of text and pictures (`image_url`) are understood")),
    };
    fields.finish_into(ignored)?;
    Ok(read)
}

/// Calls with their arguments as they were sent.
fn tool_calls(place: &str, calls: Vec<Value>, ignored: &mut Vec<String>) -> Result<Value, ApiError> {
    let one = |(at, call): (usize, Value)| {
        let mut call = Fields::within(call, CALL, &format!("{place}[{at}]"))?;
        let mut out = Map::new();
        out.extend(call.text("id")?.map(|id| ("id".to_owned(), id.into())));
        // ollama's clients leave it out, and templates write it.
        let kind = call.text("type")?.unwrap_or_else(|| "function".to_owned());
        if let Some(mut custom) = call.fields("custom", CUSTOM)? {
            // As a function: what was said with it is not to be lost.
            let (name, input) = (custom.text("name")?, custom.text("input")?);
            let function =
                json!({"name": custom.need("name", name)?, "arguments": {"input": custom.need("input", input)?}});
            custom.finish_into(ignored)?;
            call.finish_into(ignored)?;
            out.extend([("type".to_owned(), "function".into()), ("function".to_owned(), function)]);
            return Ok(Value::Object(out));
        }
        out.insert("type".into(), kind.into());
        let function = call.fields("function", FUNCTION)?;
        let mut function = call.need("function", function)?;
        call.finish_into(ignored)?;
        let name = function.text("name")?;
        let name = Value::from(function.need("name", name)?);
        let arguments = function.take("arguments").filter(are_arguments).unwrap_or_else(|| {
            ignored.push("messages.tool_calls.function.arguments".to_owned());
            json!({})
        });
        function.finish_into(ignored)?;
        out.insert("function".into(), json!({"name": name, "arguments": arguments}));
        Ok(Value::Object(out))
    };
    calls.into_iter().enumerate().map(one).collect()
}

/// Whether these are an object or its text. What a model wrote badly, or was cut off in, comes back from clients as it
/// is: a conversation goes on without it, and says so.
fn are_arguments(arguments: &Value) -> bool {
    match arguments {
        Value::Object(_) => true,
        Value::String(text) => serde_json::from_str::<Map<String, Value>>(text).is_ok(),
        _ => false,
    }
}

/// Looks for what each user said in the prompt that a template made of it.
///
/// # Errors
/// The message that the template left out, by its place.
pub(crate) fn check_user_texts(messages: &[Value], prompt: &str) -> Result<(), ApiError> {
    let mut spaced = None;
    let mut behind = 0;
    let mut is_kept = |text: &str| {
        if text.is_empty() {
            return true;
        }
        // Texts mostly stand in the order of their messages.
        if let Some(at) = prompt.get(behind..).and_then(|rest| rest.find(text)) {
            behind += at + text.len();
            return true;
        }
        let json = Value::from(text).to_string();
        let spaced = spaced.get_or_insert_with(|| words(prompt));
        prompt.contains(text) || prompt.contains(json.trim_matches('"')) || spaced.contains(&words(text))
    };
    for (at, message) in messages.iter().enumerate().filter(|(_, message)| message["role"] == "user") {
        let kept = match &message["content"] {
            Value::Array(parts) => parts.iter().all(|part| is_kept(part["text"].as_str().unwrap_or_default().trim())),
            content => is_kept(content.as_str().unwrap_or_default().trim()),
        };
        if !kept {
            let place = format!("messages[{at}].content");
            let what =
                format!("`{place}`: the model's chat template leaves it out of the prompt; send it in another message");
            return Err(ApiError::field(place, what));
        }
    }
    Ok(())
}

/// A text with single spaces between its words, without the words that some templates take for switches and take out.
fn words(text: &str) -> String {
    let is_switch = |word: &&str| matches!(*word, "/think" | "/no_think" | "/nothink");
    text.split_whitespace().filter(|word| !is_switch(word)).collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(value: Value) -> Result<Vec<Value>, ApiError> {
        messages("messages", value.as_array().unwrap().clone(), &mut Vec::new())
    }

    #[test]
    fn calls_of_tools_of_text_become_functions() {
        let custom = json!({"id": "c", "type": "custom", "custom": {"name": "apply_patch", "input": "*** Begin"}});
        let read =
            of(json!([{"role": "user", "content": "q"}, {"role": "assistant", "tool_calls": [custom]}])).unwrap();
        let call = &read[1]["tool_calls"][0];
        assert_eq!(call["function"], json!({"name": "apply_patch", "arguments": {"input": "*** Begin"}}));
        assert_eq!((&call["id"], &call["type"]), (&json!("c"), &json!("function")));
    }

    #[test]
    fn messages_keep_what_was_sent() {
        let call = json!({"id": "c", "type": "function", "function": {"name": "f", "arguments": "{\"x\": 1}"}});
        let parts = json!([{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]);
        let sent = json!([
            {"role": "developer", "content": "be brief"},
            {"role": "user", "content": parts},
            {"role": "user", "content": [{"type": "text", "text": "c"}]},
            {"role": "assistant", "content": null, "tool_calls": [call], "reasoning": "hm"},
            {"role": "tool", "tool_call_id": "c", "content": "2"},
            {"role": "assistant", "tool_calls": [call]},
            {"role": "assistant", "content": "", "tool_calls": []},
            {"role": "assistant", "content": null, "tool_calls": [{"function": {"name": "g", "arguments": {}}}]},
            {"role": "tool", "content": null},
        ]);
        let wanted = json!([
            {"role": "system", "content": "be brief"},
            {"role": "user", "content": parts},
            {"role": "user", "content": "c"},
            {"role": "assistant", "content": null, "tool_calls": [call], "reasoning_content": "hm"},
            {"role": "tool", "content": "2", "tool_call_id": "c"},
            {"role": "assistant", "content": null, "tool_calls": [call]},
            {"role": "assistant", "content": ""},
            {"role": "assistant", "content": null,
                "tool_calls": [{"type": "function", "function": {"name": "g", "arguments": {}}}]},
            {"role": "tool", "content": null},
        ]);
        assert_eq!(Value::Array(of(sent).unwrap()), wanted);
    }

    /// Case 25: what a model wrote badly comes back from clients as it is.
    #[test]
    fn arguments_that_are_none_are_an_empty_object_and_named() {
        let none = [
            json!({}),
            json!({"arguments": null}),
            json!({"arguments": "null"}),
            json!({"arguments": ""}),
            json!({"arguments": "  "}),
            json!({"arguments": "{\"city\": \"Par"}),
            json!({"arguments": "{\"a\": 1}}"}),
            json!({"arguments": "[1]"}),
            json!({"arguments": [1]}),
            json!({"arguments": "\"text\""}),
            json!({"arguments": 3}),
            json!({"arguments": "city=Paris"}),
        ];
        for mut function in none {
            let mut ignored = Vec::new();
            function["name"] = json!("f");
            let sent = vec![json!({"role": "assistant", "tool_calls": [{"id": "c", "function": function}]})];
            let read = messages("messages", sent, &mut ignored).unwrap();
            assert_eq!(read[0]["tool_calls"][0]["function"], json!({"name": "f", "arguments": {}}), "{function}");
            assert_eq!(ignored, ["messages.tool_calls.function.arguments"], "{function}");
        }
        let kept =
            json!([{"type": "function", "function": {"name": "f", "arguments": "{ \"n\": 12345678901234567890123 }"}}]);
        let read = of(json!([{"role": "assistant", "tool_calls": kept}])).unwrap();
        assert_eq!(read[0]["tool_calls"], kept);
    }

    #[test]
    fn thoughts_may_be_parts_of_content() {
        let list = json!([{"type": "text", "text": "h"}, {"type": "text", "text": "m"}]);
        let said = json!({"type": "text", "text": "a"});
        for thinking in [list, json!("hm")] {
            let sent = json!([{"role": "assistant", "content": [{"type": "thinking", "thinking": thinking, "closed": true}, said]}]);
            let wanted = json!([{"role": "assistant", "content": "a", "reasoning_content": "hm"}]);
            assert_eq!(Value::Array(of(sent).unwrap()), wanted);
        }
        let part = json!({"type": "thinking", "thinking": [{"type": "image_url"}]});
        let refused = of(json!([{"role": "assistant", "content": [said, part]}])).unwrap_err();
        assert_eq!(refused.param.as_deref(), Some("messages[0].content[1].thinking[0]"));
        assert!(of(json!([{"role": "user", "content": [{"type": "thinking", "thinking": "hm"}]}])).is_err());
    }

    #[test]
    fn what_a_user_says_is_in_the_prompt_or_an_error() {
        let said = |texts: &[&str]| -> Vec<Value> {
            texts.iter().map(|text| json!({"role": "user", "content": text})).collect()
        };
        let lost =
            |texts: &[&str], prompt: &str| check_user_texts(&said(texts), prompt).map_err(|error| error.param.unwrap());
        assert_eq!(lost(&["one", "two"], "<u>one<u>two"), Ok(()));
        assert_eq!(lost(&["two", "one", "one"], "<u>one<u>two"), Ok(()));
        assert_eq!(lost(&["  a  ", ""], "<a>"), Ok(()));
        assert_eq!(lost(&["say \"x\"\n"], "[\"say \\\"x\\\"\"]"), Ok(()));
        assert_eq!(lost(&["a\n\nb"], "a b"), Ok(()));
        assert_eq!(lost(&["a /no_think", "/think"], "<u>a <u>"), Ok(()));
        assert_eq!(lost(&["one", "two"], "<u>one"), Err("messages[1].content".to_owned()));
        assert_eq!(lost(&["one"], ""), Err("messages[0].content".to_owned()));
        let parts = json!([{"type": "text", "text": "a"}, {"type": "text", "text": "zz"}]);
        let parts = [json!({"role": "system", "content": "s"}), json!({"role": "user", "content": parts})];
        assert_eq!(check_user_texts(&parts, "a").unwrap_err().param.as_deref(), Some("messages[1].content"));
        assert!(check_user_texts(&parts, "a, zz").is_ok());
    }

    #[test]
    fn what_makes_no_sense_is_named_by_its_place() {
        for (sent, param) in [
            (json!([]), "messages"),
            (json!([1]), "messages[0]"),
            (json!([{"content": "a"}]), "messages[0].role"),
            (json!([{"role": "king", "content": "a"}]), "messages[0].role"),
            (json!([{"role": "user"}]), "messages[0].content"),
            (json!([{"role": "user", "content": 3}]), "messages[0].content"),
            (json!([{"role": "user", "content": [{"type": "image_url"}]}]), "messages[0].content[0]"),
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
