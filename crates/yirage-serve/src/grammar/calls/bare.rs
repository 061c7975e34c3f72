//! Calls as bare JSON: objects with a name and arguments, `; ` between them.

use serde_json::{Value, json};

/// The schema of one call of these tools.
pub(super) fn schema(tools: &[(String, Value)]) -> Value {
    let call = tools.iter().enumerate().map(|(at, (name, parameters))| {
        let parameters = moved(parameters, &format!("#/anyOf/{at}/properties/parameters"));
        let properties = json!({"name": {"const": name}, "parameters": parameters});
        json!({
            "type": "object", "properties": properties, "required": ["name", "parameters"],
            "additionalProperties": false,
        })
    });
    json!({"anyOf": call.collect::<Vec<_>>()})
}

/// A schema that stands within another, at `root`: what it refers to in itself is there now.
pub(super) fn moved(schema: &Value, root: &str) -> Value {
    let one = |(key, value): (&String, &Value)| {
        let value = match value.as_str().filter(|_| key == "$ref").and_then(|text| text.strip_prefix('#')) {
            Some(within) if within.is_empty() || within.starts_with('/') => format!("{root}{within}").into(),
            _ => moved(value, root),
        };
        (key.clone(), value)
    };
    match schema {
        Value::Object(map) => Value::Object(map.iter().map(one).collect()),
        Value::Array(list) => list.iter().map(|value| moved(value, root)).collect(),
        other => other.clone(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn references_follow_a_schema_that_is_moved() {
        let schema = json!({
            "properties": {"a": {"$ref": "#/$defs/A"}, "b": {"items": [{"$ref": "#"}]}, "c": {"$ref": "#name"}},
            "$defs": {"A": {"const": "#/x"}},
        });
        let wanted = json!({
            "properties": {"a": {"$ref": "#/r/$defs/A"}, "b": {"items": [{"$ref": "#/r"}]}, "c": {"$ref": "#name"}},
            "$defs": {"A": {"const": "#/x"}},
        });
        assert_eq!(moved(&schema, "#/r"), wanted);
    }
}
