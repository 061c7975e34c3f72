//! A tool's name, and an element for each argument: `<function=name><parameter=key>value</parameter></function>` and its
//! relatives. Values are bare text; of which type they are the tool's schema says.

use super::json_string::{quoted, within_quotes};
use super::json_text;
use super::typed::typed;
use super::{ReaderContext, SyntaxStep, is_name};
use crate::response_parser::declared::Types;
use crate::response_parser::marker::{Begins, begins, first, unfinished};

/// What stands around names, keys and values.
#[derive(Debug)]
pub(in crate::response_parser) struct ElementsSyntax {
    /// What stands before the name of each call; empty where the opener does.
    pub(in crate::response_parser) open: &'static str,
    /// What a name ends with. What begins an argument or ends the call is left for what follows.
    pub(in crate::response_parser) name_ends: &'static [&'static str],
    /// What stands before a key.
    pub(in crate::response_parser) key_open: &'static str,
    /// What stands behind it; attributes may come between.
    pub(in crate::response_parser) key_close: &'static str,
    /// What stands before a value; empty where the key's end does.
    pub(in crate::response_parser) value_open: &'static str,
    /// What stands behind it.
    pub(in crate::response_parser) value_close: &'static str,
    /// What stands behind a call; empty where the end of all calls does.
    pub(in crate::response_parser) close: &'static str,
    /// What stands behind all calls.
    pub(in crate::response_parser) end: &'static str,
}

/// Bytes of a name or key.
const MAX_NAME: usize = 512;

enum ElementsState {
    /// Before a call.
    Open,
    Name,
    /// Before an argument, or the end of the call.
    Between,
    Key,
    /// Between a key and its value.
    ValueOpen,
    Value(ElementValue),
}

/// A value as it comes.
struct ElementValue {
    types: Types,
    /// Text that is passed on as it comes.
    is_text: bool,
    /// Whether its first line break was looked for.
    begun: bool,
}

pub(in crate::response_parser) struct ElementsReader {
    form: &'static ElementsSyntax,
    at: ElementsState,
    name: String,
    /// What the attributes of a key say of its value, where they do.
    said_text: Option<bool>,
    key: String,
    arguments: usize,
    calls: usize,
}

impl ElementsReader {
    pub(super) fn new(form: &'static ElementsSyntax) -> ElementsReader {
        let (name, key) = (String::new(), String::new());
        ElementsReader { form, at: ElementsState::Open, name, said_text: None, key, arguments: 0, calls: 0 }
    }

    pub(super) fn step(&mut self, seen: &mut ReaderContext<'_>) -> SyntaxStep {
        match &self.at {
            ElementsState::Open => self.open(seen),
            ElementsState::Name => self.name(seen),
            ElementsState::Between => self.between(seen),
            ElementsState::Key => self.key(seen),
            ElementsState::ValueOpen => self.value_open(seen),
            ElementsState::Value(_) => self.value(seen),
        }
    }

    fn over(&self) -> SyntaxStep {
        if self.calls > 0 { SyntaxStep::Done(0) } else { SyntaxStep::Refused }
    }

    fn open(&mut self, seen: &ReaderContext<'_>) -> SyntaxStep {
        let Some(blank) = seen.blank() else { return seen.more(self.over()) };
        let text = &seen.text[blank..];
        match begins(text, self.form.end, seen.whole) {
            Begins::Yes if self.calls > 0 => return SyntaxStep::Done(blank + self.form.end.len()),
            Begins::Yes => return SyntaxStep::Refused,
            // A call may begin with the same letters.
            Begins::Maybe => return SyntaxStep::More,
            Begins::No => {}
        }
        if self.form.open.is_empty() && self.calls > 0 {
            return SyntaxStep::Done(0);
        }
        match begins(text, self.form.open, seen.whole) {
            Begins::Yes => {
                self.at = ElementsState::Name;
                SyntaxStep::Read(blank + self.form.open.len())
            }
            Begins::Maybe => SyntaxStep::More,
            Begins::No => self.over(),
        }
    }

