//! The form of calls that have to come.

use super::{Grammar, Shape};
use crate::error::ApiError;
use crate::tools::{Choice, ToolUse};
use serde_json::{Value, json};

/// Calls of one answer that has to have some.
const MAX_CALLS: usize = 16;

impl Grammar {
    /// The form of calls that have to come; none where the model decides. One call comes where one tool is named or
    /// calls may not come side by side, else there may be several with `; ` between them.
    ///
    /// # Errors
    /// A form beside it that the answer cannot have as well.
    pub(crate) fn of_calls(&self, used: &ToolUse) -> Result<Option<Grammar>, ApiError> {
        let name = match &used.choice {
            Choice::None | Choice::Auto => return Ok(None),
            Choice::Required => None,
            Choice::Named(name) => Some(name),
        };
        if self.shape != Shape::Free {
            let why = "a call that has to come leaves no room for another form";
            return Err(ApiError::unsupported(&self.field, why));
        }
        let tools = used.tools.iter().filter(|tool| name.is_none_or(|name| *name == tool.name));
        let call = tools.enumerate().map(|(at, tool)| {
            let parameters = moved(&tool.parameters, &format!("#/anyOf/{at}/properties/parameters"));
            let properties = json!({"name": {"const": tool.name}, "parameters": parameters});
            json!({
                "type": "object", "properties": properties, "required": ["name", "parameters"],
                "additionalProperties": false,
            })
        });
        let schema = json!({"anyOf": call.collect::<Vec<_>>()});
        let most = if name.is_none() && used.parallel { MAX_CALLS } else { 1 };
        Ok(Some(Grammar::new(Shape::Calls { schema, most }, "tools")))
    }
}

/// A schema that stands within another, at `root`: what it refers to in itself is there now.
fn moved(schema: &Value, root: &str) -> Value {
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
