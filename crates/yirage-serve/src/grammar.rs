//! What an answer's form is to be, and the constraint that makes it so.
//!
//! A form is enforced or refused: what a schema asks for and cannot be enforced is an error that names it, before anything
//! is computed. An answer that is cut off by its limit is the only one that may lack its form.

use crate::error::ApiError;
use crate::models::Generator;
use crate::tools::{Choice, ToolUse};
use crate::vocabulary::Vocabulary;
use llguidance::api::TopLevelGrammar;
use llguidance::{Matcher, TokenParser};
use serde_json::{Map, Value, json};
use std::sync::Arc;
use yirage_engine::sampling::{Constraint, TokenMask};

/// The form of an answer.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Grammar {
    /// Any text.
    Free,
    /// A JSON object.
    Object,
    /// JSON of this schema.
    Schema(Value),
}

impl Grammar {
    /// The form that `response_format` asks for.
    ///
    /// # Errors
    /// What is no form.
    pub(crate) fn of_response_format(format: &Value) -> Result<Grammar, ApiError> {
        match format.get("type").and_then(Value::as_str) {
            Some("text") => Ok(Grammar::Free),
            Some("json_object") => Ok(Grammar::Object),
            Some("json_schema") => {
                // The responses interface has the schema beside its type.
                let inner = format.get("json_schema").unwrap_or(format);
                let schema = inner.get("schema").filter(|schema| schema.is_object());
                let missing =
                    || ApiError::field("response_format.json_schema.schema", "`json_schema.schema` is missing");
                schema.cloned().map(Grammar::Schema).ok_or_else(missing)
            }
            _ => {
                let what = "`response_format.type`: expected text, json_object or json_schema";
                Err(ApiError::field("response_format", what))
            }
        }
    }

    /// The form that vLLM's field asks for.
    ///
    /// # Errors
    /// What is no form.
    pub(crate) fn of_structured_outputs(wanted: &Value) -> Result<Grammar, ApiError> {
        let field = "structured_outputs";
        let Some((key, value)) = wanted.as_object().and_then(|map| map.iter().find(|(_, value)| !value.is_null()))
        else {
            return Err(ApiError::field(field, "`structured_outputs`: expected an object with one form"));
        };
        match (key.as_str(), value) {
            ("json", Value::Object(_)) => Ok(Grammar::Schema(value.clone())),
            ("json_object", Value::Bool(true)) => Ok(Grammar::Object),
            ("choice", Value::Array(list)) if list.iter().all(Value::is_string) => {
                let why = "a choice between bare texts is no JSON; ask for `json` with an enum";
                Err(ApiError::unsupported(field, why))
            }
            _ => {
                let why = format!("there is no form `{key}` of this kind; send `json` or `json_object`");
                Err(ApiError::unsupported(field, &why))
            }
        }
    }

    /// The form that one of both fields asks for.
    ///
    /// # Errors
    /// As these, and both at once.
    pub(crate) fn of_fields(format: Option<Value>, structured: Option<Value>) -> Result<Grammar, ApiError> {
        match (format, structured) {
            (Some(_), Some(_)) => {
                let what = "`structured_outputs` and `response_format` exclude each other";
                Err(ApiError::field("structured_outputs", what))
            }
            (Some(format), None) => Grammar::of_response_format(&format),
            (None, Some(structured)) => Grammar::of_structured_outputs(&structured),
            (None, None) => Ok(Grammar::Free),
        }
    }

    /// The form of a call that has to come; none where the model decides.
    ///
    /// # Errors
    /// A form beside it that the answer cannot have as well.
    pub(crate) fn of_call(&self, used: &ToolUse) -> Result<Option<Grammar>, ApiError> {
        let name = match &used.choice {
            Choice::None | Choice::Auto => return Ok(None),
            Choice::Required => None,
            Choice::Named(name) => Some(name),
        };
        if *self != Grammar::Free {
            let why = "a call that has to come leaves no room for another form";
            return Err(ApiError::unsupported("response_format", why));
        }
        let tools = used.tools.iter().filter(|tool| name.is_none_or(|name| *name == tool.name));
        let call = tools.map(|tool| {
            let properties = json!({"name": {"const": tool.name}, "parameters": tool.parameters});
            json!({
                "type": "object", "properties": properties, "required": ["name", "parameters"],
                "additionalProperties": false,
            })
        });
        Ok(Some(Grammar::Schema(json!({"anyOf": call.collect::<Vec<_>>()}))))
    }

    /// The grammar for a model's vocabulary.
    ///
    /// # Errors
    /// A schema that cannot be enforced, with what cannot.
    pub(crate) fn compile(&self, generator: &Generator) -> Result<Compiled, ApiError> {
        let schema = match self {
            Grammar::Free => return Ok(Compiled(None)),
            Grammar::Object => json!({"type": "object"}),
            Grammar::Schema(schema) => schema.clone(),
        };
        let refused = |why: String| {
            let what = format!("the schema cannot be enforced: {why}");
            ApiError { code: Some("unsupported_schema"), ..ApiError::field("response_format", what) }
        };
        let vocabulary = generator.vocabulary().map_err(|why| refused(why.clone()))?;
        let grammar = TopLevelGrammar::from_json_schema(with_spaces(schema));
        let parser = vocabulary.factory.create_parser(grammar).map_err(|why| refused(why.to_string()))?;
        Ok(Compiled(Some(Prepared { parser, vocabulary: vocabulary.clone() })))
    }
}

/// The schema with how JSON is spaced: as Python writes it, so that no answer is white space without end. What a client
/// says under this key would weaken the schema.
fn with_spaces(schema: Value) -> Value {
    let mut map = match schema {
        Value::Object(map) => map,
        _ => Map::new(),
    };
    let spaces = json!({"whitespace_flexible": false, "item_separator": ", ", "key_separator": ": "});
    map.insert("x-guidance".into(), spaces);
    Value::Object(map)
}

/// A grammar for one model; none where any text will do.
pub(crate) struct Compiled(Option<Prepared>);

struct Prepared {
    parser: TokenParser,
    vocabulary: Arc<Vocabulary>,
}

impl Compiled {
    /// A constraint for one answer.
    pub(crate) fn constraint(&self) -> Option<Box<dyn Constraint>> {
        let prepared = self.0.as_ref()?;
        let matcher = Matcher::new(Ok(prepared.parser.deep_clone()));
        Some(Box::new(Held { matcher, vocabulary: prepared.vocabulary.clone() }))
    }
}

/// An answer that is held to a grammar. After an error it allows no token, which ends the answer as one without its form.
struct Held {
    matcher: Matcher,
    vocabulary: Arc<Vocabulary>,
}

impl Constraint for Held {
    fn fill(&mut self, allowed: &mut TokenMask) {
        let Ok(mask) = self.matcher.compute_mask_or_eos() else { return };
        allowed.words_mut().iter_mut().zip(mask.as_slice()).for_each(|(to, from)| *to = *from);
        let ends = &self.vocabulary.ends;
        if ends.first().is_some_and(|end| allowed.allows(*end)) {
            ends.iter().for_each(|end| allowed.allow(*end));
        }
    }

    fn accept(&mut self, token: u32) {
        let ends = &self.vocabulary.ends;
        let token = if ends.contains(&token) { ends.first().copied().unwrap_or(token) } else { token };
        if let Err(error) = self.matcher.consume_token(token) {
            tracing::warn!(%error, "a grammar did not take a token");
        }
    }

    fn roll_back(&mut self, tokens: usize) {
        if let Err(error) = self.matcher.rollback(tokens) {
            tracing::warn!(%error, "a grammar could not go back");
        }
    }
}
