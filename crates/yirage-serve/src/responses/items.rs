//! Items of a conversation, as messages.

use crate::conversation;
use crate::error::ApiError;
use crate::fields::{FieldTable, Fields, honoured, ignored, wrong};
use crate::tools::named;
use serde_json::{Value, json};

/// Items of tools that other servers run for their models: nothing of them is run or read here, and they are left out.
const ELSEWHERE: &[&str] = &[
    "web_search_call",
    "file_search_call",
    "code_interpreter_call",
    "image_generation_call",
    "tool_search_call",
    "tool_search_output",
    "mcp_list_tools",
    "mcp_approval_request",
    "mcp_approval_response",
    "mcp_call",
    "ghost_snapshot",
    "compaction_trigger",
];

/// The fields of all kinds of items: one that another kind honours changes nothing here.
const ITEM: FieldTable = &[&[
    honoured("type", "{}"),
    honoured("role", "{}"),
    honoured("content", "{}"),
    honoured("call_id", "{}"),
    honoured("name", "{}"),
    honoured("arguments", "{}"),
    honoured("output", "{}"),
    honoured("input", "{}"),
    honoured("action", "{}"),
    // What clients send back of answers.
    ignored("id", "{}"),
    ignored("status", "{}"),
    ignored("phase", "{}"),
    ignored("summary", "{}"),
    ignored("encrypted_content", "{}"),
]];

const THOUGHT: FieldTable = &[&[honoured("type", "{}"), honoured("text", "{}")]];

/// The messages of `input`: a text, or items. What changes nothing in them joins `ignored`.
///
/// # Errors
/// An item that makes no sense, by its place; one that no template knows.
pub(super) fn messages(input: Value, ignored: &mut Vec<String>) -> Result<Vec<Value>, ApiError> {
    let list = match input {
        Value::String(text) => return Ok(vec![json!({"role": "user", "content": text})]),
        Value::Array(list) => list,
        other => return Err(wrong("input", "a string or a list of items", &other)),
    };
    let mut read = ItemConverter::default();
    for (at, item) in list.into_iter().enumerate() {
        if let Some(kind) = item.get("type").and_then(Value::as_str).filter(|kind| ELSEWHERE.contains(kind)) {
            ignored.push(named("input", kind));
            continue;
        }
        let mut item = Fields::within(item, ITEM, &format!("input[{at}]"))?;
        item.leave_out("summary", &json!([]));
        read.item(&mut item, ignored)?;
        ignored.extend(item.finish_part()?);
    }
    conversation::messages("input", read.out, ignored)
}

/// What was sent, with the items that it refers to in the place of their names: agents send so what this server has told.
///
/// # Errors
/// What `find` says of one that is not kept.
pub(super) fn resolved(input: Value, find: &dyn Fn(&str) -> Result<Value, ApiError>) -> Result<Value, ApiError> {
    let Value::Array(items) = input else { return Ok(input) };
    let one = |item: Value| {
        // The type may be left out, where nothing but the name is there.
        let named = match item.get("type") {
            Some(Value::String(kind)) => kind == "item_reference",
            None | Some(Value::Null) => item.get("role").is_none() && item.get("content").is_none(),
            Some(_) => false,
        };
        match item.get("id").and_then(Value::as_str).filter(|_| named) {
            Some(id) => find(id),
            None => Ok(item),
        }
    };
    items.into_iter().map(one).collect()
}

/// The items of `input` as they are listed later: each with an id and a type, a text as a message.
pub(super) fn listed(input: &Value, id: &str) -> Vec<Value> {
    let message = |role: &str, content: &Value| {
        let content = match content {
            Value::String(text) => json!([{"type": "input_text", "text": text}]),
            other => other.clone(),
        };
        json!({"type": "message", "role": role, "status": "completed", "content": content})
    };
    let one = |(at, item): (usize, &Value)| {
        let mut item = match (item.get("type").and_then(Value::as_str), item.get("role").and_then(Value::as_str)) {
            (None | Some("message"), Some(role)) => {
                let mut whole = message(role, &item["content"]);
                if let (Some(whole), Some(item)) = (whole.as_object_mut(), item.as_object()) {
                    let more = item.iter().filter(|(name, _)| !matches!(name.as_str(), "role" | "content"));
                    whole.extend(more.map(|(name, value)| (name.clone(), value.clone())));
                }
                whole
            }
            _ => item.clone(),
        };
        if let Some(item) = item.as_object_mut().filter(|item| !item.get("id").is_some_and(Value::is_string)) {
            item.insert("id".into(), format!("item_{id}_{at}").into());
        }
        item
    };
    match input {
        Value::Array(items) => items.iter().enumerate().map(one).collect(),
        text => vec![one((0, &message("user", text)))],
    }
}

