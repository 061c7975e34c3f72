//! Arguments as elements: texts as they are, other values as JSON.

use super::lark::{Lark, LarkText, one_of};
use super::parameters::{self, Parameter, ParameterKind};
use crate::response_parser::ArgumentElement;
use serde_json::Value;

/// All arguments of a tool, one behind the other.
///
/// # Errors
/// Those that elements cannot hold.
pub(super) fn arguments(lark: &mut Lark<'_>, of: &ArgumentElement, schema: &Value) -> Result<String, String> {
    let mut all = Vec::new();
    for parameter in parameters::of(schema, schema)? {
        let is = one(lark, of, schema, &parameter).map_err(|why| format!("{}: {why}", parameter.key))?;
        let is = lark.rule(&is);
        all.push(if parameter.required { is } else { format!("{is}?") });
    }
    Ok(if all.is_empty() { "\"\"".to_owned() } else { all.join(" ") })
}

fn one(lark: &mut Lark<'_>, of: &ArgumentElement, root: &Value, parameter: &Parameter<'_>) -> Result<String, String> {
    let begin = |lark: &Lark<'_>, how: &str| lark.text(&[of.open.as_str(), parameter.key, how].concat());
    let (kind, or_null) = match parameters::kind(root, parameter.schema) {
        // An element that says of its value that it is JSON holds any.
        Err(_) if of.says => (ParameterKind::Other(parameters::standing_alone(root, parameter.schema)), false),
        kind => kind?,
    };
    let close = lark.text(&of.close);
    // Line breaks of the element's own are all that its reader takes away.
    let trimmed = !(of.text.ends_with('\n') && of.close.starts_with('\n'));
    let value = match &kind {
        ParameterKind::Text { least, most } => {
            let text = LarkText { least: *least, most: *most, mark: of.mark, close: &of.close, trimmed };
            format!("{} {}", begin(lark, &of.text), lark.free(&text))
        }
        ParameterKind::Words(words) => {
            let lost =
                |word: &&String| word.contains(of.mark) || trimmed && (word.starts_with('\n') || word.ends_with('\n'));
            if let Some(word) = words.iter().find(lost) {
                return Err(format!("{word:?} cannot be written in the form"));
            }
            let words = one_of(words.iter().map(|word| lark.text(word)));
            format!("{} {words} {close}", begin(lark, &of.text))
        }
        ParameterKind::Boolean => format!("{} (\"true\" | \"false\") {close}", begin(lark, &of.json)),
        ParameterKind::Other(schema) => {
            let json = lark.json(schema)?;
            return Ok(format!("{} {json} {close}", begin(lark, &of.json)));
        }
    };
    Ok(match or_null {
        true => one_of([value, format!("{} \"null\" {close}", begin(lark, &of.json))]),
        false => value,
    })
}
