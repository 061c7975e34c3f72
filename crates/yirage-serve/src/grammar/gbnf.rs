//! GBNF, llama.cpp's form of grammars (grammars/README.md of that project), translated into llguidance's dialect of Lark.
//!
//! A rule that does not come back to itself becomes one lexeme, so that it is matched as the regular expression that it is.
//! The other rules stay rules of the parser above it. There each lexeme takes as much text as it can, by which a grammar
//! that leans on other splits is narrower than it was; nothing outside of it is ever allowed.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;

/// Brackets of any kind that are open at once.
pub(super) const MAX_DEPTH: usize = 64;

/// Rules of a grammar.
const MAX_RULES: usize = 512;

/// Rules that lead to each other without coming back, one within the other.
const MAX_CHAIN: usize = 64;

/// How often something may be repeated by numbers, as llama.cpp has it.
const MAX_REPEAT: u32 = 2000;

/// Something that a rule is made of.
#[derive(Clone, Debug, PartialEq)]
enum GbnfItem {
    Text(String),
    /// A regular expression of one character.
    Class(String),
    Rule(String),
    Group(Vec<Vec<GbnfItem>>),
    Repeat(Box<GbnfItem>, u32, Option<u32>),
}

struct GbnfRule {
    alternatives: Vec<Vec<GbnfItem>>,
    refers: BTreeSet<String>,
}

/// The grammar in Lark.
///
/// # Errors
/// What is no GBNF, with its line; what cannot be said in Lark.
pub(super) fn lark(text: &str) -> Result<String, String> {
    let rules = GbnfParser { text, at: 0, refers: BTreeSet::new() }.rules()?;
    if !rules.contains_key("root") {
        return Err("it has no rule `root`".into());
    }
    for rule in rules.values() {
        if let Some(unknown) = rule.refers.iter().find(|name| !rules.contains_key(*name)) {
            return Err(format!("there is no rule `{unknown}`"));
        }
    }
    let regular = regular(&rules)?;
    let names: BTreeMap<&str, String> = rules
        .keys()
        .enumerate()
        .map(|(at, name)| {
            let name = name.as_str();
            (name, if regular.contains(name) { format!("T{at}") } else { format!("r{at}") })
        })
        .collect();
    let mut out = String::new();
    // A failure to write into a text is one of memory.
    let _ = writeln!(out, "start: {}", names["root"]);
    for (name, rule) in &rules {
        let _ = write!(out, "{}: ", names[name.as_str()]);
        write_alternatives(&mut out, &rule.alternatives, &names);
        out.push('\n');
    }
    Ok(out)
}

/// The rules that never come back to themselves, nor lead to one that does.
fn regular(rules: &BTreeMap<String, GbnfRule>) -> Result<BTreeSet<&str>, String> {
    let mut regular: BTreeSet<&str> = BTreeSet::new();
    for round in 0.. {
        let is_next = |(name, rule): &(&String, &GbnfRule)| {
            !regular.contains(name.as_str()) && rule.refers.iter().all(|of| regular.contains(of.as_str()))
        };
        let next: Vec<&str> = rules.iter().filter(is_next).map(|(name, _)| name.as_str()).collect();
        if next.is_empty() {
            break;
        }
        if round >= MAX_CHAIN {
            return Err(format!("more than {MAX_CHAIN} rules lead to each other, as `{}`", next[0]));
        }
        regular.extend(next);
    }
    Ok(regular)
}

fn write_alternatives(out: &mut String, alternatives: &[Vec<GbnfItem>], names: &BTreeMap<&str, String>) {
    for (at, sequence) in alternatives.iter().enumerate() {
        out.push_str(if at == 0 { "" } else { " | " });
        if sequence.is_empty() {
            out.push_str("\"\"");
        }
        for (at, item) in sequence.iter().enumerate() {
            out.push_str(if at == 0 { "" } else { " " });
            write_item(out, item, names);
        }
    }
}

