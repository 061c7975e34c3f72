//! How hard a model is to think, in the words of OpenAI's interface.

use crate::error::ApiError;
use crate::fields::Fields;
use serde_json::Value;

/// The words, from not at all on.
const EFFORTS: [&str; 7] = ["none", "minimal", "low", "medium", "high", "xhigh", "max"];

/// What they are as a schema.
pub(crate) const EFFORT_SCHEMA: &str =
    r#"{"type":["string","null"],"enum":["none","minimal","low","medium","high","xhigh","max",null]}"#;

/// Takes a field that says it. A template with words of its own takes them in `chat_template_kwargs`.
///
/// # Errors
/// Another word.
pub(crate) fn effort(fields: &mut Fields, name: &str) -> Result<Option<String>, ApiError> {
    let Some(effort) = fields.text(name)? else { return Ok(None) };
    if EFFORTS.contains(&effort.as_str()) {
        return Ok(Some(effort));
    }
    let why = format!("expected one of {}; other words go into `chat_template_kwargs`", EFFORTS.join(", "));
    Err(fields.error(name, why))
}

/// Whether the model is to think, and how hard: ollama's field `think`.
///
/// # Errors
/// What is neither.
pub(crate) fn think(fields: &mut Fields) -> Result<(Option<bool>, Option<String>), ApiError> {
    match fields.take("think") {
        None => Ok((None, None)),
        Some(Value::Bool(on)) => Ok((Some(on), None)),
        Some(Value::String(effort)) if EFFORTS.contains(&effort.as_str()) => Ok((Some(effort != "none"), Some(effort))),
        Some(_) => {
            let what = format!("`think`: expected true, false or one of {}", EFFORTS.join(", "));
            Err(ApiError::field("think", what))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fields::{FieldTable, honoured};

    const TABLE: FieldTable = &[&[honoured("reasoning_effort", EFFORT_SCHEMA)]];

    #[test]
    fn words_are_those_of_the_schema_and_no_other_one_is_taken() {
        let read = |value: &str| {
            let body = format!("{{\"reasoning_effort\": {value}}}");
            effort(&mut Fields::parse(body.as_bytes(), TABLE).unwrap(), "reasoning_effort")
        };
        let schema: serde_json::Value = serde_json::from_str(EFFORT_SCHEMA).unwrap();
        for word in schema["enum"].as_array().unwrap() {
            assert_eq!(read(&word.to_string()).unwrap().as_deref(), word.as_str());
        }
        for other in [r#""""#, r#""hard""#, r#""High""#, r#""low ""#, "3", "true", r#"["low"]"#] {
            assert_eq!(read(other).unwrap_err().param.as_deref(), Some("reasoning_effort"), "{other}");
        }
    }
}
