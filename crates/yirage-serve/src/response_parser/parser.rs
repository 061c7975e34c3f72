//! A stream of text cut into pieces as it comes. What may be the beginning of a marker is held back until it is known.

use super::declared::DeclaredTools;
use super::family::{Calls, OutputFormat};
use super::forms::ToolCallForm;
use super::harmony::Harmony;
use super::marker::{Begins, begins, first, unfinished};
use super::piece::{CallPart, ResponsePiece};
use super::syntax::{ReaderContext, SyntaxReader, SyntaxStep};
use super::thoughts::ThoughtMarks;

/// Cuts one answer.
pub(crate) enum ResponseParser {
    Marked(Box<MarkerParser>),
    Harmony(Box<Harmony>),
}

impl ResponseParser {
    /// A parser for an answer of a family to a request with tools or without; `within_thought` is whether the prompt ends
    /// in an open thought.
    pub(crate) fn new(family: &OutputFormat, within_thought: bool, declared: DeclaredTools) -> ResponseParser {
        match family.calls {
            Some(Calls::Harmony) => ResponseParser::Harmony(Box::default()),
            Some(Calls::Form(form)) => marked(family.thoughts, within_thought, Some(form), declared),
            None => marked(family.thoughts, within_thought, None, declared),
        }
    }

    /// Whether what comes now is thought.
    pub(crate) fn is_thinking(&self) -> bool {
        match self {
            ResponseParser::Marked(marked) => matches!(marked.at, MarkerState::Thinking),
            ResponseParser::Harmony(harmony) => harmony.is_thinking(),
        }
    }

    /// Takes text, and gives what is certain by now.
    pub(crate) fn push(&mut self, text: &str) -> Vec<ResponsePiece> {
        match self {
            ResponseParser::Marked(marked) => marked.push(text, false),
            ResponseParser::Harmony(harmony) => harmony.push(text, false),
        }
    }

    /// What is left at the end.
    pub(crate) fn finish(self) -> Vec<ResponsePiece> {
        match self {
            ResponseParser::Marked(mut marked) => marked.push("", true),
            ResponseParser::Harmony(mut harmony) => harmony.push("", true),
        }
    }
}

fn marked(
    thoughts: Option<ThoughtMarks>,
    within_thought: bool,
    form: Option<&'static ToolCallForm>,
    declared: DeclaredTools,
) -> ResponseParser {
    let within = within_thought && thoughts.is_some();
    let openers = form.map_or_else(Vec::new, |form| form.openers.iter().map(|opener| opener.text).collect());
    let at = if within { MarkerState::Thinking } else { MarkerState::Start };
    let (held, said) = (String::new(), false);
    ResponseParser::Marked(Box::new(MarkerParser {
        at,
        thoughts,
        form,
        openers,
        declared,
        buffer: held,
        trim: within,
        said,
    }))
}

/// An answer whose parts stand between marks.
pub(crate) struct MarkerParser {
    at: MarkerState,
    thoughts: Option<ThoughtMarks>,
    form: Option<&'static ToolCallForm>,
    openers: Vec<&'static str>,
    declared: DeclaredTools,
    /// Text that is not read yet.
    buffer: String,
    /// White space between parts is not said.
    trim: bool,
    /// Whether something was said.
    said: bool,
}

enum MarkerState {
    /// Before anything was said: thoughts may begin here, and calls without marks.
    Start,
    Thinking,
    Saying,
    Calling(Calling),
}

/// A section of calls.
struct Calling {
    reader: SyntaxReader,
    /// Which kind of the form's syntax is tried.
    syntax: usize,
    known: bool,
    /// What of the section was read: it is text again where it holds no call.
    read: String,
    /// Whether there was a call.
    called: bool,
    /// Whether the last one has no end yet.
    open: bool,
}

impl MarkerParser {
    fn push(&mut self, text: &str, whole: bool) -> Vec<ResponsePiece> {
        self.buffer.push_str(text);
        let mut pieces = Vec::new();
        while self.advance(whole, &mut pieces) {}
        pieces
    }

    /// One step; false where more text is needed.
    fn advance(&mut self, whole: bool, pieces: &mut Vec<ResponsePiece>) -> bool {
        if self.trim {
            let kept = self.buffer.trim_start().len();
            self.buffer.drain(..self.buffer.len() - kept);
            if kept == 0 {
                return false;
            }
            self.trim = false;
        }
        match self.at {
            MarkerState::Start => self.start(whole),
            MarkerState::Thinking => self.think(whole, pieces),
            MarkerState::Saying => self.say(whole, pieces),
            MarkerState::Calling(_) => self.call(whole, pieces),
        }
    }

    /// Decides what the answer begins with.
    fn start(&mut self, whole: bool) -> bool {
        let text = self.buffer.trim_start();
        if let Some(thoughts) = self.thoughts {
            // What a mark ends with is looked for without its white space, which models forget.
            match begins(text, thoughts.open.trim_end(), whole) {
                Begins::Yes => {
                    self.buffer = text[thoughts.open.trim_end().len()..].to_owned();
                    (self.at, self.trim) = (MarkerState::Thinking, true);
                    return true;
                }
                Begins::Maybe => return false,
                Begins::No => {}
            }
        }
        let Some(form) = self.form else {
            self.at = MarkerState::Saying;
            return true;
        };
        if text.is_empty() && !whole {
            return false;
        }
        if form.begins_open {
            return self.opened(form, String::new(), true, whole);
        }
        for marker in form.at_start {
            match begins(text, marker, whole) {
                Begins::Yes => {
                    self.begin_call(form, 0, true, String::new());
                    return true;
                }
                Begins::Maybe => return false,
                Begins::No => {}
            }
        }
        self.at = MarkerState::Saying;
        true
    }