    fn name(&mut self, seen: &mut ReaderContext<'_>) -> SyntaxStep {
        let Some((length, end)) = first(seen.text, self.form.name_ends) else {
            return if seen.text.len() > MAX_NAME { self.over() } else { seen.more(self.over()) };
        };
        let (name, _) = unquoted(&seen.text[..length]);
        if !is_name(name) {
            return self.over();
        }
        name.clone_into(&mut self.name);
        let stays = [self.form.key_open, self.form.close, self.form.end].contains(&end);
        (self.at, self.arguments) = (ElementsState::Between, 0);
        SyntaxStep::Read(if stays { length } else { length + end.len() })
    }

    /// The call is one as soon as an argument comes, or its end.
    fn between(&mut self, seen: &mut ReaderContext<'_>) -> SyntaxStep {
        let Some(blank) = seen.blank() else { return seen.more(self.cut_off()) };
        let text = &seen.text[blank..];
        match begins(text, self.form.key_open, seen.whole) {
            Begins::Yes => {
                self.at = ElementsState::Key;
                return SyntaxStep::Read(blank + self.form.key_open.len());
            }
            Begins::Maybe => return SyntaxStep::More,
            Begins::No => {}
        }
        let close = if self.form.close.is_empty() { self.form.end } else { self.form.close };
        for marker in [close, self.form.end] {
            match begins(text, marker, seen.whole) {
                Begins::Yes => {
                    let name = std::mem::take(&mut self.name);
                    if self.arguments == 0 {
                        seen.begin(&name);
                    }
                    seen.arguments(if self.arguments == 0 { "{}" } else { "}" });
                    seen.end();
                    self.calls += 1;
                    self.at = ElementsState::Open;
                    let read = blank + marker.len();
                    // The end of all calls without the call's own.
                    return if marker == self.form.end { SyntaxStep::Done(read) } else { SyntaxStep::Read(read) };
                }
                Begins::Maybe => return SyntaxStep::More,
                Begins::No => {}
            }
        }
        self.cut_off()
    }

    /// What is no argument where one is to be: text again, unless a call was begun, which stays without its end.
    fn cut_off(&self) -> SyntaxStep {
        if self.arguments > 0 { SyntaxStep::Done(0) } else { self.over() }
    }

    fn key(&mut self, seen: &mut ReaderContext<'_>) -> SyntaxStep {
        let Some((raw, _)) = seen.text.split_once(self.form.key_close) else {
            return if seen.text.len() > MAX_NAME { self.cut_off() } else { seen.more(self.cut_off()) };
        };
        let (key, attributes) = unquoted(raw);
        self.said_text = match (attributes.contains("string=\"true\""), attributes.contains("string=\"false\"")) {
            (true, _) => Some(true),
            (_, true) => Some(false),
            _ => None,
        };
        key.clone_into(&mut self.key);
        let read = raw.len() + self.form.key_close.len();
        self.at = ElementsState::ValueOpen;
        SyntaxStep::Read(read)
    }

    fn value_open(&mut self, seen: &mut ReaderContext<'_>) -> SyntaxStep {
        if self.form.value_open.is_empty() {
            self.begin_value(seen);
            return SyntaxStep::Read(0);
        }
        let Some(blank) = seen.blank() else { return seen.more(self.cut_off()) };
        match begins(&seen.text[blank..], self.form.value_open, seen.whole) {
            Begins::Yes => {
                self.begin_value(seen);
                SyntaxStep::Read(blank + self.form.value_open.len())
            }
            Begins::Maybe => SyntaxStep::More,
            Begins::No => self.cut_off(),
        }
    }

    fn begin_value(&mut self, seen: &mut ReaderContext<'_>) {
        if self.arguments == 0 {
            seen.begin(&self.name);
        }
        let types = seen.declared.types(&self.name, &self.key);
        let is_text = self.said_text.unwrap_or_else(|| types.only_text());
        let types = if self.said_text == Some(false) { Types::default() } else { types };
        let before = if self.arguments == 0 { "{" } else { ", " };
        seen.arguments(&format!("{before}{}: {}", quoted(&self.key), if is_text { "\"" } else { "" }));
        self.arguments += 1;
        self.at = ElementsState::Value(ElementValue { types, is_text, begun: false });
    }

