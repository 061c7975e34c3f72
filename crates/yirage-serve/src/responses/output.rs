//! The items of an answer as they grow, and the events that tell of it.

use crate::response_parser::{CallPart, ResponsePiece, ToolCall};
use serde_json::{Value, json};

/// An event: its name and what it says.
pub(super) type ResponseEvent = (&'static str, Value);

/// The items of one answer.
pub(super) struct ResponseOutput {
    /// What ids of items end with.
    id: String,
    items: Vec<Value>,
    /// The item that grows.
    open: Option<OpenOutputItem>,
    /// The call that grows.
    call: Option<ToolCall>,
    text: String,
    /// Whether the answer ended at its limit, within the item that grows.
    cut: bool,
}

/// An item that grows.
struct OpenOutputItem {
    kind: OutputItemKind,
    text: String,
    /// Log-probabilities of a message's tokens, where they are wanted.
    logprobs: Vec<Value>,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum OutputItemKind {
    Message,
    Reasoning,
}

impl OutputItemKind {
    /// The names of its events, of its parts and of their text.
    fn names(self) -> (&'static str, &'static str, &'static str) {
        match self {
            OutputItemKind::Message => ("response.output_text.delta", "response.output_text.done", "output_text"),
            OutputItemKind::Reasoning => {
                ("response.reasoning_text.delta", "response.reasoning_text.done", "reasoning_text")
            }
        }
    }
}

impl ResponseOutput {
    pub(super) fn new(id: &str) -> ResponseOutput {
        ResponseOutput { id: id.to_owned(), items: Vec::new(), open: None, call: None, text: String::new(), cut: false }
    }

    /// The items that are whole.
    pub(super) fn items(&self) -> &[Value] {
        &self.items
    }

    /// All that was said.
    pub(super) fn text(&self) -> &str {
        &self.text
    }

    fn item_id(&self, kind: &str) -> String {
        format!("{kind}_{}_{}", self.id, self.items.len())
    }

    fn item(&self, kind: OutputItemKind, part: Option<Value>) -> Value {
        let content: Vec<Value> = part.into_iter().collect();
        match kind {
            OutputItemKind::Message => json!({
                "id": self.item_id("msg"),
                "type": "message",
                "role": "assistant",
                "status": match (content.is_empty(), self.cut) {
                    (true, _) => "in_progress",
                    (false, true) => "incomplete",
                    (false, false) => "completed",
                },
                "content": content,
            }),
            OutputItemKind::Reasoning => json!({
                "id": self.item_id("rs"),
                "type": "reasoning",
                "summary": [],
                "content": content,
            }),
        }
    }

    /// Takes a piece. A message takes the log-probabilities of the tokens that came until then.
    pub(super) fn push(&mut self, piece: ResponsePiece, logprobs: &mut Vec<Value>) -> Vec<ResponseEvent> {
        let (kind, text) = match piece {
            ResponsePiece::Content(text) => (OutputItemKind::Message, text),
            ResponsePiece::Reasoning(text) => (OutputItemKind::Reasoning, text),
            ResponsePiece::Call(part) => return self.call_part(part),
        };
        let mut events = Vec::new();
        if self.open.as_ref().is_none_or(|open| open.kind != kind) {
            events = self.close();
            let (item, index) = (self.item(kind, None), self.items.len());
            let id = item["id"].clone();
            events.push(("response.output_item.added", json!({"output_index": index, "item": item})));
            let added = json!({"item_id": id, "output_index": index, "content_index": 0, "part": part(kind, "", &[])});
            events.push(("response.content_part.added", added));
            self.open = Some(OpenOutputItem { kind, text: String::new(), logprobs: Vec::new() });
        }
        let id = self.item(kind, None)["id"].clone();
        let mut delta = json!({"item_id": id, "output_index": self.items.len(), "content_index": 0, "delta": text});
        if kind == OutputItemKind::Message {
            delta["logprobs"] = logprobs.as_slice().into();
            self.heard(logprobs);
        }
        events.push((kind.names().0, delta));
        if let Some(open) = &mut self.open {
            open.text.push_str(&text);
        }
        if kind == OutputItemKind::Message {
            self.text.push_str(&text);
        }
        events
    }

    /// Gives tokens without a piece to the message that grows.
    pub(super) fn heard(&mut self, logprobs: &mut Vec<Value>) {
        if let Some(open) = self.open.as_mut().filter(|open| open.kind == OutputItemKind::Message) {
            open.logprobs.append(logprobs);
        }
    }

    /// Ends the item that grows with the answer, which may have been cut at its limit.
    pub(super) fn end(&mut self, cut: bool) -> Vec<ResponseEvent> {
        self.cut = cut;
        self.close()
    }

    /// Ends the item that grows. A call that has not ended itself is incomplete.
    fn close(&mut self) -> Vec<ResponseEvent> {
        if let Some(call) = self.call.take() {
            return self.end_call(&call);
        }
        let Some(OpenOutputItem { kind, text, logprobs }) = self.open.take() else { return Vec::new() };
        let part = part(kind, &text, &logprobs);
        let (item, index) = (self.item(kind, Some(part.clone())), self.items.len());
        let of = |more: Value| {
            let mut event = json!({"item_id": item["id"], "output_index": index, "content_index": 0});
            if let (Some(event), Value::Object(more)) = (event.as_object_mut(), more) {
                event.extend(more);
            }
            event
        };
        let said = match kind {
            OutputItemKind::Message => json!({"text": text, "logprobs": logprobs}),
            OutputItemKind::Reasoning => json!({"text": text}),
        };
        let events = vec![
            (kind.names().1, of(said)),
            ("response.content_part.done", of(json!({"part": part}))),
            ("response.output_item.done", json!({"output_index": index, "item": item})),
        ];
        self.items.push(item);
        events
    }

    fn call_part(&mut self, part: CallPart) -> Vec<ResponseEvent> {
        match part {
            CallPart::Begin(name) => {
                let mut events = self.close();
                let call = ToolCall { name, ..ToolCall::default() };
                let item = self.call_item(&call, "in_progress");
                events.push(("response.output_item.added", json!({"output_index": self.items.len(), "item": item})));
                self.call = Some(call);
                events
            }
            CallPart::Arguments(text) => {
                let Some(call) = &mut self.call else { return Vec::new() };
                call.arguments.push_str(&text);
                let delta = json!({"item_id": self.item_id("fc"), "output_index": self.items.len(), "delta": text});
                vec![("response.function_call_arguments.delta", delta)]
            }
            CallPart::End => {
                if let Some(call) = &mut self.call {
                    call.ended = true;
                }
                self.close()
            }
        }
    }

    fn call_item(&self, call: &ToolCall, status: &str) -> Value {
        json!({
            "id": self.item_id("fc"),
            "type": "function_call",
            "call_id": format!("call_{}_{}", self.id, self.items.len()),
            "name": call.name,
            "arguments": call.arguments,
            "status": status,
        })
    }

    fn end_call(&mut self, call: &ToolCall) -> Vec<ResponseEvent> {
        let item = self.call_item(call, if call.ended { "completed" } else { "incomplete" });
        let (id, index) = (&item["id"], self.items.len());
        let whole = json!({"item_id": id, "output_index": index, "arguments": call.arguments, "name": call.name});
        let events = vec![
            ("response.function_call_arguments.done", whole),
            ("response.output_item.done", json!({"output_index": index, "item": item})),
        ];
        self.items.push(item);
        events
    }

    /// The message that a later request goes on from.
    pub(super) fn message(&self) -> Value {
        let function = |item: &Value| {
            let arguments: Value =
                item["arguments"].as_str().and_then(|a| serde_json::from_str(a).ok()).unwrap_or(json!({}));
            let function = json!({"name": item["name"], "arguments": arguments});
            json!({"id": item["call_id"], "type": "function", "function": function})
        };
        let calls: Vec<Value> =
            self.items.iter().filter(|item| item["type"] == "function_call").map(function).collect();
        let mut message = json!({"role": "assistant", "content": self.text});
        if !calls.is_empty() {
            message["tool_calls"] = calls.into();
        }
        message
    }
}

fn part(kind: OutputItemKind, text: &str, logprobs: &[Value]) -> Value {
    match kind {
        OutputItemKind::Message => {
            json!({"type": kind.names().2, "text": text, "annotations": [], "logprobs": logprobs})
        }
        OutputItemKind::Reasoning => json!({"type": kind.names().2, "text": text}),
    }
}
