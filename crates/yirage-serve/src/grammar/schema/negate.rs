//! What a schema does not take, as a schema that the library knows.
//!
//! It may take less than that, and never what the schema takes. Keywords that cannot be turned round are refused by name.

use super::numbers;
use super::rewrite::{Rewriter, SchemaLocation, TYPES, kinds};
use super::values::kind;
use serde_json::{Map, Value, json};

/// References and schemas within each other that are turned round.
const MAX_DEPTH: usize = 12;

/// Texts that a string is not to be, each so long at most.
const MAX_TEXTS: usize = 32;
const MAX_LENGTH: usize = 64;

impl Rewriter<'_> {
    /// A schema of what another one does not take.
    ///
    /// # Errors
    /// The keyword that cannot be turned round.
    pub(super) fn negated(&mut self, schema: &Value, around: &SchemaLocation, depth: usize) -> Result<Value, String> {
        let place = self.location(schema, around);
        self.counts(&place)?;
        let map = match schema {
            Value::Bool(takes) => return Ok(Value::Bool(!takes)),
            Value::Object(map) if depth <= MAX_DEPTH => map,
            Value::Object(_) => return Err(place.says("`not` reaches too deep")),
            _ => return Err(place.says("a schema is an object or a truth value")),
        };
        let mut ways = Vec::new();
        for (key, value) in map {
            if let Some(why) = self.lacks(key, value, &place) {
                return Err(place.says(&why));
            }
            let list =
                || value.as_array().map(Vec::as_slice).ok_or_else(|| place.says(&format!("`{key}` has to be a list")));
            match key.as_str() {
                "type" => {
                    let kinds = kinds(map);
                    let others: Vec<&str> = TYPES
                        .into_iter()
                        // What is a number and no integer cannot be said.
                        .filter(|one| !kinds.contains(one))
                        .collect();
                    ways.push(typed_as(&others));
                }
                "const" => ways.push(self.none_of(std::slice::from_ref(value), &place)?),
                "enum" => ways.push(self.none_of(list()?, &place)?),
                "required" => {
                    let absent =
                        list()?.iter().filter_map(Value::as_str).map(|name| json!({"properties": {name: false}}));
                    let absent: Vec<Value> = absent.collect();
                    ways.push(json!({"type": "object", "anyOf": absent}));
                }
                "properties" => {
                    for (name, one) in value.as_object().into_iter().flatten() {
                        let other = self.negated(one, &place.at(&["properties", name]), depth + 1)?;
                        if other != Value::Bool(false) {
                            ways.push(json!({"type": "object", "properties": {name: other}, "required": [name]}));
                        }
                    }
                }
                "allOf" => {
                    for one in list()? {
                        ways.push(self.negated(one, &place.at(&["allOf"]), depth + 1)?);
                    }
                }
                // What fits several of `oneOf` fits it as little; that is left out.
                "anyOf" | "oneOf" => {
                    let all = list()?.iter().map(|one| self.negated(one, &place.at(&[key]), depth + 1));
                    ways.push(json!({"allOf": all.collect::<Result<Vec<_>, _>>()?}));
                }
                "not" => ways.push(self.of(value, &place.at(&["not"]))?),
                "$ref" => {
                    let (found, at) = self.resolve(value.as_str().unwrap_or_default(), &place)?;
                    // The index holds what was sent as long as this does.
                    ways.push(self.negated(found, &at, depth + 1)?);
                }
                "minimum" | "maximum" | "exclusiveMinimum" | "exclusiveMaximum" => {
                    let other = match key.as_str() {
                        "minimum" => "exclusiveMaximum",
                        "maximum" => "exclusiveMinimum",
                        "exclusiveMinimum" => "maximum",
                        _ => "minimum",
                    };
                    if !value.is_number() {
                        return Err(place.says(&format!("`{key}` has to be a number")));
                    }
                    let from = Map::from_iter([(other.to_owned(), value.clone())]);
                    let mut to = Map::from_iter([("type".to_owned(), "number".into())]);
                    numbers::put(&from, &mut to, false).map_err(|why| place.says(&why))?;
                    ways.push(Value::Object(to));
                }
                "minLength" | "minItems" | "minProperties" => {
                    let count = numbers::count(key, value).map_err(|why| place.says(&why))?;
                    if let Some(most) = count.checked_sub(1) {
                        ways.push(
                            json!({"type": counted(key), key.replace("min", "max"): most.min(u64::from(u16::MAX))}),
                        );
                    }
                }
                "maxLength" | "maxItems" | "maxProperties" => {
                    let least = numbers::count(key, value).map_err(|why| place.says(&why))?.saturating_add(1);
                    if least > super::MAX_LEAST {
                        continue;
                    }
                    ways.push(json!({"type": counted(key), key.replace("max", "min"): least}));
                }
                key if super::words::says_nothing(key) => {}
                key => {
                    return Err(place.says(&format!("`{key}` cannot be turned round, as `not`, `if` or `oneOf` asks")));
                }
            }
        }
        ways.retain(|way| way != &Value::Bool(false));
        Ok(match ways.len() {
            0 => Value::Bool(false),
            1 => ways.swap_remove(0),
            _ => json!({"anyOf": ways}),
        })
    }

    /// All values but these.
    fn none_of(&mut self, values: &[Value], place: &SchemaLocation) -> Result<Value, String> {
        let mut texts = Vec::new();
        let mut booleans = Vec::new();
        let mut numbers = Vec::new();
        let mut others = Vec::new();
        for kind in ["null", "array", "object"] {
            // Some of a type are left out: all of it is.
            if !values.iter().any(|value| self::kind(value) == kind) {
                others.push(kind);
            }
        }
        for value in values {
            match value {
                Value::String(text) => texts.push(text.as_str()),
                Value::Bool(is) => booleans.push(*is),
                Value::Number(number) => numbers.push(number.clone()),
                _ => {}
            }
        }
        let mut ways = vec![typed_as(&others)];
        ways.extend([true, false].into_iter().filter(|is| !booleans.contains(is)).map(|is| json!({"const": is})));
        ways.push(match texts.is_empty() {
            true => json!({"type": "string"}),
            false => json!({"type": "string", "pattern": other_than(&texts).map_err(|why| place.says(&why))?}),
        });
        numbers.sort_by(|a, b| a.as_f64().partial_cmp(&b.as_f64()).unwrap_or(std::cmp::Ordering::Equal));
        numbers.dedup_by(|a, b| a.as_f64() == b.as_f64());
        let mut below: Option<serde_json::Number> = None;
        for above in numbers.into_iter().map(Some).chain([None]) {
            let mut from = Map::new();
            below.map(|at| from.insert("exclusiveMinimum".into(), Value::Number(at)));
            above.clone().map(|at| from.insert("exclusiveMaximum".into(), Value::Number(at)));
            let mut to = Map::from_iter([("type".to_owned(), "number".into())]);
            numbers::put(&from, &mut to, false).map_err(|why| place.says(&why))?;
            ways.push(Value::Object(to));
            below = above;
        }
        ways.retain(|way| way != &Value::Bool(false));
        Ok(json!({"anyOf": ways}))
    }
}

