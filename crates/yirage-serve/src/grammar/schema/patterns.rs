//! Classes of characters that mean in JSON's text what they mean in its value.
//!
//! Within JSON a quotation mark and a backslash are written with a backslash before them. derivre (0.3.13), which writes
//! patterns so for llguidance, takes a class of all control characters for one that has those two as well, so that `[^"]` lets
//! a quotation mark in. A class without the character of code 0 is written right, and no text of a model needs that
//! character.
//!
//! What `\d`, `\w` and `\s` leave out is not one thing: ECMA-262 means letters and digits of ASCII, Python and Rust those of
//! all scripts, and white space differs by some characters. A pattern of a text takes what all of them take.
//!
//! A pattern without `^` is looked for anywhere: a model that does not write it of its own accord would write what stands
//! before it without end. So many characters may stand there, and then it comes.

use regex_syntax::ast::parse::Parser;
use regex_syntax::ast::{AssertionKind, Ast, ClassPerl, ClassPerlKind, ClassSetItem, Span, Visitor, visit};
use serde_json::{Map, Value};

/// Characters that may stand before a pattern that is looked for.
const MAX_BEFORE: usize = 256;

/// Keywords beside which a pattern stays as it is: they bound the text, or have to hold with the pattern, which the library
/// would not find out of long bounded texts.
const BESIDE: [&str; 9] = ["minLength", "maxLength", "format", "enum", "const", "$ref", "allOf", "anyOf", "oneOf"];

/// Bounds what stands before a schema's pattern where it is looked for.
pub(super) fn bound(schema: &mut Map<String, Value>) {
    if BESIDE.iter().any(|key| schema.contains_key(*key)) {
        return;
    }
    if let Some(Value::String(pattern)) = schema.get_mut("pattern")
        && let Some(sought) = sought(pattern)
    {
        *pattern = format!("^(?s:.){{0,{MAX_BEFORE}}}(?:{sought})");
    }
}

/// The part of a pattern that is looked for; none where it stands at the beginning, or is found in most texts.
fn sought(pattern: &str) -> Option<&str> {
    let sought = pattern.strip_prefix('^').map_or(Some(pattern), |rest| rest.strip_prefix(".*"))?;
    let ast = Parser::new().parse(sought).ok()?;
    // Of several alternatives the anchor is that of the first one.
    let anchored_alone = pattern.len() != sought.len() && matches!(ast, Ast::Alternation(_));
    let begins = visit(&ast, Beginnings::default()).is_ok_and(|begins| begins);
    let least = regex_syntax::parse(sought).ok()?.properties().minimum_len()?;
    (!anchored_alone && !begins && least > 1).then_some(sought)
}

/// Whether a pattern asks somewhere for the beginning of the text.
#[derive(Default)]
struct Beginnings(bool);

impl Visitor for Beginnings {
    type Output = bool;
    type Err = std::convert::Infallible;

    fn finish(self) -> Result<bool, Self::Err> {
        Ok(self.0)
    }

    fn visit_pre(&mut self, ast: &Ast) -> Result<(), Self::Err> {
        if let Ast::Assertion(assertion) = ast {
            self.0 |= matches!(assertion.kind, AssertionKind::StartLine | AssertionKind::StartText);
        }
        Ok(())
    }
}

/// Takes the character of code 0 out of the classes of a schema's own patterns, and what is not the same for all out of those
/// that have a letter for their name.
pub(super) fn narrow(schema: &mut Map<String, Value>) {
    if let Some(Value::String(pattern)) = schema.get_mut("pattern") {
        *pattern = narrowed(&common(pattern));
    }
    // Names that a pattern loses become additional ones, so that it may lose some only where there are none.
    let closed = schema.get("additionalProperties") == Some(&Value::Bool(false));
    if let Some(Value::Object(named)) = schema.get_mut("patternProperties") {
        let of = |pattern: &str| if closed { narrowed(&common(pattern)) } else { narrowed(pattern) };
        *named = std::mem::take(named).into_iter().map(|(pattern, value)| (of(&pattern), value)).collect();
    }
}

/// A pattern whose classes lack that character; as it is where it cannot be read, which the library says.
fn narrowed(pattern: &str) -> String {
    replaced(pattern, |found| found.classes, |_, class| format!("[{class}&&[^\\x00]]"))
}

