//! Values that a model wrote as bare text, as the JSON that the tool's schema says they are.

use super::json_string::quoted;
use super::python;
use crate::response_parser::declared::Types;
use serde_json::Value;

/// JSON text of a value: of the first of the tool's types that the text can be, else text. Where the tool says nothing,
/// what is JSON is taken as such.
pub(super) fn typed(text: &str, types: &Types) -> String {
    let trimmed = text.trim();
    let json = || serde_json::from_str::<Value>(trimmed).ok();
    if !types.is_known() {
        return json().map_or_else(|| literal(trimmed).unwrap_or_else(|| quoted(text)), |_| trimmed.to_owned());
    }
    let word = trimmed.to_ascii_lowercase();
    if types.has("null") && matches!(word.as_str(), "null" | "none" | "nil") {
        return "null".to_owned();
    }
    for name in ["integer", "number"] {
        if types.has(name)
            && let Some(number) = number(trimmed, name == "integer")
        {
            return number;
        }
    }
    if types.has("boolean") {
        let bits = !types.has("string");
        match word.as_str() {
            "true" => return word,
            "false" => return word,
            "1" if bits => return "true".to_owned(),
            "0" if bits => return "false".to_owned(),
            _ => {}
        }
    }
    let of_kind = |value: &Value| types.has("object") && value.is_object() || types.has("array") && value.is_array();
    if types.has("object") || types.has("array") {
        if json().is_some_and(|value| of_kind(&value)) {
            return trimmed.to_owned();
        }
        // Python's own way to write one.
        let python = python::whole(trimmed);
        if let Some(json) = python.filter(|json| serde_json::from_str(json).is_ok_and(|value| of_kind(&value))) {
            return json;
        }
    }
    if types.has("string") {
        return quoted(text);
    }
    json().map_or_else(|| quoted(text), |_| trimmed.to_owned())
}

/// Python's words for what JSON has words for.
fn literal(word: &str) -> Option<String> {
    match word {
        "True" => Some("true".to_owned()),
        "False" => Some("false".to_owned()),
        "None" => Some("null".to_owned()),
        _ => None,
    }
}

/// A number as JSON has it; of an integer none that has a part below one.
fn number(text: &str, integer: bool) -> Option<String> {
    let bare = text.strip_prefix('+').unwrap_or(text);
    let number = serde_json::from_str::<serde_json::Number>(bare).ok()?;
    let whole = || number.as_f64().is_some_and(|value| value.fract() == 0.0);
    let digits = bare.trim_start_matches('-').bytes().all(|byte| byte.is_ascii_digit());
    (!integer || digits || whole()).then(|| bare.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::response_parser::declared::DeclaredTools;
    use crate::tools::Tool;
    use serde_json::json;

    fn of(text: &str, schema: Value) -> String {
        let parameters = json!({"properties": {"x": schema}, "$defs": {"N": {"type": "integer"}}});
        let tool = Tool::new("tools", "f", None, parameters, false).unwrap();
        typed(text, &DeclaredTools::new(&[tool]).types("f", "x"))
    }

    #[test]
    fn values_are_what_the_schema_says() {
        for (text, schema, wanted) in [
            ("42", json!({"type": "string"}), "\"42\""),
            ("42", json!({"type": "integer"}), "42"),
            ("+42", json!({"type": "integer"}), "42"),
            ("4.5", json!({"type": "integer"}), "4.5"),
            ("12345678901234567890123", json!({"type": "integer"}), "12345678901234567890123"),
            ("4.50", json!({"type": "number"}), "4.50"),
            ("True", json!({"type": "boolean"}), "true"),
            ("1", json!({"type": "boolean"}), "true"),
            ("None", json!({"type": ["string", "null"]}), "null"),
            ("none", json!({"type": "string"}), "\"none\""),
            ("[1, 2]", json!({"type": "array"}), "[1, 2]"),
            ("['a', True]", json!({"type": "array"}), "[\"a\", true]"),
            ("{'a': 1}", json!({"anyOf": [{"type": "object"}, {"type": "null"}]}), "{\"a\": 1}"),
            ("7", json!({"$ref": "#/$defs/N"}), "7"),
            ("7", json!({"enum": ["7", "8"]}), "\"7\""),
            ("{\"a\": 1}", json!({"type": "string"}), "\"{\\\"a\\\": 1}\""),
            (" a\n", json!({"type": "string"}), "\" a\\n\""),
            ("yes", json!({"type": "integer"}), "\"yes\""),
            ("42", json!({}), "42"),
            ("True", json!({}), "true"),
            ("a b", json!({}), "\"a b\""),
        ] {
            assert_eq!(of(text, schema.clone()), wanted, "{text} as {schema}");
        }
    }
}
