//! The items of an answer as they grow, and the events that tell of it.

use crate::response_parser::{Call, CallPart, Piece};
use serde_json::{Value, json};

/// An event: its name and what it says.
pub(super) type Event = (&'static str, Value);

/// The items of one answer.
pub(super) struct Output {
    /// What ids of items end with.
    id: String,
    items: Vec<Value>,
    /// The item that grows.
    open: Option<Open>,
    /// The call that grows.
    call: Option<Call>,
    text: String,
    /// Whether the answer ended at its limit, within the item that grows.
    cut: bool,
}

/// An item that grows.
struct Open {
    kind: Kind,
    text: String,
    /// Log-probabilities of a message's tokens, where they are wanted.
    logprobs: Vec<Value>,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Kind {
    Message,
    Reasoning,
}

impl Kind {
    /// The names of its events, of its parts and of their text.
    fn names(self) -> (&'static str, &'static str, &'static str) {
        match self {
            Kind::Message => ("response.output_text.delta", "response.output_text.done", "output_text"),
            Kind::Reasoning => ("response.reasoning_text.delta", "response.reasoning_text.done", "reasoning_text"),
        }
    }
}

impl Output {
    pub(super) fn new(id: &str) -> Output {
        Output { id: id.to_owned(), items: Vec::new(), open: None, call: None, text: String::new(), cut: false }
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

    fn item(&self, kind: Kind, part: Option<Value>) -> Value {
        let content: Vec<Value> = part.into_iter().collect();
        match kind {
            Kind::Message => json!({
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
            Kind::Reasoning => json!({
                "id": self.item_id("rs"),
                "type": "reasoning",
                "summary": [],
                "content": content,
            }),
        }
    }

    /// Takes a piece. A message takes the log-probabilities of the tokens that came until then.
    pub(super) fn push(&mut self, piece: Piece, logprobs: &mut Vec<Value>) -> Vec<Event> {
        let (kind, text) = match piece {
            Piece::Content(text) => (Kind::Message, text),
            Piece::Reasoning(text) => (Kind::Reasoning, text),
            Piece::Call(part) => return self.call_part(part),
        };
        let mut events = Vec::new();
        if self.open.as_ref().is_none_or(|open| open.kind != kind) {
            events = self.close();
            let (item, index) = (self.item(kind, None), self.items.len());
            let id = item["id"].clone();
            events.push(("response.output_item.added", json!({"output_index": index, "item": item})));
            let added = json!({"item_id": id, "output_index": index, "content_index": 0, "part": part(kind, "", &[])});
            events.push(("response.content_part.added", added));
            self.open = Some(Open { kind, text: String::new(), logprobs: Vec::new() });
        }
        let id = self.item(kind, None)["id"].clone();
        let mut delta = json!({"item_id": id, "output_index": self.items.len(), "content_index": 0, "delta": text});
        if kind == Kind::Message {
            delta["logprobs"] = logprobs.as_slice().into();
            self.heard(logprobs);
        }
        events.push((kind.names().0, delta));
        if let Some(open) = &mut self.open {
            open.text.push_str(&text);
        }
        if kind == Kind::Message {
            self.text.push_str(&text);
        }
        events
    }

    /// Gives tokens without a piece to the message that grows.
    pub(super) fn heard(&mut self, logprobs: &mut Vec<Value>) {
        if let Some(open) = self.open.as_mut().filter(|open| open.kind == Kind::Message) {
            open.logprobs.append(logprobs);
        }
    }

    /// Ends the item that grows with the answer, which may have been cut at its limit.
    pub(super) fn end(&mut self, cut: bool) -> Vec<Event> {
        self.cut = cut;
        self.close()
    }

    /// Ends the item that grows. A call that has not ended itself is incomplete.
    fn close(&mut self) -> Vec<Event> {
        if let Some(call) = self.call.take() {
            return self.end_call(&call);
        }
        let Some(Open { kind, text, logprobs }) = self.open.take() else { return Vec::new() };
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
            Kind::Message => json!({"text": text, "logprobs": logprobs}),
            Kind::Reasoning => json!({"text": text}),
        };
        let events = vec![
            (kind.names().1, of(said)),
            ("response.content_part.done", of(json!({"part": part}))),
            ("response.output_item.done", json!({"output_index": index, "item": item})),
        ];
        self.items.push(item);
        events
    }

    fn call_part(&mut self, part: CallPart) -> Vec<Event> {
        match part {
            CallPart::Begin(name) => {
                let mut events = self.close();
                let call = Call { name, ..Call::default() };
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

    fn call_item(&self, call: &Call, status: &str) -> Value {
        json!({
            "id": self.item_id("fc"),
            "type": "function_call",
            "call_id": format!("call_{}_{}", self.id, self.items.len()),
            "name": call.name,
            "arguments": call.arguments,
            "status": status,
        })
    }

    fn end_call(&mut self, call: &Call) -> Vec<Event> {
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

fn part(kind: Kind, text: &str, logprobs: &[Value]) -> Value {
    match kind {
        Kind::Message => json!({"type": kind.names().2, "text": text, "annotations": [], "logprobs": logprobs}),
        Kind::Reasoning => json!({"type": kind.names().2, "text": text}),
    }
}