fn write_item(out: &mut String, item: &GbnfItem, names: &BTreeMap<&str, String>) {
    match item {
        GbnfItem::Text(text) => out.push_str(&serde_json::Value::from(text.as_str()).to_string()),
        GbnfItem::Class(regex) => {
            let _ = write!(out, "/{regex}/");
        }
        GbnfItem::Rule(name) => out.push_str(names.get(name.as_str()).map_or("", String::as_str)),
        GbnfItem::Group(alternatives) => {
            out.push('(');
            write_alternatives(out, alternatives, names);
            out.push(')');
        }
        GbnfItem::Repeat(_, _, Some(0)) => out.push_str("\"\""),
        GbnfItem::Repeat(item, least, most) => {
            out.push('(');
            write_item(out, item, names);
            out.push(')');
            let _ = match (least, most) {
                (0, None) => write!(out, "*"),
                (1, None) => write!(out, "+"),
                (0, Some(1)) => write!(out, "?"),
                (least, Some(most)) => write!(out, "{{{least},{most}}}"),
                (least, None) => write!(out, "{{{least},}}"),
            };
        }
    }
}

struct GbnfParser<'a> {
    text: &'a str,
    at: usize,
    /// Rules that the one being read refers to.
    refers: BTreeSet<String>,
}

fn is_name(c: char) -> bool {
    c.is_ascii_alphanumeric() || c == '-' || c == '_'
}

