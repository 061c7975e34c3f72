//! Harmony, the form of gpt-oss (OpenAI, "OpenAI harmony response format"): an answer is messages, each with a channel and
//! perhaps a recipient in its head. What is in `final` is for the user, what goes to `functions.name` is a call, and all else
//! is thought.

use super::frame::{ArgumentSyntax, CallFrame};
use super::marker::{Begins, begins, first, unfinished};
use super::piece::{CallPart, ResponsePiece};
use super::syntax::{JsonProgress, JsonText};

/// The special tokens of the form.
pub(super) const MARKS: [&str; 7] =
    ["<|start|>", "<|end|>", "<|message|>", "<|channel|>", "<|constrain|>", "<|call|>", "<|return|>"];

const START: &str = "<|start|>";
const MESSAGE: &str = "<|message|>";
const ENDS: [&str; 4] = ["<|end|>", "<|call|>", "<|return|>", START];
/// What a tool's name stands behind.
const RECIPIENT: &str = "to=functions.";
/// How a call that has to come is written, as models do and not as templates write one of the past. A model ends its
/// answer with the call.
pub(super) const WRITTEN: CallFrame<&str> = CallFrame {
    first: "<|channel|>commentary to=functions.",
    between: " <|constrain|>json<|message|>",
    next: None,
    last: "<|call|>",
    arguments: ArgumentSyntax::Json,
    thought: Some(["<|channel|>analysis<|message|>", "<|end|><|start|>assistant"]),
};

/// Bytes of a message's head.
const MAX_HEAD: usize = 1024;

#[derive(Default)]
enum HarmonyState {
    /// In a head, up to the mark behind it. An answer begins within one.
    #[default]
    Head,
    /// In a message's text.
    Body(HarmonyMessageKind),
    /// Between messages.
    Between,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum HarmonyMessageKind {
    Said,
    Thought,
    Call,
}

/// An answer in this form.
#[derive(Default)]
pub(crate) struct Harmony {
    at: HarmonyState,
    buffer: String,
    /// The arguments of the call that comes.
    arguments: String,
    /// Them as JSON, as long as that has not ended: within its texts no mark ends a message.
    json: Option<JsonText>,
}

impl Harmony {
    pub(super) fn is_thinking(&self) -> bool {
        matches!(self.at, HarmonyState::Body(HarmonyMessageKind::Thought))
    }

    pub(super) fn push(&mut self, text: &str, whole: bool) -> Vec<ResponsePiece> {
        self.buffer.push_str(text);
        let mut pieces = Vec::new();
        while self.advance(whole, &mut pieces) {}
        pieces
    }

    fn advance(&mut self, whole: bool, pieces: &mut Vec<ResponsePiece>) -> bool {
        match self.at {
            HarmonyState::Head => self.head(whole, pieces),
            HarmonyState::Body(kind) => self.body(kind, whole, pieces),
            HarmonyState::Between => {
                let Some(at) = self.buffer.find(START) else {
                    if whole {
                        self.buffer.clear();
                    }
                    return false;
                };
                self.buffer.drain(..at + START.len());
                self.at = HarmonyState::Head;
                true
            }
        }
    }

    fn head(&mut self, whole: bool, pieces: &mut Vec<ResponsePiece>) -> bool {
        let Some((head, body)) = self.buffer.split_once(MESSAGE) else {
            // Text without a head is for the user: a model that was held to another form wrote it.
            let text = self.buffer.trim_start();
            let may_be_head = ["<|", "to=", "assistant", "analysis", "commentary", "final"];
            let is_head = may_be_head.iter().any(|mark| begins(text, mark, whole) != Begins::No);
            if !text.is_empty() && (!is_head || self.buffer.len() > MAX_HEAD || whole && !text.starts_with("<|")) {
                self.at = HarmonyState::Body(HarmonyMessageKind::Said);
                return true;
            }
            return false;
        };
        let (name, channel) = parsed(head);
        let kind = match name {
            Some(name) => {
                pieces.push(ResponsePiece::Call(CallPart::Begin(name.to_owned())));
                self.json = None;
                HarmonyMessageKind::Call
            }
            None if channel == Some("final") => HarmonyMessageKind::Said,
            None => HarmonyMessageKind::Thought,
        };
        self.buffer = body.to_owned();
        self.at = HarmonyState::Body(kind);
        true
    }