/// A pattern whose classes by a letter have what all dialects mean by it.
fn common(pattern: &str) -> String {
    replaced(pattern, |found| found.letters, |letter, _| (*letter).to_owned())
}

/// A pattern with other texts for some of its parts.
fn replaced<T>(pattern: &str, which: fn(PatternClasses) -> Vec<(Span, T)>, by: impl Fn(&T, &str) -> String) -> String {
    let Ok(ast) = Parser::new().parse(pattern) else { return pattern.to_owned() };
    let Ok(found) = visit(&ast, PatternClasses::default());
    let (mut made, mut behind) = (String::with_capacity(pattern.len()), 0);
    for (span, what) in which(found) {
        let (begin, end) = (span.start.offset, span.end.offset);
        made.push_str(&pattern[behind..begin]);
        made.push_str(&by(&what, &pattern[begin..end]));
        behind = end;
    }
    made + &pattern[behind..]
}

/// What stands in a pattern, in order.
#[derive(Default)]
struct PatternClasses {
    /// Its classes; those within others are part of them.
    classes: Vec<(Span, ())>,
    /// Its classes by a letter that are not the same for all, with one that is.
    letters: Vec<(Span, &'static str)>,
    /// The class that is being looked at leaves out what stands in it.
    leaves_out: bool,
}

impl PatternClasses {
    fn letter(&mut self, class: &ClassPerl) {
        // Within a class that leaves out, more is less.
        let common = match (&class.kind, class.negated, self.leaves_out) {
            (ClassPerlKind::Word, true, false) => r"[^\p{Alphabetic}\p{M}\p{N}\p{Pc}\x{200c}\x{200d}]",
            (ClassPerlKind::Word, false, true) => r"[\p{Alphabetic}\p{M}\p{N}\p{Pc}\x{200c}\x{200d}]",
            (ClassPerlKind::Digit, true, false) => r"[^\p{Nd}]",
            (ClassPerlKind::Digit, false, true) => r"[\p{Nd}]",
            (ClassPerlKind::Space, true, false) => r"[^\s\x1c-\x1f\x{feff}]",
            (ClassPerlKind::Space, false, true) => r"[\s\x1c-\x1f\x{feff}]",
            (ClassPerlKind::Space, true, true) => r"[\S\x{85}]",
            (ClassPerlKind::Space, false, false) => r"[\s&&[^\x{85}]]",
            // The library takes those of ASCII.
            (ClassPerlKind::Word | ClassPerlKind::Digit, ..) => return,
        };
        self.letters.push((class.span, common));
    }
}

impl Visitor for PatternClasses {
    type Output = PatternClasses;
    type Err = std::convert::Infallible;

    fn finish(self) -> Result<PatternClasses, Self::Err> {
        Ok(self)
    }

    fn visit_pre(&mut self, ast: &Ast) -> Result<(), Self::Err> {
        match ast {
            Ast::ClassBracketed(class) => {
                self.classes.push((class.span, ()));
                self.leaves_out = class.negated;
            }
            Ast::ClassUnicode(class) => self.classes.push((class.span, ())),
            Ast::ClassPerl(class) => self.letter(class),
            _ => {}
        }
        Ok(())
    }

    fn visit_post(&mut self, _: &Ast) -> Result<(), Self::Err> {
        self.leaves_out = false;
        Ok(())
    }

    fn visit_class_set_item_pre(&mut self, item: &ClassSetItem) -> Result<(), Self::Err> {
        match item {
            ClassSetItem::Perl(class) => self.letter(class),
            ClassSetItem::Bracketed(class) => self.leaves_out ^= class.negated,
            _ => {}
        }
        Ok(())
    }

