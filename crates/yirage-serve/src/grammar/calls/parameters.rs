//! What a tool's schema says of each argument, for forms in which arguments are not one JSON object.
//!
//! Such forms hold less than JSON Schema can say. What they cannot hold exactly is an error, by which the calls become bare
//! JSON.

use super::bare::moved;
use super::lark::{Lark, one_of};
use crate::response_parser::{Types, followed};
use serde_json::{Map, Value, json};

/// An argument.
pub(super) struct Parameter<'a> {
    pub(super) key: &'a str,
    pub(super) required: bool,
    pub(super) schema: &'a Value,
}

/// What an argument may be.
#[derive(Debug)]
pub(super) enum ParameterKind {
    /// A text of so many characters at least and at most.
    Text {
        least: u64,
        most: Option<u64>,
    },
    /// One of these texts.
    Words(Vec<String>),
    Boolean,
    /// What is no text, as its schema says.
    Other(Value),
}

/// Characters that a text may be counted in.
const MAX_COUNTED: u64 = 4_096;
/// Schemas within each other that are looked into.
const MAX_DEPTH: usize = 32;

/// Keywords that say something of an object beside its properties.
const OF_OBJECTS: &[&str] = &[
    "allOf",
    "anyOf",
    "const",
    "dependencies",
    "dependentRequired",
    "dependentSchemas",
    "else",
    "enum",
    "if",
    "maxProperties",
    "minProperties",
    "not",
    "oneOf",
    "patternProperties",
    "propertyNames",
    "then",
    "unevaluatedProperties",
    "$dynamicRef",
    "$recursiveRef",
];

/// Keywords that say more of a text than how long it is.
const OF_TEXTS: &[&str] =
    &["allOf", "anyOf", "else", "format", "if", "not", "oneOf", "pattern", "then", "$dynamicRef", "$recursiveRef"];

/// The arguments that an object's schema tells of, in its order. `root` is what references refer to.
///
/// # Errors
/// What is said of the object and cannot be held.
pub(super) fn of<'a>(root: &'a Value, schema: &'a Value) -> Result<Vec<Parameter<'a>>, String> {
    let schema = object(root, schema)?;
    if schema.get("type").is_some_and(|kind| kind != "object") {
        return Err("its arguments are no object alone".to_owned());
    }
    none_of(schema, OF_OBJECTS)?;
    let properties = match schema.get("properties") {
        None => None,
        Some(properties) => Some(properties.as_object().ok_or("`properties` is no object")?),
    };
    let required: Vec<&str> =
        schema.get("required").and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str).collect();
    let is_said = |key: &str| properties.is_some_and(|properties| properties.contains_key(key));
    if let Some(unknown) = required.iter().find(|key| !is_said(key)) {
        return Err(format!("{unknown}: it is required, and nothing is said of it"));
    }
    let mut all = Vec::new();
    for (key, schema) in properties.into_iter().flatten() {
        let required = required.contains(&key.as_str());
        if *schema == Value::Bool(false) && !required {
            continue;
        }
        let usual = |c: char| c.is_ascii_alphanumeric() || "_-.".contains(c);
        if key.is_empty() || !key.chars().all(usual) {
            return Err(format!("{key}: the form has no such names"));
        }
        all.push(Parameter { key, required, schema });
    }
    Ok(all)
}

/// A schema behind its references, as an object.
fn object<'a>(root: &'a Value, schema: &'a Value) -> Result<&'a Map<String, Value>, String> {
    let mut schema = schema;
    for _ in 0..MAX_DEPTH {
        if schema.get("$ref").is_none() {
            return schema.as_object().ok_or_else(|| "its schema is no object".to_owned());
        }
        schema = followed(root, schema).ok_or("a reference leads out of the schema")?;
    }
    Err("its references do not end".to_owned())
}

fn none_of(schema: &Map<String, Value>, words: &[&str]) -> Result<(), String> {
    match words.iter().find(|word| schema.contains_key(**word)) {
        Some(word) => Err(format!("`{word}` cannot be held in the form")),
        None => Ok(()),
    }
}

/// What a value may be, and whether it may be null as well. Of which types it is, is what its reader takes them for.
///
/// # Errors
/// What the form cannot hold.
pub(super) fn kind(root: &Value, schema: &Value) -> Result<(ParameterKind, bool), String> {
    kind_within(root, schema, MAX_DEPTH)
}

