//! Fields that change nothing here, of OpenAI's interface and of others. What they say is checked as their makers' server checks it, so
//! that a client hears of a slip, and they are named unless their value asks for nothing.

use crate::error::ApiError;
use crate::fields::{FieldSpec, Fields, ignored, wrong};
use serde_json::Value;

const TEXT: &str = r#"{"type":["string","null"]}"#;
const OBJECT: &str = r#"{"type":["object","null"]}"#;
const SWITCH: &str = r#"{"type":["boolean","null"]}"#;

/// What says who asks.
pub(crate) const USER: FieldSpec = ignored("user", TEXT);
/// How soon an answer is to come; all come as soon as they can.
pub(crate) const SERVICE_TIER: FieldSpec =
    ignored("service_tier", r#"{"enum":["auto","default","flex","scale","priority","fast",null]}"#);
/// Words of the client's own.
pub(super) const METADATA: FieldSpec = ignored("metadata", OBJECT);

/// Those of conversations. There are no voices, no other places where an answer may be computed, no searches, nothing is
/// moderated, and conversations are kept at /v1/responses alone.
pub(super) const HINTS: &[FieldSpec] = &[
    USER,
    METADATA,
    ignored("safety_identifier", TEXT),
    ignored("prompt_cache_key", TEXT),
    ignored("prompt_cache_retention", TEXT),
    ignored("prompt_cache_options", OBJECT),
    ignored("prediction", OBJECT),
    ignored("audio", OBJECT),
    ignored("moderation", OBJECT),
    ignored("web_search_options", OBJECT),
    ignored("store", SWITCH),
    SERVICE_TIER,
    ignored("verbosity", r#"{"enum":["low","medium","high",null]}"#),
];

/// Values that ask for what happens anyway.
const NOTHING: &[(&str, &str)] = &[
    ("store", "false"),
    ("service_tier", "\"auto\""),
    ("service_tier", "\"default\""),
    ("verbosity", "\"medium\""),
    ("metadata", "{}"),
    ("truncation", "\"disabled\""),
    ("stream_options", "{}"),
    ("betas", "[]"),
    ("mcp_servers", "[]"),
];

/// Takes those of `table` that are there; their names join `names`.
///
/// # Errors
/// A value of another kind than the field has.
pub(crate) fn hints(fields: &mut Fields, table: &[FieldSpec], names: &mut Vec<String>) -> Result<(), ApiError> {
    for field in table {
        let Some(value) = fields.take(field.name) else { continue };
        check(&fields.at(field.name), field, &value)?;
        let text = value.to_string();
        if !NOTHING.contains(&(field.name, text.as_str())) {
            names.push(field.name.to_owned());
        }
    }
    Ok(())
}

/// Holds a value to its field's schema, which says a type or the words that there are.
fn check(place: &str, field: &FieldSpec, value: &Value) -> Result<(), ApiError> {
    let schema: Value = serde_json::from_str(field.schema).unwrap_or_default();
    if let Some(words) = schema["enum"].as_array() {
        if words.contains(value) {
            return Ok(());
        }
        let words: Vec<&str> = words.iter().filter_map(Value::as_str).collect();
        return Err(ApiError::field(place, format!("`{place}`: expected one of {}", words.join(", "))));
    }
    let (expected, fits) = match schema["type"][0].as_str() {
        Some("string") => ("a string", value.is_string()),
        Some("boolean") => ("true or false", value.is_boolean()),
        Some("integer") => ("a whole number", value.as_f64().is_some_and(|x| x.fract() == 0.0)),
        Some("array") => ("a list", value.is_array()),
        _ => ("an object", value.is_object()),
    };
    if fits { Ok(()) } else { Err(wrong(place, expected, value)) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<Vec<String>, ApiError> {
        let mut names = Vec::new();
        let mut fields = Fields::parse(text.as_bytes(), &[HINTS])?;
        hints(&mut fields, HINTS, &mut names)?;
        fields.finish_into(&mut names).map(|()| names)
    }

    #[test]
    fn what_asks_for_nothing_is_not_named_and_the_rest_is() {
        for nothing in [
            r#"{"user": null, "audio": null, "prediction": null, "store": null}"#,
            r#"{"store": false, "service_tier": "auto", "verbosity": "medium", "metadata": {}}"#,
            r#"{"service_tier": "default"}"#,
        ] {
            assert_eq!(read(nothing).unwrap(), Vec::<String>::new(), "{nothing}");
        }
        for (name, value) in [
            ("user", r#""u""#),
            ("store", "true"),
            ("service_tier", r#""flex""#),
            ("verbosity", r#""low""#),
            ("web_search_options", "{}"),
            ("audio", r#"{"voice": "alloy", "format": "wav"}"#),
            ("moderation", r#"{"model": "m"}"#),
            ("metadata", r#"{"a": "b"}"#),
        ] {
            assert_eq!(read(&format!("{{\"{name}\": {value}}}")).unwrap(), [name]);
        }
    }

    #[test]
    fn values_of_another_kind_are_refused_by_name() {
        for (name, value) in [
            ("user", "3"),
            ("user", r#"["u"]"#),
            ("safety_identifier", "{}"),
            ("prompt_cache_key", "true"),
            ("metadata", r#""a""#),
            ("store", r#""yes""#),
            ("service_tier", r#""fastest""#),
            ("verbosity", r#""loud""#),
            ("audio", "1"),
            ("prediction", r#""a""#),
        ] {
            let error = read(&format!("{{\"{name}\": {value}}}")).unwrap_err();
            assert_eq!(error.param.as_deref(), Some(name), "{value}");
        }
    }
}