    fn body(&mut self, kind: HarmonyMessageKind, whole: bool, pieces: &mut Vec<ResponsePiece>) -> bool {
        let found = match kind {
            HarmonyMessageKind::Call => self.end_of_call(whole),
            HarmonyMessageKind::Said | HarmonyMessageKind::Thought => first(&self.buffer, &ENDS),
        };
        let certain = match found {
            Some((at, _)) => at,
            None if whole => self.buffer.len(),
            None => self.buffer.len() - unfinished(&self.buffer, &ENDS),
        };
        let behind = self.buffer.split_off(certain);
        let text = std::mem::replace(&mut self.buffer, behind);
        if self.json.as_mut().is_some_and(|json| json.take(&text) != JsonProgress::Open) {
            self.json = None;
        }
        match kind {
            HarmonyMessageKind::Said => ResponsePiece::give(pieces, ResponsePiece::Content, text),
            HarmonyMessageKind::Thought => ResponsePiece::give(pieces, ResponsePiece::Reasoning, text),
            HarmonyMessageKind::Call => self.call(&text, found.is_some(), whole, pieces),
        }
        let Some((_, end)) = found else {
            if whole {
                self.at = HarmonyState::Between;
            }
            return false;
        };
        if end != START {
            self.buffer.drain(..end.len());
        }
        self.at = HarmonyState::Between;
        true
    }

    /// The end of a call: the first mark behind its JSON, or the first at all where it is none or comes to no end.
    fn end_of_call(&mut self, whole: bool) -> Option<(usize, &'static str)> {
        if self.arguments.is_empty() {
            let kept = self.buffer.trim_start().len();
            self.buffer.drain(..self.buffer.len() - kept);
            self.json = self.buffer.starts_with('{').then(JsonText::default);
        }
        let from = match self.json.clone().map(|mut json| json.take(&self.buffer)) {
            Some(JsonProgress::Open) if !whole => return None,
            Some(JsonProgress::Ended(length)) => length,
            _ => 0,
        };
        first(&self.buffer[from..], &ENDS).map(|(at, end)| (from + at, end))
    }

    /// More of a call's arguments. The token that ends a call ends the answer as well and is no text: where no more will
    /// come, what is whole has ended.
    fn call(&mut self, text: &str, ended: bool, whole: bool, pieces: &mut Vec<ResponsePiece>) {
        let text = if self.arguments.is_empty() { text.trim_start() } else { text };
        self.arguments.push_str(text);
        let give = |pieces: &mut Vec<ResponsePiece>, text: &str| {
            ResponsePiece::give(pieces, |text| ResponsePiece::Call(CallPart::Arguments(text)), text);
        };
        give(pieces, text);
        if self.arguments.is_empty() && (ended || whole) {
            give(pieces, "{}");
            self.arguments.push_str("{}");
        }
        if ended || whole && serde_json::from_str::<serde_json::Value>(&self.arguments).is_ok() {
            pieces.push(ResponsePiece::Call(CallPart::End));
        }
        if ended {
            self.arguments.clear();
        }
    }
}

/// The tool that a message is for, and its channel.
fn parsed(head: &str) -> (Option<&str>, Option<&str>) {
    let word = |text: &'_ str| text.find(|c: char| c.is_whitespace() || c == '<').unwrap_or(text.len());
    let behind = |mark: &str| head.split_once(mark).map(|(_, rest)| &rest[..word(rest)]);
    (behind(RECIPIENT).filter(|name| !name.is_empty()), behind("<|channel|>"))
}
