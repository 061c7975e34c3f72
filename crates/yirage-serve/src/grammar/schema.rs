//! What of a JSON schema is looked at before the library that enforces it sees it: the kinds of some keywords' values. And
//! where the schemas within a schema are.
//!
//! llguidance quotes a value of the wrong kind in its error, cut at a fixed byte, and panics where that lies within a
//! character (`limited_str` of its `json/schema.rs`, 1.9.1). What its values mean stays with the library.

use serde_json::{Map, Value};

/// Whether the keywords that are quoted have values of their kinds, in the schema and in all within it.
///
/// # Errors
/// The first keyword that has not.
pub(super) fn check(schema: &Value) -> Result<(), String> {
    match schema {
        Value::Object(map) => map.iter().try_for_each(|(key, value)| keyword(key, value)),
        Value::Array(list) => list.iter().try_for_each(check),
        _ => Ok(()),
    }
}

/// Calls `f` with a schema and all schemas within it, the inner ones first.
pub(super) fn each(schema: &mut Value, f: &mut impl FnMut(&mut Map<String, Value>)) {
    match schema {
        Value::Array(list) => list.iter_mut().for_each(|one| each(one, f)),
        Value::Object(map) => {
            for (key, value) in map.iter_mut() {
                match (key.as_str(), value) {
                    // Values, not schemas.
                    ("const" | "enum" | "default" | "examples", _) => {}
                    // Schemas by names of the client's, which may be those of keywords.
                    (
                        "properties" | "patternProperties" | "$defs" | "definitions" | "dependentSchemas",
                        Value::Object(named),
                    ) => named.values_mut().for_each(|one| each(one, f)),
                    (_, value) => each(value, f),
                }
            }
            f(map);
        }
        _ => {}
    }
}

fn keyword(key: &str, value: &Value) -> Result<(), String> {
    let wrong = |kind: &str| Err(format!("`{key}` has to be {kind}"));
    match key {
        "$ref" | "pattern" | "format" if !value.is_string() => wrong("a string"),
        "minimum" | "maximum" | "multipleOf" if !value.is_number() => wrong("a number"),
        // Draft 4 has truth values here.
        "exclusiveMinimum" | "exclusiveMaximum" if !value.is_number() && !value.is_boolean() => wrong("a number"),
        // Values, not schemas.
        "const" | "enum" | "default" | "examples" => Ok(()),
        // Schemas by names of the client's, which may be those of keywords.
        "properties" | "patternProperties" | "$defs" | "definitions" | "dependentSchemas" => match value {
            Value::Object(map) => map.values().try_for_each(check),
            _ => Ok(()),
        },
        _ => check(value),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn keywords_that_are_quoted_have_their_kinds() {
        for (wrong, named) in [
            (json!({"$ref": ["x"]}), "$ref"),
            (json!({"items": {"pattern": {}}}), "pattern"),
            (json!({"anyOf": [{"properties": {"a": {"minimum": "1"}}}]}), "minimum"),
            (json!({"x": {"exclusiveMaximum": null}, "$ref": "#/x"}), "exclusiveMaximum"),
        ] {
            assert!(check(&wrong).unwrap_err().contains(named), "{wrong}");
        }
        for sound in [
            json!(true),
            json!({"properties": {"pattern": {"type": "object"}, "$ref": true, "minimum": {"minimum": 1}}}),
            json!({"const": {"pattern": 3}, "enum": [{"format": []}], "exclusiveMinimum": true}),
        ] {
            assert_eq!(check(&sound), Ok(()), "{sound}");
        }
    }
}
