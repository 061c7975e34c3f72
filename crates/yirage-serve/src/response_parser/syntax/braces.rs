//! `call:name{key:value,other:[1,2]}`, texts between marks of their own: how Gemma's models write calls since FunctionGemma.

use super::json_string::quoted;
use super::{ReaderContext, SyntaxStep, is_name};
use crate::response_parser::marker::{Begins, begins};

/// What stands around texts and calls.
#[derive(Debug)]
pub(in crate::response_parser) struct BracesSyntax {
    /// What stands before a name.
    pub(in crate::response_parser) open: &'static str,
    /// What stands on both sides of a text.
    pub(in crate::response_parser) quote: &'static str,
    /// What stands behind the call.
    pub(in crate::response_parser) end: &'static str,
}

/// Levels of a value.
const MAX_DEPTH: usize = 64;
/// Bytes of a name.
const MAX_NAME: usize = 512;

enum BracesState {
    Open,
    Name,
    Arguments,
    End,
}

pub(in crate::response_parser) struct BracesReader {
    form: &'static BracesSyntax,
    at: BracesState,
    name: String,
}

impl BracesReader {
    pub(super) fn new(form: &'static BracesSyntax) -> BracesReader {
        BracesReader { form, at: BracesState::Open, name: String::new() }
    }

    pub(super) fn step(&mut self, seen: &mut ReaderContext<'_>) -> SyntaxStep {
        match self.at {
            BracesState::Open => {
                let Some(blank) = seen.blank() else { return seen.more(SyntaxStep::Refused) };
                match begins(&seen.text[blank..], self.form.open, seen.whole) {
                    Begins::Yes => {
                        self.at = BracesState::Name;
                        SyntaxStep::Read(blank + self.form.open.len())
                    }
                    Begins::Maybe => SyntaxStep::More,
                    Begins::No => SyntaxStep::Refused,
                }
            }
            BracesState::Name => {
                let Some(length) = seen.text.find('{') else {
                    return if seen.text.len() > MAX_NAME {
                        SyntaxStep::Refused
                    } else {
                        seen.more(SyntaxStep::Refused)
                    };
                };
                let name = seen.text[..length].trim();
                if !is_name(name) {
                    return SyntaxStep::Refused;
                }
                name.clone_into(&mut self.name);
                seen.begin(&self.name);
                self.at = BracesState::Arguments;
                SyntaxStep::Read(length)
            }
            BracesState::Arguments => self.arguments(seen),
            BracesState::End => {
                let Some(blank) = seen.blank() else { return seen.more(SyntaxStep::Done(0)) };
                match begins(&seen.text[blank..], self.form.end, seen.whole) {
                    Begins::Yes => SyntaxStep::Done(blank + self.form.end.len()),
                    Begins::Maybe => SyntaxStep::More,
                    Begins::No => SyntaxStep::Done(0),
                }
            }
        }
    }

    fn arguments(&mut self, seen: &mut ReaderContext<'_>) -> SyntaxStep {
        let mut value = BracesValue { form: self.form, text: seen.text, at: 0, json: String::new() };
        match value.value(0) {
            Ok(()) => {
                let (length, json) = (value.at, value.json);
                seen.arguments(&json);
                seen.end();
                self.at = BracesState::End;
                SyntaxStep::Read(length)
            }
            Err(BracesError::More) => seen.more(SyntaxStep::Done(0)),
            Err(BracesError::Wrong) => SyntaxStep::Done(0),
        }
    }
}

enum BracesError {
    More,
    Wrong,
}

struct BracesValue<'a> {
    form: &'static BracesSyntax,
    text: &'a str,
    at: usize,
    json: String,
}

impl BracesValue<'_> {
    fn next(&mut self) -> Result<char, BracesError> {
        let rest = &self.text[self.at..];
        self.at += rest.len() - rest.trim_start().len();
        self.text[self.at..].chars().next().ok_or(BracesError::More)
    }

    fn value(&mut self, depth: usize) -> Result<(), BracesError> {
        if depth > MAX_DEPTH {
            return Err(BracesError::Wrong);
        }
        match self.next()? {
            '{' => self.members('}', depth),
            '[' => self.members(']', depth),
            _ => match begins(&self.text[self.at..], self.form.quote, false) {
                Begins::Yes => {
                    let text = self.quoted()?;
                    self.json.push_str(&quoted(&text));
                    Ok(())
                }
                Begins::Maybe => Err(BracesError::More),
                Begins::No => self.bare(),
            },
        }
    }

    fn members(&mut self, close: char, depth: usize) -> Result<(), BracesError> {
        self.json.push(if close == '}' { '{' } else { '[' });
        self.at += 1;
        let mut count = 0;
        loop {
            let c = self.next()?;
            if c == close {
                self.at += 1;
                self.json.push(close);
                return Ok(());
            }
            if count > 0 {
                if c != ',' {
                    return Err(BracesError::Wrong);
                }
                self.at += 1;
                self.next()?;
                self.json.push_str(", ");
            }
            if close == '}' {
                self.key()?;
            }
            self.value(depth + 1)?;
            count += 1;
        }
    }

    fn key(&mut self) -> Result<(), BracesError> {
        let text = match begins(&self.text[self.at..], self.form.quote, false) {
            Begins::Maybe => return Err(BracesError::More),
            Begins::Yes => {
                let key = self.quoted()?;
                if self.next()? != ':' {
                    return Err(BracesError::Wrong);
                }
                key
            }
            Begins::No => {
                let rest = &self.text[self.at..];
                let length = rest.find(':').ok_or(BracesError::More)?;
                self.at += length;
                rest[..length].trim().to_owned()
            }
        };
        self.at += 1;
        self.json.push_str(&quoted(&text));
        self.json.push_str(": ");
        Ok(())
    }

    fn quoted(&mut self) -> Result<String, BracesError> {
        let begin = self.at + self.form.quote.len();
        let length = self.text[begin..].find(self.form.quote).ok_or(BracesError::More)?;
        self.at = begin + length + self.form.quote.len();
        Ok(self.text[begin..begin + length].to_owned())
    }

    /// A number or a word; what is neither is text without its marks.
    fn bare(&mut self) -> Result<(), BracesError> {
        let rest = &self.text[self.at..];
        let length = rest.find([',', '}', ']']).ok_or(BracesError::More)?;
        let word = rest[..length].trim();
        self.at += length;
        let json = match word {
            "None" => "null".to_owned(),
            "True" => "true".to_owned(),
            "False" => "false".to_owned(),
            word if serde_json::from_str::<serde_json::Value>(word).is_ok() => word.to_owned(),
            word => quoted(word),
        };
        self.json.push_str(&json);
        Ok(())
    }
}