/// Says an answer behind a conversation: where it went on from the assistant's last message, it is the rest of that.
pub(super) fn say(messages: &mut Vec<Value>, answer: Value) {
    let begun = |last: &&mut Value| last["role"] == "assistant" && last["tool_calls"].is_null();
    let Some(last) = messages.last_mut().filter(begun) else { return messages.push(answer) };
    let rest = answer["content"].as_str().unwrap_or_default();
    match &mut last["content"] {
        Value::Array(parts) => parts.push(json!({"type": "text", "text": rest})),
        Value::String(text) => text.push_str(rest),
        other => *other = rest.into(),
    }
    if answer["tool_calls"].is_array() {
        last["tool_calls"] = answer["tool_calls"].clone();
    }
}

#[derive(Default)]
struct ItemConverter {
    out: Vec<Value>,
    /// A thought that belongs to what comes next.
    thought: Option<String>,
}

impl ItemConverter {
    fn item(&mut self, item: &mut Fields, ignored: &mut Vec<String>) -> Result<(), ApiError> {
        let need = |item: &mut Fields, name: &str| {
            let text = item.text(name)?;
            item.need(name, text)
        };
        match item.text("type")?.as_deref().unwrap_or("message") {
            "message" => {
                let (place, content) = (item.at("content"), item.take("content"));
                let content = conversation::parts_with_pictures(&place, item.need("content", content)?, ignored)?;
                let message = json!({"role": need(item, "role")?, "content": content});
                self.push(message);
            }
            "function_call" => {
                let function = json!({"name": need(item, "name")?, "arguments": item.take("arguments")});
                self.call(json!({"id": need(item, "call_id")?, "type": "function", "function": function}));
            }
            // A tool of free text, and a shell, as functions: what was said with them is not to be lost.
            "custom_tool_call" => {
                let arguments = json!({"input": need(item, "input")?});
                let function = json!({"name": need(item, "name")?, "arguments": arguments});
                self.call(json!({"id": need(item, "call_id")?, "type": "function", "function": function}));
            }
            kind @ ("local_shell_call" | "shell_call") => {
                let name = kind.trim_end_matches("_call");
                let function = json!({"name": name, "arguments": item.object("action")?.unwrap_or_default()});
                self.call(json!({"id": need(item, "call_id")?, "type": "function", "function": function}));
            }
            kind @ ("function_call_output" | "custom_tool_call_output" | "local_shell_call_output") => {
                let (place, output) = (item.at("output"), item.take("output"));
                let output = conversation::parts(&place, item.need("output", output)?, ignored)?;
                // The description of a shell's output calls the id of its call `id`.
                let id = match item.text("call_id")? {
                    None if kind == "local_shell_call_output" => need(item, "id")?,
                    id => item.need("call_id", id)?,
                };
                self.out.push(json!({"role": "tool", "tool_call_id": id, "content": output}));
            }
            "reasoning" => {
                let place = item.at("content");
                let mut all = String::new();
                // What is encrypted only its makers can read, and a summary is not what was thought.
                for (at, part) in item.list("content")?.unwrap_or_default().into_iter().enumerate() {
                    let mut part = Fields::within(part, THOUGHT, &format!("{place}[{at}]"))?;
                    part.text("type")?;
                    all.push_str(&need(&mut part, "text")?);
                    part.finish_into(ignored)?;
                }
                self.thought = Some(all).filter(|all| !all.is_empty());
            }
            other => {
                let why = format!("items of the type {other:?} are not understood");
                return Err(ApiError::unsupported(item.place(), &why));
            }
        }
        Ok(())
    }

    fn push(&mut self, mut message: Value) {
        if let Some(thought) = self.thought.take() {
            message["reasoning_content"] = thought.into();
        }
        self.out.push(message);
    }

