//! The kinds of syntax in which models write calls, each read as its text comes.

mod braces;
mod elements;
mod json_string;
mod json_text;
mod named;
mod objects;
mod python;
mod typed;

pub(super) use braces::BracesSyntax;
pub(super) use elements::ElementsSyntax;
pub(super) use json_text::{JsonProgress, JsonText};
pub(super) use named::NamedSyntax;
pub(super) use objects::ObjectsSyntax;
pub(super) use python::PythonSyntax;

use super::declared::DeclaredTools;
use super::piece::CallPart;

/// How the calls of a form are written behind its opener.
#[derive(Clone, Copy, Debug)]
pub(super) enum Syntax {
    /// JSON objects that have the tool's name and its arguments.
    Objects(&'static ObjectsSyntax),
    /// The tool's name, and its arguments as a JSON object behind it.
    Named(&'static NamedSyntax),
    /// The tool's name, and an element for each argument.
    Elements(&'static ElementsSyntax),
    /// Calls as Python writes them.
    Python(&'static PythonSyntax),
    /// `call:name{key:value}`, texts between marks of their own.
    Braces(&'static BracesSyntax),
}

/// What a reader made of the text that it was shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum SyntaxStep {
    /// So many bytes are read; show the rest again.
    Read(usize),
    /// More text has to come first.
    More,
    /// The calls have ended with these bytes.
    Done(usize),
    /// This is no call.
    Refused,
}

/// Reads the calls behind one opener.
pub(super) enum SyntaxReader {
    Objects(objects::ObjectsReader),
    Named(named::NamedReader),
    Elements(elements::ElementsReader),
    Python(python::PythonReader),
    Braces(braces::BracesReader),
}

/// What readers are shown, and where they put what they find.
pub(super) struct ReaderContext<'a> {
    /// The text behind what was read by now.
    pub(super) text: &'a str,
    /// Whether no more will come.
    pub(super) whole: bool,
    pub(super) declared: &'a DeclaredTools,
    pub(super) parts: &'a mut Vec<CallPart>,
}

impl ReaderContext<'_> {
    fn begin(&mut self, name: &str) {
        self.parts.push(CallPart::Begin(name.to_owned()));
    }

    fn arguments(&mut self, text: &str) {
        if !text.is_empty() {
            self.parts.push(CallPart::Arguments(text.to_owned()));
        }
    }

    fn end(&mut self) {
        self.parts.push(CallPart::End);
    }

    /// More text, or what follows where none will come.
    fn more(&self, otherwise: SyntaxStep) -> SyntaxStep {
        if self.whole { otherwise } else { SyntaxStep::More }
    }

    /// Bytes of white space before the next character, which is there.
    fn blank(&self) -> Option<usize> {
        let blank = self.text.len() - self.text.trim_start().len();
        (blank < self.text.len()).then_some(blank)
    }
}

impl Syntax {
    /// A reader of one section; `known` takes no tool that was not declared.
    pub(super) fn reader(self, known: bool) -> SyntaxReader {
        match self {
            Syntax::Objects(form) => SyntaxReader::Objects(objects::ObjectsReader::new(form, known)),
            Syntax::Named(form) => SyntaxReader::Named(named::NamedReader::new(form, known)),
            Syntax::Elements(form) => SyntaxReader::Elements(elements::ElementsReader::new(form)),
            Syntax::Python(form) => SyntaxReader::Python(python::PythonReader::new(form, known)),
            Syntax::Braces(form) => SyntaxReader::Braces(braces::BracesReader::new(form)),
        }
    }
}

impl Syntax {
    /// Whether a special token's text is one of the marks, or a part of one.
    pub(super) fn marks(self, token: &str) -> bool {
        let any = |marks: &[&str]| marks.iter().any(|mark| mark.contains(token));
        match self {
            Syntax::Objects(of) => any(of.before) || any(of.end.as_slice()),
            Syntax::Named(of) => {
                let lists = any(of.name_ends) || any(of.before_arguments) || any(of.close);
                // Ids and kinds that stand beside a name.
                lists || any(&[of.open]) || any(of.end.as_slice()) || any(&["[CALL_ID]", "<｜tool▁sep｜>"])
            }
            Syntax::Elements(of) => {
                let argument = [of.key_open, of.key_close, of.value_open, of.value_close];
                any(&argument) || any(of.name_ends) || any(&[of.open, of.close, of.end])
            }
            Syntax::Python(of) => any(of.end.as_slice()),
            Syntax::Braces(of) => any(&[of.open, of.quote, of.end]),
        }
    }
}

impl SyntaxReader {
    pub(super) fn step(&mut self, seen: &mut ReaderContext<'_>) -> SyntaxStep {
        match self {
            SyntaxReader::Objects(reader) => reader.step(seen),
            SyntaxReader::Named(reader) => reader.step(seen),
            SyntaxReader::Elements(reader) => reader.step(seen),
            SyntaxReader::Python(reader) => reader.step(seen),
            SyntaxReader::Braces(reader) => reader.step(seen),
        }
    }
}

/// Whether text can be a tool's name.
fn is_name(text: &str) -> bool {
    !text.is_empty() && text.chars().all(|c| c.is_alphanumeric() || "_-.:/".contains(c))
}