    /// Behind an opener: a call, or text for the user where the form has it there.
    fn opened(&mut self, form: &'static ToolCallForm, opener: String, known: bool, whole: bool) -> bool {
        if let Some(mark) = form.for_user {
            match begins(&self.buffer, mark, whole) {
                Begins::Yes => {
                    self.buffer.drain(..mark.len());
                    self.at = MarkerState::Saying;
                    return true;
                }
                Begins::Maybe => {
                    self.buffer.insert_str(0, &opener);
                    return false;
                }
                Begins::No => {}
            }
        }
        self.begin_call(form, 0, known, opener);
        true
    }

    fn begin_call(&mut self, form: &'static ToolCallForm, syntax: usize, known: bool, opener: String) {
        self.at = match form.reader(syntax, known) {
            Some(reader) => {
                MarkerState::Calling(Calling { reader, syntax, known, read: opener, called: false, open: false })
            }
            None => {
                self.buffer.insert_str(0, &opener);
                MarkerState::Saying
            }
        };
    }

    fn think(&mut self, whole: bool, pieces: &mut Vec<ResponsePiece>) -> bool {
        let close = self.thoughts.map_or("", |thoughts| thoughts.close);
        if let Some((thought, behind)) = self.buffer.split_once(close) {
            ResponsePiece::give(pieces, ResponsePiece::Reasoning, thought.trim_end());
            self.buffer = behind.to_owned();
            (self.at, self.trim) = (MarkerState::Start, true);
            // Thoughts do not follow each other.
            self.thoughts = None;
            return true;
        }
        let certain = match whole {
            true => self.buffer.len(),
            false => self.buffer[..self.buffer.len() - unfinished(&self.buffer, &[close])].trim_end().len(),
        };
        let held = self.buffer.split_off(certain);
        ResponsePiece::give(pieces, ResponsePiece::Reasoning, std::mem::replace(&mut self.buffer, held));
        false
    }

    /// Gives text up to an opener.
    fn say(&mut self, whole: bool, pieces: &mut Vec<ResponsePiece>) -> bool {
        let Some((at, opener)) = first(&self.buffer, &self.openers) else {
            let mut certain =
                if whole { self.buffer.len() } else { self.buffer.len() - unfinished(&self.buffer, &self.openers) };
            // White space alone before calls is nothing that was said.
            if !whole && !self.said && !self.openers.is_empty() && self.buffer[..certain].trim_start().is_empty() {
                certain = 0;
            }
            let held = self.buffer.split_off(certain);
            let text = std::mem::replace(&mut self.buffer, held);
            self.give(text, pieces);
            return false;
        };
        let behind = self.buffer.split_off(at);
        let before = std::mem::replace(&mut self.buffer, behind);
        if self.said || !before.trim_start().is_empty() {
            self.give(before, pieces);
        }
        let Some(form) = self.form else { return false };
        let stays = form.openers.iter().any(|one| one.text == opener && one.stays);
        if stays {
            self.begin_call(form, 0, false, String::new());
            return true;
        }
        self.buffer.drain(..opener.len());
        self.opened(form, opener.to_owned(), false, whole)
    }

    fn give(&mut self, text: String, pieces: &mut Vec<ResponsePiece>) {
        self.said |= !text.is_empty();
        ResponsePiece::give(pieces, ResponsePiece::Content, text);
    }

    fn call(&mut self, whole: bool, pieces: &mut Vec<ResponsePiece>) -> bool {
        let MarkerState::Calling(calling) = &mut self.at else { return false };
        let mut parts = Vec::new();
        let mut seen = ReaderContext { text: &self.buffer, whole, declared: &self.declared, parts: &mut parts };
        let step = calling.reader.step(&mut seen);
        calling.called |= !parts.is_empty();
        calling.open = parts.last().map_or(calling.open, |part| *part != CallPart::End);
        pieces.extend(parts.into_iter().map(ResponsePiece::Call));
        match step {
            SyntaxStep::Read(length) => {
                if calling.called {
                    calling.read.clear();
                    self.buffer.drain(..length);
                } else {
                    calling.read.extend(self.buffer.drain(..length));
                }
                true
            }
            SyntaxStep::More if !whole => false,
            SyntaxStep::Done(length) => {
                // What is left of a call that the answer's end cut off is no text.
                let read = if whole && calling.open { self.buffer.len() } else { length };
                self.buffer.drain(..read);
                (self.at, self.trim) = (MarkerState::Saying, true);
                true
            }
            SyntaxStep::More | SyntaxStep::Refused => {
                self.refused(pieces);
                true
            }
        }
    }

    /// What was read is no call by this kind of syntax: it is tried by the next, and is text where there is none.
    fn refused(&mut self, pieces: &mut Vec<ResponsePiece>) {
        let MarkerState::Calling(calling) = std::mem::replace(&mut self.at, MarkerState::Saying) else { return };
        if calling.called {
            return;
        }
        let next = calling.syntax + 1;
        let Some(form) = self.form.filter(|form| next < form.syntaxes.len()) else {
            // Its opener is not looked at again.
            let text = if calling.read.is_empty() {
                self.buffer.drain(..char_length(&self.buffer)).collect()
            } else {
                calling.read
            };
            self.give(text, pieces);
            return;
        };
        let opener = form.openers.iter().find(|one| !one.stays && calling.read.starts_with(one.text));
        let opener = opener.map_or(0, |one| one.text.len());
        self.buffer.insert_str(0, &calling.read[opener..]);
        self.begin_call(form, next, calling.known, calling.read[..opener].to_owned());
    }
}

/// Bytes of the first character.
fn char_length(text: &str) -> usize {
    text.chars().next().map_or(0, char::len_utf8)
}
