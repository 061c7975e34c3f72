//! `name` and then `{"argument": value}`: the name ends at a marker, and so does the call.

use super::json_text::{JsonProgress, JsonText};
use super::{ReaderContext, SyntaxStep, is_name};
use crate::response_parser::marker::{Begins, begins, first};

/// What stands around names and arguments.
#[derive(Debug)]
pub(in crate::response_parser) struct NamedSyntax {
    /// What stands before each call behind the opener; empty where the opener begins the call.
    pub(in crate::response_parser) open: &'static str,
    /// What a name ends with.
    pub(in crate::response_parser) name_ends: &'static [&'static str],
    /// What may stand between the name's end and the arguments.
    pub(in crate::response_parser) before_arguments: &'static [&'static str],
    /// What stands behind the arguments of each call, one after another; what is absent is not missed.
    pub(in crate::response_parser) close: &'static [&'static str],
    /// What stands behind all calls; none where the next call has an opener of its own.
    pub(in crate::response_parser) end: Option<&'static str>,
    /// From what stands in the place of the name to the name.
    pub(in crate::response_parser) name: fn(&str) -> &str,
}

/// Bytes of what stands in the place of a name.
const MAX_NAME: usize = 512;

enum NamedState {
    /// Before a call.
    Open,
    Name,
    /// Behind a name, before its arguments.
    Before,
    Arguments(JsonText),
    /// Behind the arguments: the next of the closers that may come.
    Close(usize),
}

pub(in crate::response_parser) struct NamedReader {
    form: &'static NamedSyntax,
    /// Whether only tools that were declared are called.
    known: bool,
    at: NamedState,
    name: String,
    calls: usize,
}

impl NamedReader {
    pub(super) fn new(form: &'static NamedSyntax, known: bool) -> NamedReader {
        NamedReader { form, known, at: NamedState::Open, name: String::new(), calls: 0 }
    }

    pub(super) fn step(&mut self, seen: &mut ReaderContext<'_>) -> SyntaxStep {
        match &mut self.at {
            NamedState::Open => self.open(seen),
            NamedState::Name => self.name(seen),
            NamedState::Before => self.before(seen),
            NamedState::Arguments(json) => match json.take(seen.text) {
                JsonProgress::Open if seen.text.is_empty() => SyntaxStep::More,
                JsonProgress::Open => {
                    seen.arguments(seen.text);
                    SyntaxStep::Read(seen.text.len())
                }
                JsonProgress::Ended(length) => {
                    seen.arguments(&seen.text[..length]);
                    seen.end();
                    self.calls += 1;
                    self.at = NamedState::Close(0);
                    SyntaxStep::Read(length)
                }
                JsonProgress::Broken => SyntaxStep::Done(0),
            },
            NamedState::Close(next) => {
                let next = *next;
                self.close(next, seen)
            }
        }
    }

    fn open(&mut self, seen: &ReaderContext<'_>) -> SyntaxStep {
        let over = if self.calls > 0 { SyntaxStep::Done(0) } else { SyntaxStep::Refused };
        if self.calls > 0 && self.form.end.is_none() {
            return SyntaxStep::Done(0);
        }
        let Some(blank) = seen.blank() else { return seen.more(over) };
        let text = &seen.text[blank..];
        if let Some(end) = self.form.end {
            match begins(text, end, seen.whole) {
                Begins::Yes => {
                    return if self.calls > 0 { SyntaxStep::Done(blank + end.len()) } else { SyntaxStep::Refused };
                }
                Begins::Maybe => return SyntaxStep::More,
                Begins::No => {}
            }
        }
        match begins(text, self.form.open, seen.whole) {
            Begins::Yes => {
                self.at = NamedState::Name;
                SyntaxStep::Read(blank + self.form.open.len())
            }
            Begins::Maybe => SyntaxStep::More,
            Begins::No => over,
        }
    }

    fn name(&mut self, seen: &mut ReaderContext<'_>) -> SyntaxStep {
        let Some((length, end)) = first(seen.text, self.form.name_ends) else {
            return if seen.text.len() > MAX_NAME { self.refused() } else { seen.more(self.refused()) };
        };
        let name = (self.form.name)(seen.text[..length].trim());
        if !is_name(name) || self.known && !seen.declared.has(name) {
            return self.refused();
        }
        name.clone_into(&mut self.name);
        self.at = NamedState::Before;
        // A name may end where its arguments begin.
        SyntaxStep::Read(length + if end == "{" { 0 } else { end.len() })
    }

    fn before(&mut self, seen: &mut ReaderContext<'_>) -> SyntaxStep {
        let Some(blank) = seen.blank() else { return seen.more(self.refused()) };
        let text = &seen.text[blank..];
        if text.starts_with('{') {
            seen.begin(&self.name);
            self.at = NamedState::Arguments(JsonText::default());
            return SyntaxStep::Read(blank);
        }
        for marker in self.form.before_arguments {
            match begins(text, marker, seen.whole) {
                Begins::Yes => return SyntaxStep::Read(blank + marker.len()),
                Begins::Maybe => return SyntaxStep::More,
                Begins::No => {}
            }
        }
        self.refused()
    }

    fn close(&mut self, next: usize, seen: &ReaderContext<'_>) -> SyntaxStep {
        let Some(marker) = self.form.close.get(next) else {
            self.at = NamedState::Open;
            return SyntaxStep::Read(0);
        };
        let Some(blank) = seen.blank() else { return seen.more(SyntaxStep::Done(0)) };
        match begins(&seen.text[blank..], marker, seen.whole) {
            Begins::Maybe => SyntaxStep::More,
            found => {
                self.at = NamedState::Close(next + 1);
                SyntaxStep::Read(if found == Begins::Yes { blank + marker.len() } else { 0 })
            }
        }
    }

    fn refused(&self) -> SyntaxStep {
        if self.calls > 0 { SyntaxStep::Done(0) } else { SyntaxStep::Refused }
    }
}
