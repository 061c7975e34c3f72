//! JSON schemas in the words of the library that enforces them.
//!
//! llguidance (1.9.1) knows the larger part of JSON Schema 2020-12, and some of it wrong. What a client sends is therefore
//! written anew before the library sees it: references are resolved, drafts become one, numbers and counts get values that
//! the library keeps exactly, and keywords that it does not know become such as it knows. A schema that is written anew may
//! take fewer values than the client's, never more; one that cannot be written so is refused with the keyword and its place.
//! What becomes of a schema that the library knows stays with the library.

mod arrays;
mod drafts;
mod formats;
mod names;
mod negate;
mod numbers;
mod objects;
mod overlap;
mod patterns;
mod refs;
mod rewrite;
mod some;
mod values;
mod words;

use serde_json::{Map, Value, json};

/// Schemas that one may have within it once it is written anew.
const MAX_SCHEMAS: usize = 20_000;

/// Definitions that one may refer to; the library follows them within each other.
const MAX_DEFINITIONS: usize = 2_000;

/// Bytes of a pattern, and of a text that is a constant.
const MAX_TEXT: usize = 8 << 10;

/// Properties of one object; the library looks at all that may come next at once.
const MAX_PROPERTIES: usize = 600;

/// What is counted: the most that is asked for at least. No answer would reach more.
const MAX_LEAST: u64 = 4_096;

/// Keywords by which schemas have names of the client's, which may be those of keywords.
const NAMED: [&str; 5] = ["properties", "patternProperties", "$defs", "definitions", "dependentSchemas"];

/// Keywords whose values are no schemas.
const VALUES: [&str; 4] = ["const", "enum", "default", "examples"];

/// The schema as the library takes it, with how JSON is spaced: as Python writes it, so that no answer is white space
/// without end. What a client says under this key would weaken the schema.
///
/// # Errors
/// What cannot be enforced: the keyword and its place, or the budget that is exceeded.
pub(super) fn of(schema: &Value) -> Result<Value, String> {
    let mut schema = rewrite::whole(schema)?;
    some::only(&mut schema);
    let mut names = false;
    each(&mut schema, &mut |one| {
        formats::narrow(one);
        patterns::bound(one);
        patterns::narrow(one);
        names |= has_names(one);
    });
    let mut map = match schema {
        Value::Object(map) => map,
        // The library takes objects alone with its key beside them.
        Value::Bool(false) => Map::from_iter([("enum".to_owned(), json!([]))]),
        _ => Map::new(),
    };
    let mut written = json!({"whitespace_flexible": false, "item_separator": ", ", "key_separator": ": "});
    if names {
        // The library takes a name that is written by codes for another one, so that `\u0061` would escape what is said of `a`.
        written["json_allowed_escapes"] = "nrbtf\\\"".into();
    }
    map.insert("x-guidance".into(), written);
    Ok(Value::Object(map))
}

/// Whether something is said of some names of properties, and others may be there.
fn has_names(schema: &Map<String, Value>) -> bool {
    let some = ["properties", "patternProperties", "required"].iter().any(|key| schema.contains_key(*key));
    some && schema.get("additionalProperties") != Some(&Value::Bool(false))
}

/// Calls `f` with a schema and all schemas within it, the inner ones first.
fn each(schema: &mut Value, f: &mut impl FnMut(&mut Map<String, Value>)) {
    match schema {
        Value::Array(list) => list.iter_mut().for_each(|one| each(one, f)),
        Value::Object(map) => {
            for (key, value) in map.iter_mut() {
                match value {
                    _ if VALUES.contains(&key.as_str()) => {}
                    Value::Object(named) if NAMED.contains(&key.as_str()) => {
                        named.values_mut().for_each(|one| each(one, f));
                    }
                    value => each(value, f),
                }
            }
            f(map);
        }
        _ => {}
    }
}

#[cfg(test)]
mod tests;
