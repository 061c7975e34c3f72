//! `name` and then `{"argument": value}`: the name ends at a marker, and so does the call.

use super::json_text::{JsonText, Progress};
use super::{Seen, Step, is_name};
use crate::response_parser::marker::{Begins, begins, first};

/// What stands around names and arguments.
#[derive(Debug)]
pub(in crate::response_parser) struct Named {
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

enum At {
    /// Before a call.
    Open,
    Name,
    /// Behind a name, before its arguments.
    Before,
    Arguments(JsonText),
    /// Behind the arguments: the next of the closers that may come.
    Close(usize),
}

pub(in crate::response_parser) struct Reader {
    form: &'static Named,
    /// Whether only tools that were declared are called.
    known: bool,
    at: At,
    name: String,
    calls: usize,
}

impl Reader {
    pub(super) fn new(form: &'static Named, known: bool) -> Reader {
        Reader { form, known, at: At::Open, name: String::new(), calls: 0 }
    }

    pub(super) fn step(&mut self, seen: &mut Seen<'_>) -> Step {
        match &mut self.at {
            At::Open => self.open(seen),
            At::Name => self.name(seen),
            At::Before => self.before(seen),
            At::Arguments(json) => match json.take(seen.text) {
                Progress::Open if seen.text.is_empty() => Step::More,
                Progress::Open => {
                    seen.arguments(seen.text);
                    Step::Read(seen.text.len())
                }
                Progress::Ended(length) => {
                    seen.arguments(&seen.text[..length]);
                    seen.end();
                    self.calls += 1;
                    self.at = At::Close(0);
                    Step::Read(length)
                }
                Progress::Broken => Step::Done(0),
            },
            At::Close(next) => {
                let next = *next;
                self.close(next, seen)
            }
        }
    }

    fn open(&mut self, seen: &Seen<'_>) -> Step {
        let over = if self.calls > 0 { Step::Done(0) } else { Step::Refused };
        if self.calls > 0 && self.form.end.is_none() {
            return Step::Done(0);
        }
        let Some(blank) = seen.blank() else { return seen.more(over) };
        let text = &seen.text[blank..];
        if let Some(end) = self.form.end {
            match begins(text, end, seen.whole) {
                Begins::Yes => return if self.calls > 0 { Step::Done(blank + end.len()) } else { Step::Refused },
                Begins::Maybe => return Step::More,
                Begins::No => {}
            }
        }
        match begins(text, self.form.open, seen.whole) {
            Begins::Yes => {
                self.at = At::Name;
                Step::Read(blank + self.form.open.len())
            }
            Begins::Maybe => Step::More,
            Begins::No => over,
        }
    }

    fn name(&mut self, seen: &mut Seen<'_>) -> Step {
        let Some((length, end)) = first(seen.text, self.form.name_ends) else {
            return if seen.text.len() > MAX_NAME { self.refused() } else { seen.more(self.refused()) };
        };
        let name = (self.form.name)(seen.text[..length].trim());
        if !is_name(name) || self.known && !seen.declared.has(name) {
            return self.refused();
        }
        name.clone_into(&mut self.name);
        self.at = At::Before;
        // A name may end where its arguments begin.
        Step::Read(length + if end == "{" { 0 } else { end.len() })
    }

    fn before(&mut self, seen: &mut Seen<'_>) -> Step {
        let Some(blank) = seen.blank() else { return seen.more(self.refused()) };
        let text = &seen.text[blank..];
        if text.starts_with('{') {
            seen.begin(&self.name);
            self.at = At::Arguments(JsonText::default());
            return Step::Read(blank);
        }
        for marker in self.form.before_arguments {
            match begins(text, marker, seen.whole) {
                Begins::Yes => return Step::Read(blank + marker.len()),
                Begins::Maybe => return Step::More,
                Begins::No => {}
            }
        }
        self.refused()
    }

    fn close(&mut self, next: usize, seen: &Seen<'_>) -> Step {
        let Some(marker) = self.form.close.get(next) else {
            self.at = At::Open;
            return Step::Read(0);
        };
        let Some(blank) = seen.blank() else { return seen.more(Step::Done(0)) };
        match begins(&seen.text[blank..], marker, seen.whole) {
            Begins::Maybe => Step::More,
            found => {
                self.at = At::Close(next + 1);
                Step::Read(if found == Begins::Yes { blank + marker.len() } else { 0 })
            }
        }
    }

    fn refused(&self) -> Step {
        if self.calls > 0 { Step::Done(0) } else { Step::Refused }
    }
}
