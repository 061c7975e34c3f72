//! A grammar in llguidance's dialect of Lark, as it is written: rules by number, texts with a model's marks as tokens.

use super::super::{schema, text::escaped};
use crate::response_parser::{ID, NUMBER};
use serde_json::Value;
use std::collections::HashMap;
use std::fmt::Write;

/// A text that may be anything but what ends it.
pub(super) struct LarkText<'a> {
    /// Characters that it has at least, and at most.
    pub(super) least: u64,
    pub(super) most: Option<u64>,
    /// What it may not have.
    pub(super) mark: &'a str,
    /// What stands behind it.
    pub(super) close: &'a str,
    /// Whether its reader takes away line breaks around it.
    pub(super) trimmed: bool,
}

/// Rules on their way.
pub(super) struct Lark<'a> {
    /// Marks that are tokens.
    tokens: &'a [(String, u32)],
    rules: String,
    count: usize,
    /// Rules for JSON, by their schemas.
    json: HashMap<String, String>,
}

impl<'a> Lark<'a> {
    pub(super) fn new(tokens: &'a [(String, u32)]) -> Lark<'a> {
        Lark { tokens, rules: String::new(), count: 0, json: HashMap::new() }
    }

    /// The grammar that begins with this.
    pub(super) fn whole(self, start: &str) -> String {
        format!("start: {start}\n{}", self.rules)
    }

    /// A rule of its own for this; its name.
    pub(super) fn rule(&mut self, is: &str) -> String {
        self.named('r', is)
    }

    fn named(&mut self, kind: char, is: &str) -> String {
        self.count += 1;
        let name = format!("{kind}{}", self.count);
        // A failure to write into a text is one of memory.
        let _ = writeln!(self.rules, "{name}: {is}");
        name
    }

    /// This very text, its marks as tokens.
    pub(super) fn text(&self, text: &str) -> String {
        let mut items = Vec::new();
        let mut rest = text;
        while !rest.is_empty() {
            let (plain, token, behind) = self.cut(rest);
            for part in plain.split_inclusive([NUMBER, ID]) {
                let (words, sign) = match part.chars().next_back() {
                    Some(NUMBER) => (&part[..part.len() - 1], Some("/[0-9]{1,2}/")),
                    Some(ID) => (&part[..part.len() - 1], Some("/[a-zA-Z0-9]{9}/")),
                    _ => (part, None),
                };
                items.extend((!words.is_empty()).then(|| quoted(words)));
                items.extend(sign.map(str::to_owned));
            }
            items.extend(token.map(|id| format!("<[{id}]>")));
            rest = behind;
        }
        if items.is_empty() { "\"\"".to_owned() } else { items.join(" ") }
    }

    /// A text up to its first mark that is a token, the token, and what stands behind it.
    fn cut<'t>(&self, text: &'t str) -> (&'t str, Option<u32>, &'t str) {
        let found = self.tokens.iter().filter_map(|(mark, id)| Some((text.find(mark.as_str())?, mark.len(), *id)));
        match found.min_by_key(|(at, length, _)| (*at, usize::MAX - length)) {
            Some((at, length, id)) => (&text[..at], Some(id), &text[at + length..]),
            None => (text, None, ""),
        }
    }

    /// A text that a model is free in, up to its end and with it.
    pub(super) fn free(&mut self, of: &LarkText<'_>) -> String {
        let (before, token, _) = self.cut(of.close);
        let mut is = format!("/(?s:.*)/ & ~/(?s:.*){}(?s:.*)/", escaped(of.mark));
        if of.least > 0 || of.most.is_some() {
            let most = of.most.map_or_else(String::new, |most| most.to_string());
            let _ = write!(is, " & /(?s:.{{{},{most}}})/", of.least);
            if of.trimmed {
                is.push_str(" & ~/\\n(?s:.*)/ & ~/(?s:.*)\\n/");
            }
        }
        if token.is_none() || !before.is_empty() {
            // Text and end are one word, for a word is as long as it can be.
            let text = self.named('T', &format!("({is}) {}", quoted(before)));
            let rest = self.text(&of.close[before.len()..]);
            return format!("{text} {rest}");
        }
        // No word is empty.
        let text = self.named('T', &format!("{is} & /(?s:.+)/"));
        format!("{text}{} {}", if of.least > 0 { "" } else { "?" }, self.text(of.close))
    }

    /// JSON of a schema.
    ///
    /// # Errors
    /// A schema that cannot be enforced.
    pub(super) fn json(&mut self, of: &Value) -> Result<String, String> {
        let is = format!("%json {}", schema::of(of)?);
        if let Some(name) = self.json.get(&is) {
            return Ok(name.clone());
        }
        let name = self.rule(&is);
        self.json.insert(is, name.clone());
        Ok(name)
    }
}

/// A text as Lark has it.
fn quoted(text: &str) -> String {
    Value::from(text).to_string().replace('\u{7f}', "\\u007f")
}

/// One of these.
pub(super) fn one_of(all: impl IntoIterator<Item = String>) -> String {
    format!("({})", all.into_iter().collect::<Vec<_>>().join(" | "))
}
