//! Classes of characters that mean in JSON's text what they mean in its value.
//!
//! Within JSON a quotation mark and a backslash are written with a backslash before them. derivre (0.3.13), which writes
//! patterns so for llguidance, takes a class of all control characters for one that has those two as well, so that `[^"]` lets
//! a quotation mark in. A class without the character of code 0 is written right, and no text of a model needs that
//! character.

use regex_syntax::ast::parse::Parser;
use regex_syntax::ast::{Ast, Span, Visitor, visit};
use serde_json::{Map, Value};

/// Takes the character of code 0 out of the classes of a schema's own patterns.
pub(super) fn narrow(schema: &mut Map<String, Value>) {
    if let Some(Value::String(pattern)) = schema.get_mut("pattern") {
        *pattern = narrowed(pattern);
    }
    if let Some(Value::Object(named)) = schema.get_mut("patternProperties") {
        *named = std::mem::take(named).into_iter().map(|(pattern, value)| (narrowed(&pattern), value)).collect();
    }
}

/// A pattern whose classes lack that character; as it is where it cannot be read, which the library says.
fn narrowed(pattern: &str) -> String {
    let Ok(ast) = Parser::new().parse(pattern) else { return pattern.to_owned() };
    let Ok(classes) = visit(&ast, Classes::default());
    let (mut made, mut behind) = (String::with_capacity(pattern.len()), 0);
    for class in classes {
        let (begin, end) = (class.start.offset, class.end.offset);
        made.extend([&pattern[behind..begin], "[", &pattern[begin..end], r"&&[^\x00]]"]);
        behind = end;
    }
    made + &pattern[behind..]
}

/// Where the classes of a pattern stand, in order; those within others are part of them.
#[derive(Default)]
struct Classes(Vec<Span>);

impl Visitor for Classes {
    type Output = Vec<Span>;
    type Err = std::convert::Infallible;

    fn finish(self) -> Result<Vec<Span>, Self::Err> {
        Ok(self.0)
    }

    fn visit_pre(&mut self, ast: &Ast) -> Result<(), Self::Err> {
        match ast {
            Ast::ClassBracketed(class) => self.0.push(class.span),
            Ast::ClassUnicode(class) => self.0.push(class.span),
            // What these leave out is neither of the two characters.
            _ => {}
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::narrow;
    use crate::grammar::{Grammar, Shape};
    use crate::vocabulary::Vocabulary;
    use serde_json::{Value, json};
    use yirage_engine::sampling::TokenMask;

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

    /// Whether a text, byte by byte, is what a schema takes.
    fn takes(schema: Value, text: &str) -> bool {
        let grammar = Grammar::new(Shape::Schema(schema), "response_format");
        let mut held = grammar.compile_for(Vocabulary::of_bytes).unwrap().constraint().unwrap();
        text.bytes().all(|byte| {
            let mut allowed = TokenMask::none(257);
            held.fill(&mut allowed);
            held.accept(u32::from(byte));
            allowed.allows(u32::from(byte))
        })
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
