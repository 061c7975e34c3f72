//! Arguments as `key:value,other:[1,2]`, texts between marks, however deep.

use super::lark::{Lark, LarkText, one_of};
use super::parameters::{self, Parameter, ParameterKind};
use crate::response_parser::Types;
use serde_json::Value;

/// Levels of values within each other.
const MAX_DEPTH: usize = 16;

/// What stands around texts, and the tool's schema, to which references refer.
struct BracesGrammar<'a> {
    quote: &'a str,
    root: &'a Value,
}

/// All arguments of a tool.
///
/// # Errors
/// Those that cannot be held.
pub(super) fn arguments(lark: &mut Lark<'_>, quote: &str, schema: &Value) -> Result<String, String> {
    BracesGrammar { quote, root: schema }.members(lark, schema, MAX_DEPTH)
}

impl BracesGrammar<'_> {
    fn members(&self, lark: &mut Lark<'_>, schema: &Value, left: usize) -> Result<String, String> {
        let all = parameters::of(self.root, schema)?;
        parameters::listed(lark, &all, ",", |lark, Parameter { key, schema, .. }| {
            let value = self.value(lark, schema, left)?;
            Ok(format!("{} {value}", lark.text(&format!("{key}:"))))
        })
    }

    fn value(&self, lark: &mut Lark<'_>, schema: &Value, left: usize) -> Result<String, String> {
        let (kind, or_null) = parameters::kind(self.root, schema)?;
        let quote = lark.text(self.quote);
        let value = match &kind {
            ParameterKind::Text { least, most } => {
                let text = LarkText { least: *least, most: *most, mark: self.quote, close: self.quote, trimmed: false };
                format!("{quote} {}", lark.free(&text))
            }
            ParameterKind::Words(words) => {
                if let Some(word) = words.iter().find(|word| word.contains(self.quote)) {
                    return Err(format!("{word:?} cannot be written in the form"));
                }
                format!("{quote} {} {quote}", one_of(words.iter().map(|word| lark.text(word))))
            }
            ParameterKind::Boolean => "(\"true\" | \"false\")".to_owned(),
            ParameterKind::Other(schema) => self.other(lark, schema, left)?,
        };
        Ok(if or_null { one_of([value, "\"null\"".to_owned()]) } else { value })
    }

    /// A number, a list or an object.
    fn other(&self, lark: &mut Lark<'_>, schema: &Value, left: usize) -> Result<String, String> {
        let types = Types::of(self.root, schema);
        if types.is_known() && !types.has("array") && !types.has("object") {
            return lark.json(schema);
        }
        let left = left.checked_sub(1).ok_or("it is too deep for the form")?;
        if types.is("object", "object") {
            return Ok(format!("\"{{\" {} \"}}\"", self.members(lark, schema, left)?));
        }
        let known = ["type", "items", "minItems", "maxItems", "title", "description", "default", "examples"];
        let map = schema.as_object().filter(|map| map.keys().all(|key| known.contains(&key.as_str())));
        let (Some(map), true) = (map, types.is("array", "array")) else {
            return Err("a value of this kind cannot be held in the form".to_owned());
        };
        let items = map.get("items").ok_or("a list of anything cannot be held in the form")?;
        let item = self.value(lark, items, left)?;
        let item = lark.rule(&item);
        list(&item, map.get("minItems"), map.get("maxItems"))
    }
}

/// A list of so many items.
fn list(item: &str, least: Option<&Value>, most: Option<&Value>) -> Result<String, String> {
    let count = |value: Option<&Value>| match value {
        None => Ok(None),
        Some(value) => value.as_u64().filter(|count| *count <= 1000).map(Some).ok_or("its items cannot be counted"),
    };
    let (least, most) = (count(least)?.unwrap_or(0), count(most)?);
    if most.is_some_and(|most| most < least) {
        return Err("`maxItems` is below `minItems`".to_owned());
    }
    let more = match most {
        Some(0) => return Ok("\"[]\"".to_owned()),
        // Nothing may be repeated no times.
        Some(1) => String::new(),
        Some(most) => format!(" (\",\" {item}){{{},{}}}", least.saturating_sub(1), most - 1),
        None => format!(" (\",\" {item}){{{},}}", least.saturating_sub(1)),
    };
    let items = format!("{item}{more}");
    Ok(if least == 0 { format!("\"[\" ({items})? \"]\"") } else { format!("\"[\" {items} \"]\"") })
}
