//! Schemas that some value fits, which ends.
//!
//! A schema whose values have to hold a value of the same schema, and so on, is one that no value fits: an answer held to it
//! never ends. The library does not see that, so such references become schemas that it knows to take nothing.

use super::each;
use serde_json::{Map, Value, json};
use std::collections::HashSet;

/// Makes references to what no value fits into schemas that take nothing.
pub(super) fn only(schema: &mut Value) {
    let mut ends = HashSet::new();
    // What ends by itself first, then what ends by that.
    while let Some(Value::Object(definitions)) = schema.get("$defs") {
        let found = definitions.iter().filter(|(name, one)| !ends.contains(*name) && fits(one, &ends));
        let found: Vec<String> = found.map(|(name, _)| name.clone()).collect();
        if found.is_empty() {
            break;
        }
        ends.extend(found);
    }
    each(schema, &mut |map| {
        if map.get("$ref").is_some_and(|reference| !refers(reference, &ends)) {
            map.clear();
            map.insert("enum".into(), json!([]));
        }
    });
}

fn refers(reference: &Value, ends: &HashSet<String>) -> bool {
    reference.as_str().and_then(|text| text.strip_prefix("#/$defs/")).is_some_and(|name| ends.contains(name))
}

/// Whether a value may fit, with definitions of which it is known.
fn fits(schema: &Value, ends: &HashSet<String>) -> bool {
    let Value::Object(map) = schema else { return schema != &Value::Bool(false) };
    let all = |key: &str| map.get(key).and_then(Value::as_array).is_none_or(|all| all.iter().all(|s| fits(s, ends)));
    let any = |key: &str| map.get(key).and_then(Value::as_array).is_none_or(|any| any.iter().any(|s| fits(s, ends)));
    map.get("$ref").is_none_or(|reference| refers(reference, ends))
        && map.get("enum").and_then(Value::as_array).is_none_or(|list| !list.is_empty())
        && all("allOf")
        && any("anyOf")
        && any("oneOf")
        && kinds(map).any(|kind| match kind {
            "object" => object(map, ends),
            "array" => array(map, ends),
            _ => true,
        })
}

fn kinds(map: &Map<String, Value>) -> impl Iterator<Item = &str> {
    let named: Vec<&str> = match map.get("type") {
        Some(Value::String(one)) => vec![one],
        Some(Value::Array(list)) => list.iter().filter_map(Value::as_str).collect(),
        _ => vec!["null"],
    };
    named.into_iter()
}

fn object(map: &Map<String, Value>, ends: &HashSet<String>) -> bool {
    let properties = map.get("properties");
    let required = map.get("required").and_then(Value::as_array);
    required.is_none_or(|names| {
        names
            .iter()
            .filter_map(Value::as_str)
            .all(|name| properties.and_then(|p| p.get(name)).is_none_or(|one| fits(one, ends)))
    })
}

fn array(map: &Map<String, Value>, ends: &HashSet<String>) -> bool {
    let least = map.get("minItems").and_then(Value::as_u64).unwrap_or(0);
    let first = map.get("prefixItems").and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
    let rest = map.get("items").is_none_or(|one| fits(one, ends));
    (0..least).zip(first).all(|(_, one)| fits(one, ends)) && (rest || least <= first.len() as u64)
}
