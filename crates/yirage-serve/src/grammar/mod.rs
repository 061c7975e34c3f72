//! What an answer's form is to be, and the constraint that makes it so.
//!
//! A form is enforced or refused: what a schema asks for and cannot be enforced is an error that names it, before anything
//! is computed. An answer that is cut off by its limit is the only one that may lack its form.

mod calls;
mod fields;
mod formats;
mod gbnf;
mod held;
mod patterns;
mod schema;
mod text;

pub(crate) use fields::FORMS;
pub(crate) use held::Compiled;

use crate::error::ApiError;
use crate::models::Generator;
use crate::vocabulary::Vocabulary;
use llguidance::api::TopLevelGrammar;
use serde_json::{Map, Value, json};
use std::sync::Arc;

/// The form of an answer.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Grammar {
    pub(crate) shape: Shape,
    /// The field that asks for it, which errors name.
    field: String,
}

/// What an answer is made of.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Shape {
    /// Any text.
    Free,
    /// A JSON object.
    Object,
    /// JSON of this schema.
    Schema(Value),
    /// A text that a regular expression matches from its beginning to its end.
    Regex(String),
    /// One of these texts.
    Choice(Vec<String>),
    /// A text of a grammar: GBNF as llama.cpp has it, else llguidance's dialect of Lark.
    Text(String),
    /// Calls of tools: JSON of this schema, so many times at most.
    Calls { schema: Value, most: usize },
}

impl Grammar {
    /// Any text will do.
    pub(crate) fn free() -> Grammar {
        Grammar::new(Shape::Free, "response_format")
    }

    pub(crate) fn new(shape: Shape, field: &str) -> Grammar {
        Grammar { shape, field: field.to_owned() }
    }

    /// The grammar for a model's vocabulary.
    ///
    /// # Errors
    /// A form that cannot be enforced, with what cannot.
    pub(crate) fn compile(&self, generator: &Generator) -> Result<Compiled, ApiError> {
        self.compile_for(|| generator.vocabulary().cloned().map_err(String::clone))
    }

    /// The same for a vocabulary, which is made where it is wanted.
    ///
    /// # Errors
    /// As [`Grammar::compile`]; why there is no vocabulary.
    pub(crate) fn compile_for(
        &self,
        vocabulary: impl FnOnce() -> Result<Arc<Vocabulary>, String>,
    ) -> Result<Compiled, ApiError> {
        let Some(grammar) = self.of_library()? else { return Ok(Compiled::free()) };
        let vocabulary = &vocabulary().map_err(|why| self.refused(&why))?;
        // Forms nest as deep as whoever writes them likes, and are compiled by functions that call themselves.
        text::with_room(|| Compiled::new(vocabulary, grammar)).map_err(|why| self.refused(&why))
    }

    /// In the words of the library that enforces it; none where any text will do.
    fn of_library(&self) -> Result<Option<TopLevelGrammar>, ApiError> {
        if let Shape::Schema(schema) | Shape::Calls { schema, .. } = &self.shape {
            schema::check(schema).map_err(|why| self.refused(&why))?;
        }
        Ok(Some(match &self.shape {
            Shape::Free => return Ok(None),
            Shape::Object => TopLevelGrammar::from_json_schema(with_spaces(json!({"type": "object"}))),
            Shape::Schema(schema) => TopLevelGrammar::from_json_schema(with_spaces(schema.clone())),
            Shape::Regex(regex) => {
                text::check(regex).map_err(|why| self.refused(&why))?;
                TopLevelGrammar::from_regex(text::without_anchors(regex))
            }
            Shape::Choice(texts) => {
                let texts: Vec<String> = texts.iter().map(|text| text::escaped(text)).collect();
                TopLevelGrammar::from_regex(&format!("({})", texts.join("|")))
            }
            Shape::Text(text) => {
                TopLevelGrammar::from_lark(text::lark(text).map_err(|why| self.refused(&why))?.into_owned())
            }
            Shape::Calls { schema, most: 1 } => TopLevelGrammar::from_json_schema(with_spaces(schema.clone())),
            Shape::Calls { schema, most } => {
                let more = most.saturating_sub(1);
                let schema = with_spaces(schema.clone());
                TopLevelGrammar::from_lark(format!("start: call (\"; \" call){{0,{more}}}\ncall: %json {schema}\n"))
            }
        }))
    }

    fn refused(&self, why: &str) -> ApiError {
        let (code, what) = match self.shape {
            Shape::Object | Shape::Schema(_) | Shape::Calls { .. } => ("unsupported_schema", "the schema"),
            _ => ("unsupported_grammar", "the form"),
        };
        let what = format!("`{}`: {what} cannot be enforced: {why}", self.field);
        ApiError { code: Some(code), ..ApiError::field(&self.field, what) }
    }
}

/// The schema with how JSON is spaced: as Python writes it, so that no answer is white space without end. What a client
/// says under this key would weaken the schema.
fn with_spaces(mut schema: Value) -> Value {
    schema::each(&mut schema, &mut |one| {
        formats::narrow(one);
        patterns::narrow(one);
    });
    let mut map = match schema {
        Value::Object(map) => map,
        _ => Map::new(),
    };
    let spaces = json!({"whitespace_flexible": false, "item_separator": ", ", "key_separator": ": "});
    map.insert("x-guidance".into(), spaces);
    Value::Object(map)
}
