//! Calls as Python writes them: `[name(key="value", other=1), second()]`.

use super::json_string::quoted;
use super::{ReaderContext, SyntaxStep, is_name};
use crate::response_parser::marker::{Begins, begins};

/// What stands around the calls.
#[derive(Debug)]
pub(in crate::response_parser) struct PythonSyntax {
    /// What stands behind all calls; none where the closing bracket is the end.
    pub(in crate::response_parser) end: Option<&'static str>,
}

/// Bytes of a name.
const MAX_NAME: usize = 512;
/// Levels of a value.
const MAX_DEPTH: usize = 64;

enum PythonState {
    /// Before a call.
    Between,
    /// Behind its bracket or a comma: an argument comes.
    Argument,
    /// Behind a value.
    Behind,
}

pub(in crate::response_parser) struct PythonReader {
    form: &'static PythonSyntax,
    /// Whether only tools that were declared are called.
    known: bool,
    at: PythonState,
    in_list: bool,
    arguments: usize,
    calls: usize,
}

impl PythonReader {
    pub(super) fn new(form: &'static PythonSyntax, known: bool) -> PythonReader {
        PythonReader { form, known, at: PythonState::Between, in_list: false, arguments: 0, calls: 0 }
    }

    pub(super) fn step(&mut self, seen: &mut ReaderContext<'_>) -> SyntaxStep {
        match self.at {
            PythonState::Between => self.between(seen),
            PythonState::Argument => self.argument(seen),
            PythonState::Behind => self.behind(seen),
        }
    }

    fn over(&self) -> SyntaxStep {
        if self.calls > 0 { SyntaxStep::Done(0) } else { SyntaxStep::Refused }
    }

    fn between(&mut self, seen: &mut ReaderContext<'_>) -> SyntaxStep {
        let Some(blank) = seen.blank() else { return seen.more(self.over()) };
        let text = &seen.text[blank..];
        if let Some(end) = self.form.end {
            match begins(text, end, seen.whole) {
                Begins::Yes if self.calls > 0 => return SyntaxStep::Done(blank + end.len()),
                Begins::Yes => return SyntaxStep::Refused,
                Begins::Maybe => return SyntaxStep::More,
                Begins::No => {}
            }
        }
        match text.as_bytes() {
            [b'[', ..] if !self.in_list && self.calls == 0 => {
                self.in_list = true;
                return SyntaxStep::Read(blank + 1);
            }
            [b',', ..] if self.calls > 0 => return SyntaxStep::Read(blank + 1),
            [b']', ..] if self.in_list && self.calls > 0 => {
                self.in_list = false;
                let read = blank + 1;
                return if self.form.end.is_some() { SyntaxStep::Read(read) } else { SyntaxStep::Done(read) };
            }
            _ => {}
        }
        let Some((name, _)) = text.split_once('(') else {
            let is_none = text.len() > MAX_NAME || !is_name(text.trim_end());
            return if is_none { self.over() } else { seen.more(self.over()) };
        };
        let read = blank + name.len() + 1;
        let name = name.trim();
        if !is_name(name) || self.known && !seen.declared.has(name) {
            return self.over();
        }
        let name = name.to_owned();
        seen.begin(&name);
        (self.at, self.arguments) = (PythonState::Argument, 0);
        SyntaxStep::Read(read)
    }

    fn argument(&mut self, seen: &mut ReaderContext<'_>) -> SyntaxStep {
        let Some(blank) = seen.blank() else { return seen.more(SyntaxStep::Done(0)) };
        let text = &seen.text[blank..];
        if text.starts_with(')') {
            return self.call_ends(blank + 1, seen);
        }
        let Some((key, value)) = text.split_once('=') else {
            return if text.len() > MAX_NAME { SyntaxStep::Done(0) } else { seen.more(SyntaxStep::Done(0)) };
        };
        if !is_name(key.trim()) {
            return SyntaxStep::Done(0);
        }
        let key = key.trim().to_owned();
        let begin = seen.text.len() - value.len();
        let mut literal = PythonLiteral { text: value, at: 0, whole: seen.whole, json: String::new() };
        match literal.value(0) {
            Ok(()) => {
                let (length, json) = (literal.at, literal.json);
                let before = if self.arguments == 0 { "{" } else { ", " };
                seen.arguments(&format!("{before}{}: {json}", quoted(&key)));
                self.arguments += 1;
                self.at = PythonState::Behind;
                SyntaxStep::Read(begin + length)
            }
            Err(PythonLiteralError::More) => seen.more(SyntaxStep::Done(0)),
            Err(PythonLiteralError::Wrong) => SyntaxStep::Done(0),
        }
    }

    fn behind(&mut self, seen: &mut ReaderContext<'_>) -> SyntaxStep {
        let Some(blank) = seen.blank() else { return seen.more(SyntaxStep::Done(0)) };
        match seen.text.as_bytes().get(blank) {
            Some(b',') => {
                self.at = PythonState::Argument;
                SyntaxStep::Read(blank + 1)
            }
            Some(b')') => self.call_ends(blank + 1, seen),
            _ => SyntaxStep::Done(0),
        }
    }

    fn call_ends(&mut self, read: usize, seen: &mut ReaderContext<'_>) -> SyntaxStep {
        seen.arguments(if self.arguments == 0 { "{}" } else { "}" });
        seen.end();
        self.calls += 1;
        self.at = PythonState::Between;
        SyntaxStep::Read(read)
    }
}

/// JSON text of a literal of Python that is all of `text`.
pub(super) fn whole(text: &str) -> Option<String> {
    let mut literal = PythonLiteral { text, at: 0, whole: true, json: String::new() };
    literal.value(0).ok()?;
    literal.text[literal.at..].trim().is_empty().then_some(literal.json)
}