fn typed_as(kinds: &[&str]) -> Value {
    if kinds.is_empty() { Value::Bool(false) } else { json!({"type": kinds}) }
}

fn counted(keyword: &str) -> &'static str {
    match keyword {
        "minLength" | "maxLength" => "string",
        "minItems" | "maxItems" => "array",
        _ => "object",
    }
}

/// A pattern of all texts but these.
pub(super) fn other_than(texts: &[&str]) -> Result<String, String> {
    if texts.len() > MAX_TEXTS || texts.iter().any(|text| text.chars().count() > MAX_LENGTH) {
        return Err(format!(
            "more than {MAX_TEXTS} texts, or one of more than {MAX_LENGTH} characters, cannot be left out"
        ));
    }
    let texts: Vec<Vec<char>> = texts.iter().map(|text| text.chars().collect()).collect();
    let texts: Vec<&[char]> = texts.iter().map(Vec::as_slice).collect();
    Ok(format!("^(?:{})$", unlike(&texts)))
}

/// What differs from each of these, which have a beginning in common that is left out here.
fn unlike(texts: &[&[char]]) -> String {
    let mut ways = Vec::new();
    if !texts.iter().any(|text| text.is_empty()) {
        ways.push(String::new());
    }
    let mut firsts: Vec<char> = texts.iter().filter_map(|text| text.first().copied()).collect();
    firsts.sort_unstable();
    firsts.dedup();
    let class: String = firsts.iter().map(|c| format!("\\u{{{:x}}}", u32::from(*c))).collect();
    ways.push(if class.is_empty() { r"[\s\S]+".into() } else { format!(r"[^{class}][\s\S]*") });
    for first in firsts {
        let rest =
            texts.iter().filter_map(|text| text.split_first().filter(|(c, _)| **c == first).map(|(_, rest)| rest));
        let rest: Vec<&[char]> = rest.collect();
        ways.push(format!("\\u{{{:x}}}(?:{})", u32::from(first), unlike(&rest)));
    }
    ways.join("|")
}

#[cfg(test)]
mod tests {
    use super::super::names;
    use super::*;

    #[test]
    fn all_texts_but_some() {
        let pattern = other_than(&["ab", "a", "ä\"", ""]).unwrap();
        for (text, other) in
            [("ab", false), ("a", false), ("ä\"", false), ("", false), ("abc", true), ("b", true), ("ä", true)]
        {
            assert_eq!(names::fits(&pattern, text).unwrap(), other, "{text}: {pattern}");
        }
    }
}
