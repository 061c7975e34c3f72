//! Items of a conversation, as messages.

use crate::conversation;
use crate::error::ApiError;
use crate::fields::{Fields, Table, honoured, ignored, wrong};
use serde_json::{Value, json};

/// The fields of all kinds of items: one that another kind honours has no effect here, and is refused.
const ITEM: Table = &[&[
    honoured("type", "{}"),
    honoured("role", "{}"),
    honoured("content", "{}"),
    honoured("call_id", "{}"),
    honoured("name", "{}"),
    honoured("arguments", "{}"),
    honoured("output", "{}"),
    // What clients send back of answers.
    ignored("id", "{}"),
    ignored("status", "{}"),
    ignored("phase", "{}"),
    ignored("summary", "{}"),
    ignored("encrypted_content", "{}"),
]];

const THOUGHT: Table = &[&[honoured("type", "{}"), honoured("text", "{}")]];

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
    let mut read = Read::default();
    for (at, item) in list.into_iter().enumerate() {
        let mut item = Fields::within(item, ITEM, &format!("input[{at}]"))?;
        item.leave_out("summary", &json!([]));
        read.item(&mut item, ignored)?;
        item.finish_into(ignored)?;
    }
    conversation::messages("input", read.out, ignored)
}

#[derive(Default)]
struct Read {
    out: Vec<Value>,
    /// A thought that belongs to what comes next.
    thought: Option<String>,
}

impl Read {
    fn item(&mut self, item: &mut Fields, ignored: &mut Vec<String>) -> Result<(), ApiError> {
        let need = |item: &mut Fields, name: &str| {
            let text = item.text(name)?;
            item.need(name, text)
        };
        match item.text("type")?.as_deref().unwrap_or("message") {
            "message" => {
                let (place, content) = (item.at("content"), item.take("content"));
                let content = conversation::parts(&place, item.need("content", content)?, ignored)?;
                let message = json!({"role": need(item, "role")?, "content": content});
                self.push(message);
            }
            "function_call" => {
                let function = json!({"name": need(item, "name")?, "arguments": item.take("arguments")});
                self.call(json!({"id": need(item, "call_id")?, "type": "function", "function": function}));
            }
            "function_call_output" => {
                let (place, output) = (item.at("output"), item.take("output"));
                let output = conversation::parts(&place, item.need("output", output)?, ignored)?;
                self.out.push(json!({"role": "tool", "tool_call_id": need(item, "call_id")?, "content": output}));
            }
            "reasoning" => {
                let place = item.at("content");
                let mut all = String::new();
                for (at, part) in item.list("content")?.unwrap_or_default().into_iter().enumerate() {
                    let mut part = Fields::within(part, THOUGHT, &format!("{place}[{at}]"))?;
                    part.text("type")?;
                    all.push_str(&need(&mut part, "text")?);
                    part.finish_into(ignored)?;
                }
                self.thought = Some(all);
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
        for wrong in [
            json!(3),
            json!([]),
            json!([{"type": "computer_call"}]),
            json!([{"type": "function_call"}]),
            json!([{"role": "user", "content": "a", "name": "b"}]),
        ] {
            assert!(messages(wrong.clone(), &mut Vec::new()).is_err(), "{wrong}");
        }
    }
}