impl GbnfParser<'_> {
    fn rest(&self) -> &str {
        self.text.get(self.at..).unwrap_or_default()
    }

    fn peek(&self) -> Option<char> {
        self.rest().chars().next()
    }

    fn next(&mut self) -> Option<char> {
        let c = self.peek()?;
        self.at += c.len_utf8();
        Some(c)
    }

    fn takes(&mut self, word: &str) -> bool {
        let has = self.rest().starts_with(word);
        self.at += if has { word.len() } else { 0 };
        has
    }

    fn error(&self, what: &str) -> String {
        let line = self.text.get(..self.at).unwrap_or_default().matches('\n').count() + 1;
        format!("line {line}: {what}")
    }

    /// Leaves out white space and comments; ends of lines as well where a rule cannot end.
    fn space(&mut self, lines: bool) {
        loop {
            match self.peek() {
                Some(' ' | '\t') => {}
                Some('\r' | '\n') if lines => {}
                Some('#') => {
                    self.at += self.rest().find(['\r', '\n']).unwrap_or(self.rest().len());
                    continue;
                }
                _ => return,
            }
            self.next();
        }
    }

    fn name(&mut self) -> Option<String> {
        let length = self.rest().find(|c| !is_name(c)).unwrap_or(self.rest().len());
        let name = self.rest().get(..length).filter(|name| !name.is_empty())?.to_owned();
        self.at += length;
        Some(name)
    }

    fn rules(mut self) -> Result<BTreeMap<String, GbnfRule>, String> {
        let mut rules = BTreeMap::new();
        self.space(true);
        while self.peek().is_some() {
            let name = self.name().ok_or_else(|| self.error("the name of a rule is missing"))?;
            self.space(false);
            if !self.takes("::=") {
                return Err(self.error(&format!("`::=` is missing behind `{name}`")));
            }
            self.space(true);
            let alternatives = self.alternatives(0)?;
            let refers = std::mem::take(&mut self.refers);
            if !matches!(self.peek(), None | Some('\r' | '\n')) {
                return Err(self.error("an end of line is missing"));
            }
            self.space(true);
            if rules.insert(name.clone(), GbnfRule { alternatives, refers }).is_some() {
                return Err(self.error(&format!("the rule `{name}` is there twice")));
            }
            if rules.len() > MAX_RULES {
                return Err(format!("it has more than {MAX_RULES} rules"));
            }
        }
        Ok(rules)
    }

    fn alternatives(&mut self, depth: usize) -> Result<Vec<Vec<GbnfItem>>, String> {
        let mut all = vec![self.sequence(depth)?];
        while self.takes("|") {
            self.space(true);
            all.push(self.sequence(depth)?);
        }
        Ok(all)
    }

    fn sequence(&mut self, depth: usize) -> Result<Vec<GbnfItem>, String> {
        let mut items = Vec::new();
        while let Some(c) = self.peek() {
            let item = match c {
                '"' => self.literal()?,
                '[' => self.class()?,
                '.' => {
                    self.next();
                    GbnfItem::Class("(?s:.)".into())
                }
                '(' => self.group(depth)?,
                '<' | '!' => return Err(self.error("tokens cannot be named in a grammar; write their text")),
                '*' | '+' | '?' | '{' => self.repeated(items.pop())?,
                c if is_name(c) => {
                    let name = self.name().unwrap_or_default();
                    self.refers.insert(name.clone());
                    GbnfItem::Rule(name)
                }
                _ => break,
            };
            items.push(item);
            self.space(depth > 0);
        }
        Ok(items)
    }

    fn group(&mut self, depth: usize) -> Result<GbnfItem, String> {
        self.next();
        if depth >= MAX_DEPTH {
            return Err(self.error(&format!("more than {MAX_DEPTH} groups within each other")));
        }
        self.space(true);
        let alternatives = self.alternatives(depth + 1)?;
        if self.takes(")") { Ok(GbnfItem::Group(alternatives)) } else { Err(self.error("`)` is missing")) }
    }

    fn repeated(&mut self, item: Option<GbnfItem>) -> Result<GbnfItem, String> {
        let item = item.ok_or_else(|| self.error("there is nothing to repeat"))?;
        // Repeated again and again it would nest as deep as the text is long.
        if matches!(&item, GbnfItem::Repeat(inner, ..) if matches!(**inner, GbnfItem::Repeat(..))) {
            return Err(self.error("something is repeated three times over"));
        }
        let (least, most) = match self.next() {
            Some('*') => (0, None),
            Some('+') => (1, None),
            Some('?') => (0, Some(1)),
            _ => self.numbers()?,
        };
        Ok(GbnfItem::Repeat(Box::new(item), least, most))
    }

    /// `m}`, `m,}` or `m,n}`.
    fn numbers(&mut self) -> Result<(u32, Option<u32>), String> {
        self.space(false);
        let least = self.number()?.ok_or_else(|| self.error("a number is missing behind `{`"))?;
        self.space(false);
        let mut most = Some(least);
        if self.takes(",") {
            self.space(false);
            most = self.number()?;
            self.space(false);
        }
        if !self.takes("}") || most.is_some_and(|most| most < least) {
            return Err(self.error("a number of times is {m}, {m,} or {m,n}"));
        }
        Ok((least, most))
    }

    fn number(&mut self) -> Result<Option<u32>, String> {
        let length = self.rest().find(|c: char| !c.is_ascii_digit()).unwrap_or(self.rest().len());
        let Some(digits) = self.rest().get(..length).filter(|digits| !digits.is_empty()) else { return Ok(None) };
        let number = digits.parse().ok().filter(|n| *n <= MAX_REPEAT);
        let number = number.ok_or_else(|| self.error(&format!("a number of times above {MAX_REPEAT}")))?;
        self.at += length;
        Ok(Some(number))
    }

    fn literal(&mut self) -> Result<GbnfItem, String> {
        self.next();
        let mut text = String::new();
        loop {
            match self.peek() {
                None | Some('\r' | '\n') => return Err(self.error("`\"` is missing")),
                Some('"') => {
                    self.next();
                    break;
                }
                Some(_) => text.push(self.character()?),
            }
        }
        Ok(GbnfItem::Text(text))
    }

    fn class(&mut self) -> Result<GbnfItem, String> {
        self.next();
        let mut regex = String::from("[");
        if self.takes("^") {
            regex.push('^');
        }
        let empty = regex.len();
        while !self.takes("]") {
            if self.peek().is_none() {
                return Err(self.error("`]` is missing"));
            }
            let first = self.character()?;
            let mut last = first;
            if self.rest().starts_with('-') && !self.rest().starts_with("-]") {
                self.next();
                last = self.character()?;
            }
            if last < first {
                return Err(self.error("a range of characters ends before it begins"));
            }
            let _ = write!(regex, "\\u{{{:x}}}-\\u{{{:x}}}", u32::from(first), u32::from(last));
        }
        if regex.len() == empty {
            return Err(self.error("a class without characters"));
        }
        regex.push(']');
        Ok(GbnfItem::Class(regex))
    }

    /// A character, escaped or not.
    fn character(&mut self) -> Result<char, String> {
        let Some(c) = self.next() else { return Err(self.error("the text ends within something")) };
        if c != '\\' {
            return Ok(c);
        }
        let digits = match self.next() {
            Some('n') => return Ok('\n'),
            Some('r') => return Ok('\r'),
            Some('t') => return Ok('\t'),
            Some(c @ ('\\' | '"' | '[' | ']' | '-' | '^')) => return Ok(c),
            Some('x') => 2,
            Some('u') => 4,
            Some('U') => 8,
            _ => return Err(self.error("an escape that is not known")),
        };
        let code = self.rest().get(..digits).and_then(|hex| u32::from_str_radix(hex, 16).ok()).and_then(char::from_u32);
        let code = code.ok_or_else(|| self.error("an escape that is no character"))?;
        self.at += digits;
        Ok(code)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rules_become_lexemes_where_they_do_not_come_back() {
        let text = "# a list\nroot ::= \"[\" ws (root (\",\" ws root)*)? \"]\" ws | name\nname ::= [a-z_]+ ws\nws ::= | \" \" | \"\\n\" [ \\t]{0,2}\n";
        let wanted = "start: r1\n\
            T0: (/[\\u{61}-\\u{7a}\\u{5f}-\\u{5f}]/)+ T2\n\
            r1: \"[\" T2 ((r1 (\",\" T2 r1)*))? \"]\" T2 | T0\n\
            T2: \"\" | \" \" | \"\\n\" (/[\\u{20}-\\u{20}\\u{9}-\\u{9}]/){0,2}\n";
        let of = lark(text).unwrap();
        assert_eq!(of.replace("((\",\" T2 r1))*", "(\",\" T2 r1)*"), wanted);
    }

    #[test]
    fn what_is_no_grammar_is_named_with_its_line() {
        for (text, what) in [
            ("a ::= \"x\"", "no rule `root`"),
            ("root ::= b", "no rule `b`"),
            ("root ::= \"x\"\nroot ::= \"y\"", "twice"),
            ("root ::= \"x\nroot", "line 1: `\"` is missing"),
            ("\nroot ::= (\"x\"", "line 2: `)` is missing"),
            ("root ::= [a", "`]` is missing"),
            ("root ::= []", "without characters"),
            ("root ::= [z-a]", "ends before it begins"),
            ("root ::= *", "nothing to repeat"),
            ("root ::= \"x\"{2,1}", "{m}, {m,} or {m,n}"),
            ("root ::= \"x\"{9999}", "above 2000"),
            ("root ::= \"\\q\"", "an escape"),
            ("root ::= \"\\ud800\"", "an escape"),
            ("root ::= <[5]>", "tokens cannot be named"),
            ("root ::= \"x\" )", "end of line"),
            ("::= a", "the name of a rule"),
            ("root = a ::= b", "`::=` is missing"),
        ] {
            let error = lark(text).unwrap_err();
            assert!(error.contains(what), "{text:?}: {error}");
        }
        let chain: String = (0..100).map(|i| format!("a{i} ::= a{}\n", i + 1)).collect();
        assert!(lark(&format!("root ::= a0\n{chain}a100 ::= \"x\"")).unwrap_err().contains("lead to each other"));
        assert!(lark(&format!("root ::= \"x\"{}", "*".repeat(9))).unwrap_err().contains("three times"));
    }
}
