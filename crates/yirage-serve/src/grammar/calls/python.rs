//! Arguments as Python has them: `key="value", other=1`. Texts, lists and dictionaries are written as JSON, which Python's
//! literals take in.

use super::lark::{Lark, one_of};
use super::parameters::{self, Parameter, ParameterKind};
use serde_json::{Value, json};

/// All arguments of a tool.
///
/// # Errors
/// Those that cannot be held.
pub(super) fn arguments(lark: &mut Lark<'_>, schema: &Value) -> Result<String, String> {
    let all = parameters::of(schema, schema)?;
    parameters::listed(lark, &all, ", ", |lark, parameter| one(lark, schema, parameter))
}

fn one(lark: &mut Lark<'_>, root: &Value, parameter: &Parameter<'_>) -> Result<String, String> {
    let key = lark.text(&format!("{}=", parameter.key));
    // What is more than a text is written as JSON all the same.
    let any = |_| (ParameterKind::Other(parameters::standing_alone(root, parameter.schema)), false);
    let (kind, or_null) = parameters::kind(root, parameter.schema).unwrap_or_else(any);
    let value = match &kind {
        ParameterKind::Text { least, most } => {
            let mut schema = json!({"type": "string", "minLength": least});
            if let Some(most) = most {
                schema["maxLength"] = json!(most);
            }
            lark.json(&schema)?
        }
        ParameterKind::Words(words) => lark.json(&json!({"enum": words}))?,
        ParameterKind::Boolean => "(\"True\" | \"False\")".to_owned(),
        ParameterKind::Other(schema) => lark.json(schema)?,
    };
    let value = if or_null { one_of([value, "\"None\"".to_owned()]) } else { value };
    Ok(format!("{key} {value}"))
}
