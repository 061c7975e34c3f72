//! What an answer's form is to be, and the constraint that makes it so.
//!
//! A form is enforced or refused: what a schema asks for and cannot be enforced is an error that names it, before anything
//! is computed. An answer that is cut off by its limit is the only one that may lack its form.

mod calls;
mod constraint;
mod fields;
mod gbnf;
mod schema;
mod text;
mod walk;

pub(crate) use calls::ForcedCalls;
pub(crate) use constraint::CompiledGrammar;
pub(crate) use fields::FORMS;
pub use walk::Walked;

use self::calls::OwnCalls;
use crate::error::ApiError;
use crate::models::Generator;
use crate::vocabulary::Vocabulary;
use llguidance::api::TopLevelGrammar;
use serde_json::{Value, json};
use std::sync::Arc;

/// The form of an answer.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Grammar {
    pub(crate) shape: GrammarKind,
    /// The field that asks for it, which errors name.
    field: String,
}

/// What an answer is made of.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum GrammarKind {
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
    /// Calls of tools, as the model writes them.
    Calls(Box<OwnCalls>),
    /// Calls of tools as bare JSON of this schema, so many at most with `; ` between them.
    BareCalls { schema: Value, most: usize },
}

impl Grammar {
    /// Any text will do.
    pub(crate) fn free() -> Grammar {
        Grammar::new(GrammarKind::Free, "response_format")
    }

    pub(crate) fn new(shape: GrammarKind, field: &str) -> Grammar {
        Grammar { shape, field: field.to_owned() }
    }

    /// The grammar for a model's vocabulary.
    ///
    /// # Errors
    /// A form that cannot be enforced, with what cannot.
    pub(crate) fn compile(&self, generator: &Generator) -> Result<CompiledGrammar, ApiError> {
        self.compile_for(|| generator.vocabulary().cloned().map_err(String::clone))
    }

    /// The same for a vocabulary, which is made where it is wanted.
    ///
    /// # Errors
    /// As [`Grammar::compile`]; why there is no vocabulary.
    pub(crate) fn compile_for(
        &self,
        vocabulary: impl FnOnce() -> Result<Arc<Vocabulary>, String>,
    ) -> Result<CompiledGrammar, ApiError> {
        if self.shape == GrammarKind::Free {
            return Ok(CompiledGrammar::free());
        }
        let vocabulary = &vocabulary().map_err(|why| self.refused(&why))?;
        // Forms nest as deep as whoever writes them likes, and are compiled by functions that call themselves.
        let compiled = text::with_large_stack(|| CompiledGrammar::new(vocabulary, self.of_library()?));
        compiled.map_err(|why| self.refused(&why))
    }

    /// In the words of the library that enforces it.
    fn of_library(&self) -> Result<TopLevelGrammar, String> {
        Ok(match &self.shape {
            GrammarKind::Free => TopLevelGrammar::from_regex("(?s:.*)"),
            GrammarKind::Object => TopLevelGrammar::from_json_schema(schema::of(&json!({"type": "object"}))?),
            GrammarKind::Schema(schema) => TopLevelGrammar::from_json_schema(schema::of(schema)?),
            GrammarKind::Regex(regex) => {
                text::check(regex)?;
                TopLevelGrammar::from_regex(text::without_anchors(regex))
            }
            GrammarKind::Choice(texts) => TopLevelGrammar::from_regex(&text::choice(texts)?),
            GrammarKind::Text(text) => TopLevelGrammar::from_lark(text::lark(text)?.into_owned()),
            GrammarKind::Calls(calls) => TopLevelGrammar::from_lark(calls.lark()?),
            GrammarKind::BareCalls { schema, most: 1 } => TopLevelGrammar::from_json_schema(schema::of(schema)?),
            GrammarKind::BareCalls { schema, most } => {
                let more = most.saturating_sub(1);
                let schema = schema::of(schema)?;
                TopLevelGrammar::from_lark(format!("start: call (\"; \" call){{0,{more}}}\ncall: %json {schema}\n"))
            }
        })
    }

    fn refused(&self, why: &str) -> ApiError {
        let (code, what) = match self.shape {
            GrammarKind::Object | GrammarKind::Schema(_) | GrammarKind::Calls(_) | GrammarKind::BareCalls { .. } => {
                ("unsupported_schema", "the schema")
            }
            _ => ("unsupported_grammar", "the form"),
        };
        let what = format!("`{}`: {what} cannot be enforced: {why}", self.field);
        ApiError { code: Some(code), ..ApiError::field(&self.field, what) }
    }
}
