//! Harmony, the form of gpt-oss (OpenAI, "OpenAI harmony response format"): an answer is messages, each with a channel and
//! perhaps a recipient in its head. What is in `final` is for the user, what goes to `functions.name` is a call, and all else
//! is thought.

use super::frame::{Arguments, Frame};
use super::marker::{Begins, begins, first, unfinished};
use super::piece::{CallPart, Piece};
use super::syntax::{JsonText, Progress};

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
pub(super) const WRITTEN: Frame<&str> = Frame {
    first: "<|channel|>commentary to=functions.",
    between: " <|constrain|>json<|message|>",
    next: None,
    last: "<|call|>",
    arguments: Arguments::Json,
    thought: Some(["<|channel|>analysis<|message|>", "<|end|><|start|>assistant"]),
};

/// Bytes of a message's head.
const MAX_HEAD: usize = 1024;

#[derive(Default)]
enum At {
    /// In a head, up to the mark behind it. An answer begins within one.
    #[default]
    Head,
    /// In a message's text.
    Body(Kind),
    /// Between messages.
    Between,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Said,
    Thought,
    Call,
}

/// An answer in this form.
#[derive(Default)]
pub(crate) struct Harmony {
    at: At,
    held: String,
    /// The arguments of the call that comes.
    arguments: String,
    /// Them as JSON, as long as that has not ended: within its texts no mark ends a message.
    json: Option<JsonText>,
}

impl Harmony {
    pub(super) fn is_thinking(&self) -> bool {
        matches!(self.at, At::Body(Kind::Thought))
    }

    pub(super) fn push(&mut self, text: &str, whole: bool) -> Vec<Piece> {
        self.held.push_str(text);
        let mut pieces = Vec::new();
        while self.advance(whole, &mut pieces) {}
        pieces
    }

    fn advance(&mut self, whole: bool, pieces: &mut Vec<Piece>) -> bool {
        match self.at {
            At::Head => self.head(whole, pieces),
            At::Body(kind) => self.body(kind, whole, pieces),
            At::Between => {
                let Some(at) = self.held.find(START) else {
                    if whole {
                        self.held.clear();
                    }
                    return false;
                };
                self.held.drain(..at + START.len());
                self.at = At::Head;
                true
            }
        }
    }

    fn head(&mut self, whole: bool, pieces: &mut Vec<Piece>) -> bool {
        let Some((head, body)) = self.held.split_once(MESSAGE) else {
            // Text without a head is for the user: a model that was held to another form wrote it.
            let text = self.held.trim_start();
            let may_be_head = ["<|", "to=", "assistant", "analysis", "commentary", "final"];
            let is_head = may_be_head.iter().any(|mark| begins(text, mark, whole) != Begins::No);
            if !text.is_empty() && (!is_head || self.held.len() > MAX_HEAD || whole && !text.starts_with("<|")) {
                self.at = At::Body(Kind::Said);
                return true;
            }
            return false;
        };
        let (name, channel) = parsed(head);
        let kind = match name {
            Some(name) => {
                pieces.push(Piece::Call(CallPart::Begin(name.to_owned())));
                self.json = None;
                Kind::Call
            }
            None if channel == Some("final") => Kind::Said,
            None => Kind::Thought,
        };
        self.held = body.to_owned();
        self.at = At::Body(kind);
        true
    }

    fn body(&mut self, kind: Kind, whole: bool, pieces: &mut Vec<Piece>) -> bool {
        let found = match kind {
            Kind::Call => self.end_of_call(whole),
            Kind::Said | Kind::Thought => first(&self.held, &ENDS),
        };
        let certain = match found {
            Some((at, _)) => at,
            None if whole => self.held.len(),
            None => self.held.len() - unfinished(&self.held, &ENDS),
        };
        let behind = self.held.split_off(certain);
        let text = std::mem::replace(&mut self.held, behind);
        if self.json.as_mut().is_some_and(|json| json.take(&text) != Progress::Open) {
            self.json = None;
        }
        match kind {
            Kind::Said => Piece::give(pieces, Piece::Content, text),
            Kind::Thought => Piece::give(pieces, Piece::Reasoning, text),
            Kind::Call => self.call(&text, found.is_some(), whole, pieces),
        }
        let Some((_, end)) = found else {
            if whole {
                self.at = At::Between;
            }
            return false;
        };
        if end != START {
            self.held.drain(..end.len());
        }
        self.at = At::Between;
        true
    }

    /// The end of a call: the first mark behind its JSON, or the first at all where it is none or comes to no end.
    fn end_of_call(&mut self, whole: bool) -> Option<(usize, &'static str)> {
        if self.arguments.is_empty() {
            let kept = self.held.trim_start().len();
            self.held.drain(..self.held.len() - kept);
            self.json = self.held.starts_with('{').then(JsonText::default);
        }
        let from = match self.json.clone().map(|mut json| json.take(&self.held)) {
            Some(Progress::Open) if !whole => return None,
            Some(Progress::Ended(length)) => length,
            _ => 0,
        };
        first(&self.held[from..], &ENDS).map(|(at, end)| (from + at, end))
    }

    /// More of a call's arguments. The token that ends a call ends the answer as well and is no text: where no more will
    /// come, what is whole has ended.
    fn call(&mut self, text: &str, ended: bool, whole: bool, pieces: &mut Vec<Piece>) {
        let text = if self.arguments.is_empty() { text.trim_start() } else { text };
        self.arguments.push_str(text);
        let give = |pieces: &mut Vec<Piece>, text: &str| {
            Piece::give(pieces, |text| Piece::Call(CallPart::Arguments(text)), text);
        };
        give(pieces, text);
        if self.arguments.is_empty() && (ended || whole) {
            give(pieces, "{}");
            self.arguments.push_str("{}");
        }
        if ended || whole && serde_json::from_str::<serde_json::Value>(&self.arguments).is_ok() {
            pieces.push(Piece::Call(CallPart::End));
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
