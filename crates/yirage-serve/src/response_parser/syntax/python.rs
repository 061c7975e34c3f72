//! Calls as Python writes them: `[name(key="value", other=1), second()]`.

use super::json_string::quoted;
use super::{Seen, Step, is_name};
use crate::response_parser::marker::{Begins, begins};

/// What stands around the calls.
#[derive(Debug)]
pub(in crate::response_parser) struct Python {
    /// What stands behind all calls; none where the closing bracket is the end.
    pub(in crate::response_parser) end: Option<&'static str>,
}

/// Bytes of a name.
const MAX_NAME: usize = 512;
/// Levels of a value.
const MAX_DEPTH: usize = 64;

enum At {
    /// Before a call.
    Between,
    /// Behind its bracket or a comma: an argument comes.
    Argument,
    /// Behind a value.
    Behind,
}

pub(in crate::response_parser) struct Reader {
    form: &'static Python,
    /// Whether only tools that were declared are called.
    known: bool,
    at: At,
    in_list: bool,
    arguments: usize,
    calls: usize,
}

impl Reader {
    pub(super) fn new(form: &'static Python, known: bool) -> Reader {
        Reader { form, known, at: At::Between, in_list: false, arguments: 0, calls: 0 }
    }

    pub(super) fn step(&mut self, seen: &mut Seen<'_>) -> Step {
        match self.at {
            At::Between => self.between(seen),
            At::Argument => self.argument(seen),
            At::Behind => self.behind(seen),
        }
    }

    fn over(&self) -> Step {
        if self.calls > 0 { Step::Done(0) } else { Step::Refused }
    }

    fn between(&mut self, seen: &mut Seen<'_>) -> Step {
        let Some(blank) = seen.blank() else { return seen.more(self.over()) };
        let text = &seen.text[blank..];
        if let Some(end) = self.form.end {
            match begins(text, end, seen.whole) {
                Begins::Yes if self.calls > 0 => return Step::Done(blank + end.len()),
                Begins::Yes => return Step::Refused,
                Begins::Maybe => return Step::More,
                Begins::No => {}
            }
        }
        match text.as_bytes() {
            [b'[', ..] if !self.in_list && self.calls == 0 => {
                self.in_list = true;
                return Step::Read(blank + 1);
            }
            [b',', ..] if self.calls > 0 => return Step::Read(blank + 1),
            [b']', ..] if self.in_list && self.calls > 0 => {
                self.in_list = false;
                let read = blank + 1;
                return if self.form.end.is_some() { Step::Read(read) } else { Step::Done(read) };
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
        (self.at, self.arguments) = (At::Argument, 0);
        Step::Read(read)
    }

    fn argument(&mut self, seen: &mut Seen<'_>) -> Step {
        let Some(blank) = seen.blank() else { return seen.more(Step::Done(0)) };
        let text = &seen.text[blank..];
        if text.starts_with(')') {
            return self.call_ends(blank + 1, seen);
        }
        let Some((key, value)) = text.split_once('=') else {
            return if text.len() > MAX_NAME { Step::Done(0) } else { seen.more(Step::Done(0)) };
        };
        if !is_name(key.trim()) {
            return Step::Done(0);
        }
        let key = key.trim().to_owned();
        let begin = seen.text.len() - value.len();
        let mut literal = Literal { text: value, at: 0, whole: seen.whole, json: String::new() };
        match literal.value(0) {
            Ok(()) => {
                let (length, json) = (literal.at, literal.json);
                let before = if self.arguments == 0 { "{" } else { ", " };
                seen.arguments(&format!("{before}{}: {json}", quoted(&key)));
                self.arguments += 1;
                self.at = At::Behind;
                Step::Read(begin + length)
            }
            Err(Unread::More) => seen.more(Step::Done(0)),
            Err(Unread::Wrong) => Step::Done(0),
        }
    }

    fn behind(&mut self, seen: &mut Seen<'_>) -> Step {
        let Some(blank) = seen.blank() else { return seen.more(Step::Done(0)) };
        match seen.text.as_bytes().get(blank) {
            Some(b',') => {
                self.at = At::Argument;
                Step::Read(blank + 1)
            }
            Some(b')') => self.call_ends(blank + 1, seen),
            _ => Step::Done(0),
        }
    }

    fn call_ends(&mut self, read: usize, seen: &mut Seen<'_>) -> Step {
        seen.arguments(if self.arguments == 0 { "{}" } else { "}" });
        seen.end();
        self.calls += 1;
        self.at = At::Between;
        Step::Read(read)
    }
}

/// JSON text of a literal of Python that is all of `text`.
pub(super) fn whole(text: &str) -> Option<String> {
    let mut literal = Literal { text, at: 0, whole: true, json: String::new() };
    literal.value(0).ok()?;
    literal.text[literal.at..].trim().is_empty().then_some(literal.json)
}

/// Why a literal was not read.
enum Unread {
    /// It has not ended.
    More,
    /// It is none.
    Wrong,
}

/// A literal of Python on its way to JSON.
struct Literal<'a> {
    text: &'a str,
    at: usize,
    /// Whether no more text will come.
    whole: bool,
    json: String,
}

impl Literal<'_> {
    fn rest(&self) -> &str {
        &self.text[self.at..]
    }

