//! `{"name": ..., "arguments": {...}}`, alone, one after another or in a list.

use super::json_text::{JsonProgress, JsonText, value};
use super::{ReaderContext, SyntaxStep};
use crate::response_parser::marker::{Begins, begins};
use serde_json::{Map, Value};

/// Which keys the objects have, and what stands around them.
#[derive(Debug)]
pub(in crate::response_parser) struct ObjectsSyntax {
    /// Keys of the tool's name; none where the only key is the name and its value the arguments.
    pub(in crate::response_parser) names: &'static [&'static str],
    /// Keys of the arguments.
    pub(in crate::response_parser) arguments: &'static [&'static str],
    /// Whether a list of objects may stand there, of which the opening bracket may be the opener's end.
    pub(in crate::response_parser) list: bool,
    /// What may stand between the opener and the first object.
    pub(in crate::response_parser) before: &'static [&'static str],
    /// What stands behind all calls; none where nothing does.
    pub(in crate::response_parser) end: Option<&'static str>,
}

enum ObjectsState {
    /// Before an object.
    Between,
    /// Behind an object's bracket or comma: a key comes.
    Key,
    /// Within the arguments, which are passed on as they come.
    Arguments(JsonText),
    /// Behind a value.
    Behind,
}

pub(in crate::response_parser) struct ObjectsReader {
    form: &'static ObjectsSyntax,
    /// Whether only tools that were declared are called.
    known: bool,
    at: ObjectsState,
    in_list: bool,
    /// The tool's name, once it is known.
    name: Option<String>,
    /// Arguments that came before the name, or as text.
    pending_arguments: Option<String>,
    /// Whether the call was begun.
    begun: bool,
    calls: usize,
}

impl ObjectsReader {
    pub(super) fn new(form: &'static ObjectsSyntax, known: bool) -> ObjectsReader {
        ObjectsReader {
            form,
            known,
            at: ObjectsState::Between,
            in_list: false,
            name: None,
            pending_arguments: None,
            begun: false,
            calls: 0,
        }
    }

    pub(super) fn step(&mut self, seen: &mut ReaderContext<'_>) -> SyntaxStep {
        match &mut self.at {
            ObjectsState::Between => self.between(seen),
            ObjectsState::Key => self.key(seen),
            ObjectsState::Arguments(json) => match json.take(seen.text) {
                JsonProgress::Open if seen.text.is_empty() => SyntaxStep::More,
                JsonProgress::Open => {
                    seen.arguments(seen.text);
                    SyntaxStep::Read(seen.text.len())
                }
                JsonProgress::Ended(length) => {
                    seen.arguments(&seen.text[..length]);
                    self.at = ObjectsState::Behind;
                    SyntaxStep::Read(length)
                }
                JsonProgress::Broken => SyntaxStep::Done(0),
            },
            ObjectsState::Behind => self.behind(seen),
        }
    }

    /// What is not to be read on: an end behind calls, no call where none was.
    fn over(&self) -> SyntaxStep {
        if self.calls > 0 || self.begun { SyntaxStep::Done(0) } else { SyntaxStep::Refused }
    }

    fn between(&mut self, seen: &ReaderContext<'_>) -> SyntaxStep {
        let Some(blank) = seen.blank() else { return seen.more(self.over()) };
        let text = &seen.text[blank..];
        // What ends calls may be the beginning of what stands before the first.
        let before = self.form.before.iter().filter(|_| self.calls == 0);
        for (marker, is_end) in before.map(|mark| (mark, false)).chain(self.form.end.iter().map(|mark| (mark, true))) {
            match begins(text, marker, seen.whole) {
                Begins::Yes if is_end && self.calls == 0 => return SyntaxStep::Refused,
                Begins::Yes if is_end => return SyntaxStep::Done(blank + marker.len()),
                Begins::Yes => return SyntaxStep::Read(blank + marker.len()),
                Begins::Maybe => return SyntaxStep::More,
                Begins::No => {}
            }
        }
        match text.as_bytes() {
            [b'{', ..] => {
                (self.name, self.pending_arguments, self.begun) = (None, None, false);
                self.at = ObjectsState::Key;
                SyntaxStep::Read(blank + 1)
            }
            [b'[', ..] if self.form.list && !self.in_list && self.calls == 0 => {
                self.in_list = true;
                SyntaxStep::Read(blank + 1)
            }
            [b',' | b';', ..] if self.calls > 0 => SyntaxStep::Read(blank + 1),
            [b']', ..] if self.in_list => {
                self.in_list = false;
                match self.form.end {
                    Some(_) => SyntaxStep::Read(blank + 1),
                    None if self.calls > 0 => SyntaxStep::Done(blank + 1),
                    None => SyntaxStep::Refused,
                }
            }
            _ => self.over(),
        }
    }