    /// Calls that follow each other are those of one message.
    fn call(&mut self, call: Value) {
        let last = self.out.last_mut().filter(|last| last["role"] == "assistant" && last["tool_calls"].is_array());
        match last.and_then(|last| last["tool_calls"].as_array_mut()) {
            Some(calls) => calls.push(call),
            None => self.push(json!({"role": "assistant", "content": null, "tool_calls": [call]})),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_sent_is_listed_with_ids() {
        let text = listed(&json!("hi"), "a");
        assert_eq!(text[0]["content"], json!([{"type": "input_text", "text": "hi"}]));
        assert_eq!((&text[0]["id"], &text[0]["role"]), (&json!("item_a_0"), &json!("user")));
        let items =
            json!([{"role": "user", "content": "x", "id": "own"}, {"type": "function_call_output", "output": "2"}]);
        let items = listed(&items, "a");
        assert_eq!((&items[0]["id"], &items[0]["type"]), (&json!("own"), &json!("message")));
        assert_eq!((&items[1]["id"], &items[1]["output"]), (&json!("item_a_1"), &json!("2")));
    }

    #[test]
    fn references_are_what_they_name() {
        let find = |id: &str| match id {
            "msg_1" => Ok(json!({"type": "message", "role": "assistant", "content": "x", "id": "msg_1"})),
            _ => Err(ApiError::not_found("none")),
        };
        let own = json!({"role": "user", "content": "y", "id": "msg_1"});
        let sent =
            json!([{"type": "item_reference", "id": "msg_1"}, {"id": "msg_1"}, own, {"type": null, "id": "msg_1"}]);
        let read = resolved(sent, &find).unwrap();
        let kept = find("msg_1").unwrap();
        assert_eq!(read, json!([kept, kept, own, kept]));
        assert!(resolved(json!([{"type": "item_reference", "id": "msg_2"}]), &find).is_err());
        let nameless = resolved(json!([{"type": "item_reference"}]), &find).unwrap();
        assert!(messages(nameless, &mut Vec::new()).is_err());
        assert_eq!(resolved(json!("a"), &find).unwrap(), json!("a"));
    }

    #[test]
    fn an_answer_that_went_on_is_the_rest_of_its_message() {
        let answer = || json!({"role": "assistant", "content": " name"});
        for (last, said) in [
            (json!({"role": "assistant", "content": "my"}), json!("my name")),
            (json!({"role": "assistant", "content": null}), json!(" name")),
            (
                json!({"role": "assistant", "content": [{"type": "text", "text": "my"}]}),
                json!([{"type": "text", "text": "my"}, {"type": "text", "text": " name"}]),
            ),
        ] {
            let mut messages = vec![last];
            say(&mut messages, answer());
            assert_eq!((messages.len(), &messages[0]["content"]), (1, &said));
        }
        let mut messages = vec![json!({"role": "user", "content": "my"})];
        say(&mut messages, answer());
        assert_eq!(messages.len(), 2);
    }

    #[test]
    fn tools_that_run_elsewhere_and_those_of_text() {
        let sent = json!([
            {"role": "user", "content": "go"},
            {"type": "web_search_call", "id": "ws", "status": "completed", "action": {"type": "search", "query": "q"}},
            {"type": "reasoning", "summary": [{"type": "summary_text", "text": "s"}], "content": null,
                "encrypted_content": "gAAA"},
            {"type": "custom_tool_call", "call_id": "a", "name": "apply_patch", "input": "*** Begin Patch", "status": "completed"},
            {"type": "custom_tool_call_output", "call_id": "a", "output": "Done"},
            {"type": "local_shell_call", "call_id": "b", "status": "completed",
                "action": {"type": "exec", "command": ["ls"], "env": {}}},
            {"type": "local_shell_call_output", "id": "b", "output": "x"},
            {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "t"}], "phase": "commentary",
                "name": "of another kind"},
        ]);
        let mut ignored = Vec::new();
        let read = messages(sent, &mut ignored).unwrap();
        let roles: Vec<&str> = read.iter().map(|message| message["role"].as_str().unwrap()).collect();
        assert_eq!(roles, ["user", "assistant", "tool", "assistant", "tool", "assistant"]);
        assert_eq!(read[1]["tool_calls"][0]["function"]["arguments"]["input"], "*** Begin Patch");
        assert_eq!(read[3]["tool_calls"][0]["function"]["name"], "local_shell");
        for name in ["input.web_search_call", "input.encrypted_content", "input.summary", "input.phase", "input.name"] {
            assert!(ignored.iter().any(|known| known == name), "{name}: {ignored:?}");
        }
    }

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
        let call = |id, arguments: &str| json!({"id": id, "type": "function", "function": {"name": "f", "arguments": arguments}});
        let calls = [call("a", "{\"x\":1}"), call("b", "{}")];
        let wanted = [
            json!({"role": "user", "content": "add"}),
            json!({"role": "assistant", "content": null, "tool_calls": calls, "reasoning_content": "hm"}),
            json!({"role": "tool", "tool_call_id": "a", "content": "2"}),
            json!({"role": "assistant", "content": "two"}),
        ];
        assert_eq!(messages(sent, &mut Vec::new()).unwrap(), wanted);
        assert_eq!(messages(json!("hi"), &mut Vec::new()).unwrap(), [json!({"role": "user", "content": "hi"})]);
        for wrong in [json!(3), json!([]), json!([{"type": "computer_call"}]), json!([{"type": "function_call"}])] {
            assert!(messages(wrong.clone(), &mut Vec::new()).is_err(), "{wrong}");
        }
    }
}