    fn skip_blank(&mut self) -> Result<char, Unread> {
        let rest = self.rest();
        let blank = rest.len() - rest.trim_start().len();
        self.at += blank;
        self.rest().chars().next().ok_or(Unread::More)
    }

    fn value(&mut self, depth: usize) -> Result<(), Unread> {
        if depth > MAX_DEPTH {
            return Err(Unread::Wrong);
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

    fn items(&mut self, close: char, depth: usize) -> Result<(), Unread> {
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
    fn comma(&mut self, close: char) -> Result<(), Unread> {
        match self.skip_blank()? {
            ',' => self.at += 1,
            c if c == close => {}
            _ => return Err(Unread::Wrong),
        }
        Ok(())
    }

    fn dict(&mut self, depth: usize) -> Result<(), Unread> {
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
                _ => return Err(Unread::Wrong),
            }
            if count > 0 {
                self.json.push_str(", ");
            }
            let key = self.string()?;
            self.json.push_str(&quoted(&key));
            if self.skip_blank()? != ':' {
                return Err(Unread::Wrong);
            }
            self.at += 1;
            self.json.push_str(": ");
            self.value(depth + 1)?;
            count += 1;
            self.comma('}')?;
        }
    }

    fn string(&mut self) -> Result<String, Unread> {
        let quote = self.rest().chars().next().ok_or(Unread::More)?;
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
            let c = rest.chars().next().ok_or(Unread::More)?;
            at += c.len_utf8();
            match c {
                '\\' => at += escape(&self.text[at..], &mut out)?,
                '\n' if !long => out.push('\n'),
                c => out.push(c),
            }
        }
    }

    /// A number, or one of Python's and JSON's words.
    fn word(&mut self) -> Result<(), Unread> {
        let rest = self.rest();
        let ends = |c: char| c.is_whitespace() || matches!(c, ',' | ')' | ']' | '}' | ':');
        let length = rest.find(ends).or(self.whole.then_some(rest.len())).ok_or(Unread::More)?;
        let word = &rest[..length];
        let json = match word {
            "True" | "true" => "true",
            "False" | "false" => "false",
            "None" | "null" => "null",
            number if serde_json::from_str::<serde_json::Number>(number).is_ok() => number,
            _ => return Err(Unread::Wrong),
        };
        let json = json.to_owned();
        self.json.push_str(&json);
        self.at += length;
        Ok(())
    }
}

/// What stands behind a backslash; its length.
fn escape(rest: &str, out: &mut String) -> Result<usize, Unread> {
    let c = rest.chars().next().ok_or(Unread::More)?;
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
    let code = rest.get(1..1 + digits).ok_or(if rest.len() < 1 + digits { Unread::More } else { Unread::Wrong })?;
    let code = u32::from_str_radix(code, 16).map_err(|_| Unread::Wrong)?;
    out.push(char::from_u32(code).unwrap_or(char::REPLACEMENT_CHARACTER));
    Ok(1 + digits)
}