    /// A key with its value, or the beginning of the arguments.
    fn key(&mut self, seen: &mut ReaderContext<'_>) -> SyntaxStep {
        let Some(blank) = seen.blank() else { return seen.more(self.over()) };
        let text = &seen.text[blank..];
        if text.starts_with('}') {
            return self.object_ends(blank + 1, seen);
        }
        if !text.starts_with('"') {
            return self.over();
        }
        let Ok(Some(length)) = value(text, seen.whole) else { return seen.more(self.over()) };
        let Ok(key) = serde_json::from_str::<String>(&text[..length]) else { return self.over() };
        let rest = text[length..].trim_start();
        let Some(behind) = rest.strip_prefix(':') else {
            return if rest.is_empty() { seen.more(self.over()) } else { self.over() };
        };
        let behind = behind.trim_start();
        let at = seen.text.len() - behind.len();
        if self.form.names.is_empty() {
            self.name = Some(key);
            return self.arguments(at, seen);
        }
        if self.form.arguments.contains(&key.as_str()) {
            return self.arguments(at, seen);
        }
        let length = match value(behind, seen.whole) {
            Ok(Some(length)) => length,
            Ok(None) => return seen.more(self.over()),
            Err(()) => return self.over(),
        };
        if self.form.names.contains(&key.as_str()) {
            let Ok(name) = serde_json::from_str::<String>(&behind[..length]) else { return self.over() };
            self.name = Some(name);
        } else if key == "function" && self.name.is_none() && self.function(&behind[..length]).is_none() {
            return self.over();
        }
        self.at = ObjectsState::Behind;
        SyntaxStep::Read(at + length)
    }

    /// `"function": {"name": ..., "arguments": ...}`, as clients' own interfaces have it, or the name alone.
    fn function(&mut self, text: &str) -> Option<()> {
        match serde_json::from_str(text).ok()? {
            Value::String(name) => self.name = Some(name),
            Value::Object(inner) => {
                self.name = Some(inner.get("name")?.as_str()?.to_owned());
                let arguments = self.form.arguments.iter().find_map(|key| inner.get(*key));
                self.pending_arguments = arguments.map(ToString::to_string);
            }
            _ => return None,
        }
        Some(())
    }

    /// The value of the arguments, which begins at `at`.
    fn arguments(&mut self, at: usize, seen: &mut ReaderContext<'_>) -> SyntaxStep {
        let text = &seen.text[at..];
        if text.is_empty() {
            return seen.more(self.over());
        }
        if let Some(name) = self.name.as_deref().filter(|_| text.starts_with('{')) {
            if self.known && !seen.declared.has(name) {
                return self.over();
            }
            seen.begin(name);
            self.begun = true;
            self.at = ObjectsState::Arguments(JsonText::default());
            return SyntaxStep::Read(at);
        }
        // Text, or before the name: they are passed on once all is there.
        match value(text, seen.whole) {
            Ok(Some(length)) => {
                self.pending_arguments = Some(text[..length].to_owned());
                self.at = ObjectsState::Behind;
                SyntaxStep::Read(at + length)
            }
            Ok(None) => seen.more(self.over()),
            Err(()) => self.over(),
        }
    }

    fn behind(&mut self, seen: &mut ReaderContext<'_>) -> SyntaxStep {
        let Some(blank) = seen.blank() else {
            if seen.whole && self.begun {
                // What ends without its bracket had its arguments whole.
                seen.end();
                self.begun = false;
                self.calls += 1;
                return SyntaxStep::Done(0);
            }
            return seen.more(self.over());
        };
        match seen.text.as_bytes().get(blank) {
            Some(b',') => {
                self.at = ObjectsState::Key;
                SyntaxStep::Read(blank + 1)
            }
            Some(b'}') => self.object_ends(blank + 1, seen),
            _ => {
                if self.begun {
                    seen.end();
                }
                self.over()
            }
        }
    }

    fn object_ends(&mut self, read: usize, seen: &mut ReaderContext<'_>) -> SyntaxStep {
        if !self.begun {
            let Some(name) = self.name.take() else { return self.over() };
            if self.known && !seen.declared.has(&name) {
                return self.over();
            }
            let Some(arguments) = self.pending_arguments.take().map_or(Some("{}".to_owned()), |held| object(&held))
            else {
                return self.over();
            };
            seen.begin(&name);
            seen.arguments(&arguments);
        }
        seen.end();
        self.begun = false;
        self.calls += 1;
        self.at = ObjectsState::Between;
        SyntaxStep::Read(read)
    }
}

/// Arguments as an object's text: they are one, or JSON text that is one.
fn object(held: &str) -> Option<String> {
    match serde_json::from_str(held).ok()? {
        Value::Object(_) => Some(held.to_owned()),
        Value::Null => Some("{}".to_owned()),
        Value::String(text) if text.trim().is_empty() => Some("{}".to_owned()),
        Value::String(text) => serde_json::from_str::<Map<String, Value>>(&text).ok().map(|_| text),
        _ => None,
    }
}
