//! What a schema says of lists, written anew.

use super::rewrite::{Rewriter, SchemaLocation, counts_of};
use super::{MAX_LEAST, numbers};
use serde_json::{Map, Value, json};

/// Keywords by which schemas apply to the same value.
const APPLICATORS: [&str; 9] =
    ["allOf", "anyOf", "oneOf", "if", "$ref", "$dynamicRef", "$recursiveRef", "not", "dependentSchemas"];

impl Rewriter<'_> {
    pub(super) fn arrays(
        &mut self,
        map: &Map<String, Value>,
        out: &mut Map<String, Value>,
        also: &mut Vec<Value>,
        place: &SchemaLocation,
    ) -> Result<(), String> {
        counts_of(map, out, ["minItems", "maxItems"], place)?;
        // Up to draft 2019-09 a list of schemas is `items`, and what is behind it `additionalItems`.
        let old = map.get("items").is_some_and(Value::is_array);
        let (first, rest) = if old { ("items", "additionalItems") } else { ("prefixItems", "items") };
        match map.get(first) {
            Some(Value::Array(list)) => {
                let of = |(at, one): (usize, &Value)| self.of(one, &place.at(&[first, &at.to_string()]));
                let list = list.iter().enumerate().map(of).collect::<Result<Vec<_>, _>>()?;
                out.insert("prefixItems".into(), Value::Array(list));
            }
            Some(_) if !old => return Err(place.says("`prefixItems` has to be a list")),
            _ => {}
        }
        if let Some(one) = map.get(rest) {
            let one = self.of(one, &place.at(&[rest]))?;
            // `items` is said of all of them where the draft has no first ones.
            let said_of_all = !old && self.lacks(first, &Value::Null, place).is_some();
            if let Some(list) = out.get_mut("prefixItems").and_then(Value::as_array_mut).filter(|_| said_of_all) {
                list.iter_mut().for_each(|own| *own = json!({"allOf": [own.take(), one]}));
            }
            out.insert("items".into(), one);
        }
        if let Some(one) = map.get("unevaluatedItems").filter(|one| **one != Value::Bool(true)) {
            if APPLICATORS.iter().chain(&["contains"]).any(|key| map.contains_key(*key)) {
                return Err(place.says("`unevaluatedItems` cannot be enforced beside what may evaluate items"));
            }
            if !out.contains_key("items") {
                out.insert("items".into(), self.of(one, &place.at(&["unevaluatedItems"]))?);
            }
        }
        match map.get("uniqueItems") {
            None | Some(Value::Bool(false)) => {}
            Some(Value::Bool(true)) => self.unique(map.get(rest), out, also, place)?,
            Some(_) => return Err(place.says("`uniqueItems` has to be a truth value")),
        }
        match map.get("contains") {
            None => Ok(()),
            Some(one) => self.contained(one, map, also, place),
        }
    }

    /// Items that differ: where they are few, or of few values, which come in their order then.
    fn unique(
        &mut self,
        items: Option<&Value>,
        out: &Map<String, Value>,
        also: &mut Vec<Value>,
        place: &SchemaLocation,
    ) -> Result<(), String> {
        /// Values of which each set is written out.
        const MAX_VALUES: usize = 8;
        if out.get("maxItems").and_then(Value::as_u64).is_some_and(|most| most <= 1) {
            return Ok(());
        }
        let refused = || place.says("`uniqueItems` can be enforced where `items` lists eight values at most");
        let listed = items.filter(|_| !out.contains_key("prefixItems")).and_then(|items| self.listed(items, place));
        let mut values: Vec<Value> = Vec::new();
        for value in listed.filter(|list| list.len() <= MAX_VALUES).ok_or_else(refused)? {
            if !values.iter().any(|other| super::values::same(&value, other)) {
                values.push(numbers::constant(&value).map_err(|why| place.says(&why))?);
            }
        }
        let mut sets: Vec<Value> = Vec::new();
        for chosen in 0_u32..1 << values.len() {
            let set = values.iter().enumerate().filter(|(at, _)| chosen & (1 << at) != 0);
            let set: Vec<Value> = set.map(|(_, value)| json!({"const": value})).collect();
            self.counts(place)?;
            sets.push(json!({"type": "array", "minItems": set.len(), "maxItems": set.len(), "prefixItems": set}));
        }
        sets.push(json!({"type": ["null", "boolean", "number", "string", "object"]}));
        also.push(json!({"anyOf": sets}));
        Ok(())
    }

    /// Items of which some fit a schema: the first ones do.
    fn contained(
        &mut self,
        one: &Value,
        map: &Map<String, Value>,
        also: &mut Vec<Value>,
        place: &SchemaLocation,
    ) -> Result<(), String> {
        let counted = |key: &str| map.get(key).map(|value| numbers::count(key, value)).transpose();
        // A draft without this keyword asks for one.
        let fewest = u64::from(self.lacks("minContains", &Value::Null, place).is_some());
        let least = counted("minContains").map_err(|why| place.says(&why))?.unwrap_or(1).max(fewest);
        let most = counted("maxContains").map_err(|why| place.says(&why))?;
        if least > MAX_LEAST / 16 {
            return Err(place.says(&format!("`minContains` is more than {}", MAX_LEAST / 16)));
        }
        let at = place.at(&["contains"]);
        let fits = self.of(one, &at)?;
        let count = usize::try_from(least).unwrap_or_default();
        let mut narrow = json!({"prefixItems": vec![fits; count], "minItems": count});
        if most.is_some_and(|most| most < least) {
            narrow = json!({"type": ["null", "boolean", "number", "string", "object"]});
        } else if most.is_some() {
            narrow["items"] = self.negated(one, &at, 0)?;
        }
        for _ in 0..count {
            self.counts(place)?;
        }
        also.push(narrow);
        Ok(())
    }
}
