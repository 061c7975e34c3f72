//! Whether two schemas surely have no value in common, so that one of several is any of them.

use super::rewrite::{Rewriter, SchemaLocation, kinds};
use super::values::{kind, same};
use serde_json::{Map, Value};

/// References and properties that are followed.
const MAX_DEPTH: usize = 6;

impl Rewriter<'_> {
    /// Whether no value fits both. `objects` where it is known that the values are objects.
    pub(super) fn disjoint(
        &self,
        a: (&Value, &SchemaLocation),
        b: (&Value, &SchemaLocation),
        objects: bool,
        depth: usize,
    ) -> bool {
        if depth > MAX_DEPTH {
            return false;
        }
        let (Some((a, place_a)), Some((b, place_b))) = (self.followed(a, depth), self.followed(b, depth)) else {
            return false;
        };
        let (Value::Object(a), Value::Object(b)) = (a, b) else {
            return a == &Value::Bool(false) || b == &Value::Bool(false);
        };
        let (kinds_a, kinds_b) = (kinds(a), kinds(b));
        if !kinds_a.iter().any(|kind| kinds_b.contains(kind)) {
            return true;
        }
        let (values_a, values_b) = (self.choices(a, &place_a), self.choices(b, &place_b));
        if let (Some(a), Some(b)) = (&values_a, &values_b)
            && !a.iter().any(|a| b.iter().any(|b| same(a, b)))
        {
            return true;
        }
        if let (Some(list), other, _) | (_, _, Some((list, other))) = (values_a, b, values_b.map(|list| (list, a)))
            && !list.iter().any(|value| kinds(other).contains(&kind(value)))
        {
            return true;
        }
        // Whoever is both has the property of both.
        let only_objects = objects || kinds_a == ["object"] || kinds_b == ["object"];
        let lacks = |a: &Map<String, Value>, b: &Map<String, Value>| required(a).any(|name| forbids(b, name));
        let apart = |name: &str| {
            let both = property(a, name).zip(property(b, name));
            both.is_some_and(|(a, b)| self.disjoint((a, &place_a), (b, &place_b), false, depth + 1))
        };
        only_objects && (lacks(a, b) || lacks(b, a) || required(a).chain(required(b)).any(apart))
    }

    /// The values of a schema that has few of them.
    pub(super) fn listed(&self, schema: &Value, place: &SchemaLocation) -> Option<Vec<Value>> {
        let (schema, place) = self.followed((schema, place), 0)?;
        let map = schema.as_object()?;
        match (self.choices(map, &place), kinds(map).as_slice()) {
            (Some(values), _) => Some(values.into_iter().cloned().collect()),
            (None, ["boolean"]) => Some(vec![false.into(), true.into()]),
            _ => None,
        }
    }

    /// The values that a schema lists.
    fn choices<'v>(&self, map: &'v Map<String, Value>, place: &SchemaLocation) -> Option<Vec<&'v Value>> {
        let constant = map.get("const").filter(|one| self.lacks("const", one, place).is_none());
        match (constant, map.get("enum")) {
            (Some(one), _) => Some(vec![one]),
            (None, Some(Value::Array(list))) => Some(list.iter().collect()),
            _ => None,
        }
    }

    /// A schema that is only a reference is what it refers to.
    fn followed<'v>(
        &'v self,
        (schema, place): (&'v Value, &SchemaLocation),
        depth: usize,
    ) -> Option<(&'v Value, SchemaLocation)> {
        let place = self.location(schema, place);
        match schema.get("$ref") {
            None => Some((schema, place)),
            Some(_) if depth > MAX_DEPTH => None,
            Some(reference) => {
                let (found, place) = self.resolve(reference.as_str()?, &place).ok()?;
                self.followed((found, &place), depth + 1)
            }
        }
    }
}

fn required(map: &Map<String, Value>) -> impl Iterator<Item = &str> {
    map.get("required").and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str)
}

fn property<'a>(map: &'a Map<String, Value>, name: &str) -> Option<&'a Value> {
    map.get("properties").and_then(|properties| properties.get(name))
}

/// Whether no object of a schema has a property.
fn forbids(map: &Map<String, Value>, name: &str) -> bool {
    match map.get("properties").and_then(|properties| properties.get(name)) {
        Some(one) => one == &Value::Bool(false),
        None => map.get("additionalProperties") == Some(&Value::Bool(false)) && !map.contains_key("patternProperties"),
    }
}