/// Why a literal was not read.
enum PythonLiteralError {
    /// It has not ended.
    More,
    /// It is none.
    Wrong,
}

/// A literal of Python on its way to JSON.
struct PythonLiteral<'a> {
    text: &'a str,
    at: usize,
    /// Whether no more text will come.
    whole: bool,
    json: String,
}

impl PythonLiteral<'_> {
    fn rest(&self) -> &str {
        &self.text[self.at..]
    }

    fn skip_blank(&mut self) -> Result<char, PythonLiteralError> {
        let rest = self.rest();
        let blank = rest.len() - rest.trim_start().len();
        self.at += blank;
        self.rest().chars().next().ok_or(PythonLiteralError::More)
    }

    fn value(&mut self, depth: usize) -> Result<(), PythonLiteralError> {
        if depth > MAX_DEPTH {
            return Err(PythonLiteralError::Wrong);
        }
        match self.skip_blank()? {
            '"' | '\'' => {
                let text = self.string()?;
                self.json.push_str(&quoted(&text));
                Ok(())
            }
            '[' => self.items(']', depth),
            '(' => self.items(')', depth),
            '{' => self.dict(depth),
            _ => self.word(),
        }
    }

    fn items(&mut self, close: char, depth: usize) -> Result<(), PythonLiteralError> {
        self.at += 1;
        self.json.push('[');
        let mut count = 0;
        loop {
            if self.skip_blank()? == close {
                self.at += 1;
                self.json.push(']');
                return Ok(());
            }
            if count > 0 {
                self.json.push_str(", ");
            }
            self.value(depth + 1)?;
            count += 1;
            self.comma(close)?;
        }
    }

    /// A comma, or what closes, which stays.
    fn comma(&mut self, close: char) -> Result<(), PythonLiteralError> {
        match self.skip_blank()? {
            ',' => self.at += 1,
            c if c == close => {}
            _ => return Err(PythonLiteralError::Wrong),
        }
        Ok(())
    }

    fn dict(&mut self, depth: usize) -> Result<(), PythonLiteralError> {
        self.at += 1;
        self.json.push('{');
        let mut count = 0;
        loop {
            match self.skip_blank()? {
                '}' => {
                    self.at += 1;
                    self.json.push('}');
                    return Ok(());
                }
                '"' | '\'' => {}
                _ => return Err(PythonLiteralError::Wrong),
            }
            if count > 0 {
                self.json.push_str(", ");
            }
            let key = self.string()?;
            self.json.push_str(&quoted(&key));
            if self.skip_blank()? != ':' {
                return Err(PythonLiteralError::Wrong);
            }
            self.at += 1;
            self.json.push_str(": ");
            self.value(depth + 1)?;
            count += 1;
            self.comma('}')?;
        }
    }

    fn string(&mut self) -> Result<String, PythonLiteralError> {
        let quote = self.rest().chars().next().ok_or(PythonLiteralError::More)?;
        let triple: String = std::iter::repeat_n(quote, 3).collect();
        let (mark, long) = match self.rest().starts_with(&triple) {
            true => (triple, true),
            false => (quote.to_string(), false),
        };
        let mut out = String::new();
        let mut at = self.at + mark.len();
        loop {
            let rest = &self.text[at..];
            if rest.starts_with(&mark) {
                self.at = at + mark.len();
                return Ok(out);
            }
            let c = rest.chars().next().ok_or(PythonLiteralError::More)?;
            at += c.len_utf8();
            match c {
                '\\' => at += escape(&self.text[at..], &mut out)?,
                '\n' if !long => out.push('\n'),
                c => out.push(c),
            }
        }
    }

    /// A number, or one of Python's and JSON's words.
    fn word(&mut self) -> Result<(), PythonLiteralError> {
        let rest = self.rest();
        let ends = |c: char| c.is_whitespace() || matches!(c, ',' | ')' | ']' | '}' | ':');
        let length = rest.find(ends).or(self.whole.then_some(rest.len())).ok_or(PythonLiteralError::More)?;
        let word = &rest[..length];
        let json = match word {
            "True" | "true" => "true",
            "False" | "false" => "false",
            "None" | "null" => "null",
            number if serde_json::from_str::<serde_json::Number>(number).is_ok() => number,
            _ => return Err(PythonLiteralError::Wrong),
        };
        let json = json.to_owned();
        self.json.push_str(&json);
        self.at += length;
        Ok(())
    }
}

/// What stands behind a backslash; its length.
fn escape(rest: &str, out: &mut String) -> Result<usize, PythonLiteralError> {
    let c = rest.chars().next().ok_or(PythonLiteralError::More)?;
    let digits = match c {
        'x' => 2,
        'u' => 4,
        'U' => 8,
        _ => {
            match c {
                'n' => out.push('\n'),
                't' => out.push('\t'),
                'r' => out.push('\r'),
                'b' => out.push('\u{8}'),
                'f' => out.push('\u{c}'),
                '0' => out.push('\0'),
                '\\' | '\'' | '"' => out.push(c),
                // A line that goes on.
                '\n' => {}
                // What is no escape stays as it is.
                other => out.extend(['\\', other]),
            }
            return Ok(c.len_utf8());
        }
    };
    let code = rest.get(1..1 + digits).ok_or(if rest.len() < 1 + digits {
        PythonLiteralError::More
    } else {
        PythonLiteralError::Wrong
    })?;
    let code = u32::from_str_radix(code, 16).map_err(|_| PythonLiteralError::Wrong)?;
    out.push(char::from_u32(code).unwrap_or(char::REPLACEMENT_CHARACTER));
    Ok(1 + digits)
}