    fn value(&mut self, seen: &mut ReaderContext<'_>) -> SyntaxStep {
        let ElementsState::Value(value) = &mut self.at else { return SyntaxStep::Refused };
        let mut read = 0;
        if !value.begun {
            // The line break behind the element's opening is not of the value.
            let Some(first) = seen.text.chars().next() else { return seen.more(SyntaxStep::Done(0)) };
            read = usize::from(first == '\n');
            value.begun = true;
        }
        let text = &seen.text[read..];
        let ends = value_ends(text, self.form.value_close, value, seen.whole);
        if matches!(ends, ElementValueEnd::Maybe) {
            return match read {
                0 => SyntaxStep::More,
                read => SyntaxStep::Read(read),
            };
        }
        if let ElementValueEnd::At(length) = ends {
            let inside = &text[..length];
            let inside = inside.strip_suffix('\n').unwrap_or(inside);
            let written = match value.is_text {
                true => format!("{}\"", within_quotes(inside)),
                false => typed(inside, &value.types),
            };
            seen.arguments(&written);
            self.at = ElementsState::Between;
            return SyntaxStep::Read(read + length + self.form.value_close.len());
        }
        if !value.is_text {
            // A value that is no text is known once it is whole.
            return match read {
                0 => seen.more(SyntaxStep::Done(0)),
                read => SyntaxStep::Read(read),
            };
        }
        let certain = match seen.whole {
            true => text.len(),
            false => {
                let certain = &text[..text.len() - unfinished(text, &[self.form.value_close])];
                certain.len() - usize::from(certain.ends_with('\n'))
            }
        };
        seen.arguments(&within_quotes(&text[..certain]));
        match read + certain {
            0 if seen.whole => SyntaxStep::Done(0),
            0 => SyntaxStep::More,
            read => SyntaxStep::Read(read),
        }
    }
}

/// Whether a value has ended.
enum ElementValueEnd {
    /// Behind so many bytes, before its mark.
    At(usize),
    /// What comes next tells.
    Maybe,
    No,
}

/// Where a value ends: at its mark, of which JSON may have some in its texts.
fn value_ends(text: &str, close: &str, value: &ElementValue, whole: bool) -> ElementValueEnd {
    let json = text.trim_start();
    let begin = text.len() - json.len();
    let first = || text.find(close).map_or(ElementValueEnd::No, ElementValueEnd::At);
    let end = match json_end(json, &value.types) {
        Some(Ok(Some(length))) if !value.is_text => begin + length,
        Some(Ok(None)) if !value.is_text && !whole && text.contains(close) => return ElementValueEnd::Maybe,
        _ => return first(),
    };
    let behind = text[end..].trim_start();
    match begins(behind, close, whole) {
        Begins::Yes => ElementValueEnd::At(text.len() - behind.len()),
        // A mark within the JSON is none where the value's own follows.
        Begins::Maybe if text.contains(close) => ElementValueEnd::Maybe,
        Begins::Maybe => ElementValueEnd::No,
        // What stands behind the JSON is not of it: then it was none.
        Begins::No => first(),
    }
}

/// Where the JSON at the beginning of a text ends, if it has; none where it cannot be any.
fn json_end(text: &str, types: &Types) -> Option<Result<Option<usize>, ()>> {
    let begins = text.starts_with(['{', '[']) || text.starts_with('"') && !types.has("string");
    begins.then(|| json_text::value(text, false))
}

/// A name that stands in quotation marks or not, of which the first may be missing, and what follows it.
fn unquoted(text: &str) -> (&str, &str) {
    let text = text.trim();
    let text = text.strip_prefix('"').unwrap_or(text);
    let (name, rest) = text.split_once('"').unwrap_or((text, ""));
    (name.trim(), rest)
}