    fn visit_class_set_item_post(&mut self, item: &ClassSetItem) -> Result<(), Self::Err> {
        if let ClassSetItem::Bracketed(class) = item {
            self.leaves_out ^= class.negated;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::takes;
    use super::{bound, narrow};
    use serde_json::json;

    #[test]
    fn what_is_looked_for_comes_in_the_end() {
        let bounded = |pattern: &str| {
            let mut schema = json!({"pattern": pattern});
            bound(schema.as_object_mut().unwrap());
            schema["pattern"] != pattern
        };
        for pattern in [r"\.png$", "1.0", "a@b|c@d", r"^.*\.png$", "x{3}"] {
            assert!(bounded(pattern), "{pattern}");
        }
        for pattern in ["^ab", "^a|bc", "^.*ab|cd", "x", ".", "", "a*", ".+", "(?:^ab|c)d", "^.*a"] {
            assert!(!bounded(pattern), "{pattern}");
        }
        let png = json!({"type": "string", "pattern": r"\.png$"});
        assert!(takes(png.clone(), r#""a \"b\" ü\n.png""#) && takes(png.clone(), r#"".png""#));
        assert!(!takes(png.clone(), r#""a.pn""#) && !takes(png.clone(), r#""a.png ""#));
        assert!(takes(png.clone(), &format!("\"{}.png\"", "ä".repeat(256))));
        assert!(!takes(png, &format!("\"{}.png\"", "ä".repeat(257))));
        let mut long = json!({"pattern": "end$", "maxLength": 30});
        bound(long.as_object_mut().unwrap());
        assert_eq!(long["pattern"], "end$", "its length bounds it");
    }

    #[test]
    fn classes_of_patterns_lose_one_character() {
        for (pattern, wanted) in [
            (r#"^[^"]{0,6}$"#, r#"^[[^"]&&[^\x00]]{0,6}$"#),
            (r"a(?:[^\\b]|\d.)*\[x\]", r"a(?:[[^\\b]&&[^\x00]]|\d.)*\[x\]"),
            (r"[a[^c]]\p{Cc}ä[ß]", r"[[a[^c]]&&[^\x00]][\p{Cc}&&[^\x00]]ä[[ß]&&[^\x00]]"),
            ("(", "("),
        ] {
            let mut schema = json!({"pattern": pattern, "patternProperties": {pattern: true}});
            narrow(schema.as_object_mut().unwrap());
            assert_eq!(schema, json!({"pattern": wanted, "patternProperties": {wanted: true}}));
        }
    }

    #[test]
    fn classes_by_a_letter_are_what_all_mean_by_it() {
        for (pattern, text, wanted) in [
            (r"^\W$", r#""é""#, false),
            (r"^\W$", r#""-""#, true),
            (r"^[\W_]$", r#""½""#, false),
            (r"^[\W_]$", r#""_""#, true),
            (r"^\D$", r#""٣""#, false),
            (r"^\D$", r#""a""#, true),
            (r"^[^\d]$", r#""٣""#, false),
            (r"^[^\W]$", r#""é""#, false),
            (r"^[^\W]$", r#""e""#, true),
            (r"^[^a\s]$", "\"\u{feff}\"", false),
            (r"^[^a[^\s]]$", "\"\u{85}\"", false),
            (r"^\S$", "\"\u{feff}\"", false),
            (r"^\S$", r#""é""#, true),
            (r"^\s$", "\"\u{85}\"", false),
            (r"^\w$", r#""é""#, false),
            (r"^[\w]$", r#""é""#, false),
            (r"^[\w-]+$", r#""a-é""#, false),
            (r"^[\w-]+$", r#""a-e_0""#, true),
            (r"^\d$", r#""٣""#, false),
            (r"^[\d]$", r#""٣""#, false),
            (r"^[^\D]$", r#""٣""#, false),
            (r"^[^\D]$", r#""3""#, true),
            (r"^[\da-f]+$", r#""0３""#, false),
            (r"^(?:\w|\d)$", r#""ß""#, false),
            (r"^[[\w]&&[^_]]$", r#""é""#, false),
        ] {
            assert_eq!(takes(json!({"type": "string", "pattern": pattern}), text), wanted, "{pattern}: {text}");
        }
        let closed = |additional: bool| {
            let mut schema = json!({"patternProperties": {r"^\S$": true}, "additionalProperties": additional});
            narrow(schema.as_object_mut().unwrap());
            schema["patternProperties"].get(r"^\S$").is_none()
        };
        assert!(closed(false) && !closed(true));
    }

    #[test]
    fn what_a_class_leaves_out_is_not_written() {
        for pattern in [r#"^[^"]*$"#, r#"^[^"\\]*$"#, r#"^[\x00-!#-\[\]-~]*$"#] {
            let schema = json!({"type": "string", "pattern": pattern});
            assert!(takes(schema.clone(), r#""ab\n\u0001""#), "{pattern}");
            assert!(!takes(schema, r#""ab\"""#), "{pattern}");
        }
        let both = json!({"type": "string", "pattern": r#"^[^a]*$"#});
        assert!(takes(both.clone(), r#""b\"\\""#) && !takes(both, r#""a""#));
    }
}