fn kind_within(root: &Value, schema: &Value, left: usize) -> Result<(ParameterKind, bool), String> {
    let types = Types::of(root, schema);
    if !types.has("string") {
        let one = object(root, schema).ok().filter(|schema| schema.get("type") == Some(&json!("boolean")));
        let is_boolean = one.is_some_and(|one| none_of(one, OF_TEXTS).is_ok() && !one.contains_key("enum"));
        return Ok(match is_boolean && !one.is_some_and(|one| one.contains_key("const")) {
            true => (ParameterKind::Boolean, false),
            false => (ParameterKind::Other(standing_alone(root, schema)), false),
        });
    }
    let map = object(root, schema)?;
    for word in ["anyOf", "oneOf"] {
        let Some([a, b]) = map.get(word).and_then(Value::as_array).map(Vec::as_slice) else { continue };
        let is_null = |one: &Value| one.get("type") == Some(&json!("null"));
        let other = if is_null(b) { a } else { b };
        if left > 0 && (is_null(a) || is_null(b)) && map.keys().all(|key| key == word || is_said(key)) {
            let (kind, _) = kind_within(root, other, left - 1)?;
            return told_apart(kind);
        }
    }
    none_of(map, OF_TEXTS)?;
    let or_null = types.has("null");
    if !types.is("string", "null") {
        return Err("a text or a value of another type cannot be told apart".to_owned());
    }
    if map.contains_key("enum") || map.contains_key("const") {
        return words(map, or_null);
    }
    let count = |word: &str| match map.get(word) {
        None => Ok(None),
        Some(count) => match count.as_u64().filter(|count| *count <= MAX_COUNTED) {
            Some(count) => Ok(Some(count)),
            None => Err(format!("`{word}` is {count}; up to {MAX_COUNTED} characters can be counted")),
        },
    };
    let (least, most) = (count("minLength")?.unwrap_or(0), count("maxLength")?);
    if most.is_some_and(|most| most < least) {
        return Err("`maxLength` is below `minLength`".to_owned());
    }
    Ok((ParameterKind::Text { least, most }, or_null))
}

/// A value that may be null as well, unless one of its constants reads as null.
fn told_apart(kind: ParameterKind) -> Result<(ParameterKind, bool), String> {
    let null = |word: &String| matches!(word.trim().to_ascii_lowercase().as_str(), "null" | "none" | "nil");
    match &kind {
        ParameterKind::Words(words) if words.iter().any(null) => Err("its constants cannot be told apart".to_owned()),
        _ => Ok((kind, true)),
    }
}

/// Whether a keyword is for readers alone.
fn is_said(key: &str) -> bool {
    matches!(key, "title" | "description" | "default" | "examples" | "$comment")
}

/// The texts among constants.
fn words(map: &Map<String, Value>, or_null: bool) -> Result<(ParameterKind, bool), String> {
    if map.contains_key("minLength")
        || map.contains_key("maxLength")
        || map.contains_key("enum") && map.contains_key("const")
    {
        return Err("constants with more said of them cannot be held in the form".to_owned());
    }
    let all = map.get("enum").and_then(Value::as_array).into_iter().flatten().chain(map.get("const"));
    let words: Vec<String> = all.filter_map(|value| value.as_str().map(str::to_owned)).collect();
    if words.is_empty() {
        return Err("none of its constants is of its type".to_owned());
    }
    if !or_null {
        return Ok((ParameterKind::Words(words), false));
    }
    let (kind, _) = told_apart(ParameterKind::Words(words))?;
    Ok((kind, map.get("enum").and_then(Value::as_array).is_none_or(|all| all.contains(&Value::Null))))
}

/// A schema as one that refers to nothing outside of itself, and names the draft that its root names.
pub(super) fn standing_alone(root: &Value, schema: &Value) -> Value {
    let mut alone = schema.clone();
    if refers(schema) {
        let place = "#/$defs/tool";
        alone = moved(schema, place);
        alone["$defs"] = json!({"tool": moved(root, place)});
    }
    if let (Some(draft), Value::Object(map)) = (root.get("$schema"), &mut alone) {
        map.entry("$schema").or_insert_with(|| draft.clone());
    }
    alone
}

fn refers(schema: &Value) -> bool {
    match schema {
        Value::Object(map) => map.contains_key("$ref") || map.values().any(refers),
        Value::Array(list) => list.iter().any(refers),
        _ => false,
    }
}

/// Arguments with a comma between them, each as `one` has it.
///
/// # Errors
/// What `one` says.
pub(super) fn listed(
    lark: &mut Lark<'_>,
    parameters: &[Parameter<'_>],
    comma: &str,
    mut one: impl FnMut(&mut Lark<'_>, &Parameter<'_>) -> Result<String, String>,
) -> Result<String, String> {
    let comma = lark.text(comma);
    // What may follow where nothing was written yet, and where something was; from behind.
    let (mut begin, mut more) = ("\"\"".to_owned(), "\"\"".to_owned());
    for parameter in parameters.iter().rev() {
        let is = one(lark, parameter).map_err(|why| format!("{}: {why}", parameter.key))?;
        let is = lark.rule(&is);
        let first = format!("{is} {more}");
        let begins = if parameter.required { first } else { one_of([first, begin]) };
        begin = lark.rule(&begins);
        let next = if parameter.required { format!("{comma} {is} {more}") } else { format!("({comma} {is})? {more}") };
        more = lark.rule(&next);
    }
    Ok(begin)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_argument_alone_has_the_draft_of_its_tool() {
        let draft = "http://json-schema.org/draft-07/schema#";
        let own = "https://json-schema.org/draft/2020-12/schema";
        let root = json!({
            "$schema": draft, "definitions": {"b": {"type": "null"}},
            "properties": {"a": {"type": "integer"}, "b": {"$ref": "#/definitions/b"}, "c": {"$schema": own}},
        });
        let alone = |name: &str| standing_alone(&root, &root["properties"][name]);
        assert_eq!(alone("a"), json!({"type": "integer", "$schema": draft}));
        assert_eq!(
            (&alone("b")["$schema"], &alone("b")["$ref"]),
            (&json!(draft), &json!("#/$defs/tool/definitions/b"))
        );
        assert_eq!(alone("c"), json!({"$schema": own}));
        assert_eq!(standing_alone(&json!({}), &json!({"type": "null"})), json!({"type": "null"}));
    }
}
