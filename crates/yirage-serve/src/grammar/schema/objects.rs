//! What a schema says of objects, written anew.

use super::rewrite::{Rewriter, SchemaLocation, counts_of, kinds, pattern_of};
use super::words::says_nothing;
use super::{MAX_PROPERTIES, MAX_TEXT, names};
use serde_json::{Map, Value, json};
use std::collections::HashSet;

impl Rewriter<'_> {
    pub(super) fn objects(
        &mut self,
        map: &Map<String, Value>,
        out: &mut Map<String, Value>,
        also: &mut Vec<Value>,
        place: &SchemaLocation,
    ) -> Result<(), String> {
        counts_of(map, out, ["minProperties", "maxProperties"], place)?;
        match map.get("required") {
            None => {}
            Some(Value::Array(names)) if names.iter().all(Value::is_string) => {
                out.insert("required".into(), Value::Array(names.clone()));
            }
            Some(_) => return Err(place.says("`required` has to be a list of names")),
        }
        let mut properties = self.named(map, "properties", place)?;
        let patterns = self.named(map, "patternProperties", place)?;
        let mut kept = Map::new();
        let mut additional = match map.get("additionalProperties") {
            Some(one) => Some(self.of(one, &place.at(&["additionalProperties"]))?),
            None => self.unevaluated(map, &mut properties, place)?,
        };
        let mut everywhere: Option<Value> = None;
        for (pattern, one) in patterns {
            match names::all(&pattern) {
                Some(names) => {
                    for name in names {
                        join(&mut properties, name, &one);
                    }
                }
                None if names::fits_all(&pattern) => {
                    everywhere = Some(everywhere.map_or(one.clone(), |other| json!({"allOf": [other, one]})));
                }
                None => drop(kept.insert(pattern_of(&pattern, place)?, one)),
            }
        }
        let mut kept = names::apart(kept);
        if let Some(one) = everywhere {
            for own in properties.values_mut().chain(kept.values_mut()) {
                *own = json!({"allOf": [own.take(), one]});
            }
            // No name is left for what is said of others.
            additional = Some(one);
        }
        if let Some(one) = map.get("propertyNames") {
            let at = place.at(&["propertyNames"]);
            self.property_names(one, &at, (&mut properties, &mut kept, &mut additional))?;
        }
        for (key, named) in [("properties", properties), ("patternProperties", kept)] {
            if !named.is_empty() {
                out.insert(key.into(), Value::Object(named));
            }
        }
        additional.map(|one| out.insert("additionalProperties".into(), one));
        self.some_property(out, also, place)?;
        self.dependent(map, also, place)
    }

    /// At least one property, in words of which the library knows more: one of those that are listed is there.
    fn some_property(
        &mut self,
        out: &mut Map<String, Value>,
        also: &mut Vec<Value>,
        place: &SchemaLocation,
    ) -> Result<(), String> {
        /// Properties that may be that one.
        const MAX_NAMES: usize = 64;
        let required = out.get("required").and_then(Value::as_array);
        let required: HashSet<&str> = required.into_iter().flatten().filter_map(Value::as_str).collect();
        let Some(least) = out.get("minProperties").and_then(Value::as_u64) else { return Ok(()) };
        let names =
            out.get("properties").and_then(Value::as_object).map(|named| named.keys().cloned().collect::<Vec<_>>());
        let names = names.filter(|names| least == 1 && names.len() <= MAX_NAMES && !out.contains_key("maxProperties"));
        if least <= required.len() as u64 {
            out.remove("minProperties");
        } else if let Some(names) = names {
            let mut ways = vec![json!({"type": ["null", "boolean", "number", "string", "array"]})];
            for name in names {
                self.counts(place)?;
                ways.push(json!({"required": [name]}));
            }
            out.remove("minProperties");
            also.push(json!({"anyOf": ways}));
        }
        Ok(())
    }

    fn named(
        &mut self,
        map: &Map<String, Value>,
        key: &str,
        place: &SchemaLocation,
    ) -> Result<Map<String, Value>, String> {
        match map.get(key) {
            None => Ok(Map::new()),
            Some(Value::Object(named)) if named.len() > MAX_PROPERTIES => {
                Err(place.says(&format!("`{key}` has {} names; {MAX_PROPERTIES} are taken", named.len())))
            }
            Some(Value::Object(named)) => {
                let of = |(name, one): (&String, &Value)| {
                    if name.len() > MAX_TEXT {
                        return Err(place.says(&format!("a name in `{key}` has more than {MAX_TEXT} bytes")));
                    }
                    Ok((name.clone(), self.of(one, &place.at(&[key, name]))?))
                };
                named.iter().map(of).collect()
            }
            Some(_) => Err(place.says(&format!("`{key}` has to be an object"))),
        }
    }

    /// What is said of properties that nothing else speaks of, as the additional ones. Those that schemas beside this one
    /// surely speak of join its own.
    fn unevaluated(
        &mut self,
        map: &Map<String, Value>,
        properties: &mut Map<String, Value>,
        place: &SchemaLocation,
    ) -> Result<Option<Value>, String> {
        let Some(one) = map.get("unevaluatedProperties").filter(|one| **one != Value::Bool(true)) else {
            return Ok(None);
        };
        let mut names = Vec::new();
        if !self.evaluated(map, place, &mut names, 0)? {
            return Err(place.says("`unevaluatedProperties` cannot be enforced beside schemas of which one is chosen"));
        }
        for name in names {
            properties.entry(name).or_insert(Value::Bool(true));
        }
        Ok(Some(self.of(one, &place.at(&["unevaluatedProperties"]))?))
    }

    /// Gathers the names of which a schema speaks; whether these are all.
    fn evaluated(
        &self,
        map: &Map<String, Value>,
        place: &SchemaLocation,
        names: &mut Vec<String>,
        depth: usize,
    ) -> Result<bool, String> {
        let chosen = ["anyOf", "oneOf", "if", "dependentSchemas", "dependencies", "$dynamicRef", "$recursiveRef"];
        let open = chosen.iter().any(|key| map.contains_key(*key))
            || depth > 8
            || depth > 0
                && ["patternProperties", "additionalProperties", "unevaluatedProperties"]
                    .iter()
                    .any(|k| map.contains_key(*k));
        if open {
            return Ok(false);
        }
        if depth > 0 {
            names.extend(map.get("properties").and_then(Value::as_object).into_iter().flat_map(|p| p.keys().cloned()));
        }
        for one in map.get("allOf").and_then(Value::as_array).into_iter().flatten() {
            if let Value::Object(one) = one
                && !self.evaluated(one, place, names, depth + 1)?
            {
                return Ok(false);
            }
        }
        if let Some(reference) = map.get("$ref").and_then(Value::as_str) {
            let (found, at) = self.resolve(reference, place)?;
            if let Value::Object(found) = found {
                return self.evaluated(found, &at, names, depth + 1);
            }
        }
        Ok(true)
    }

    /// Names that fit a schema of texts.
    fn property_names(
        &mut self,
        one: &Value,
        place: &SchemaLocation,
        (properties, patterns, additional): (&mut Map<String, Value>, &mut Map<String, Value>, &mut Option<Value>),
    ) -> Result<(), String> {
        let place = self.location(one, place);
        let map = match one {
            Value::Bool(true) => return Ok(()),
            Value::Bool(false) => {
                properties.values_mut().chain(patterns.values_mut()).for_each(|one| *one = Value::Bool(false));
                *additional = Some(Value::Bool(false));
                return Ok(());
            }
            Value::Object(map) => map,
            _ => return Err(place.says("a schema is an object or a truth value")),
        };
        if let (Some(reference), 1) = (map.get("$ref").and_then(Value::as_str), map.len()) {
            let (found, at) = self.resolve(reference, &place)?;
            return self.property_names(found, &at, (properties, patterns, additional));
        }
        if map.contains_key("type") && !kinds(map).contains(&"string") {
            return self.property_names(&Value::Bool(false), &place, (properties, patterns, additional));
        }
        let asks = |key: &&String| !says_nothing(key) && *key != "type" && *key != "nullable";
        let asked: Vec<&String> = map.keys().filter(asks).collect();
        if asked.is_empty() {
            return Ok(());
        }
        let listed: Option<Vec<&str>> = match (map.get("const"), map.get("enum")) {
            (Some(one), None) => Some(one.as_str().into_iter().collect()),
            (None, Some(Value::Array(list))) => Some(list.iter().filter_map(Value::as_str).collect()),
            _ => None,
        };
        if let (Some(listed), 1) = (&listed, asked.len()) {
            for name in listed {
                if !properties.contains_key(*name) {
                    let mut of = additional.clone().unwrap_or(Value::Bool(true));
                    for (pattern, one) in patterns.iter() {
                        if names::fits(pattern, name).map_err(|why| place.says(&why))? {
                            of = one.clone();
                        }
                    }
                    properties.insert((*name).to_owned(), of);
                }
            }
            properties.retain(|name, _| listed.contains(&name.as_str()));
            patterns.clear();
            *additional = Some(Value::Bool(false));
            return Ok(());
        }
        let known = ["pattern", "minLength", "maxLength"];
        if asked.iter().any(|key| !known.contains(&key.as_str())) || !patterns.is_empty() {
            return Err(place.says("`propertyNames` can be enforced with a pattern, lengths or a list of names, and without patternProperties"));
        }
        let mut counted = Map::new();
        counts_of(map, &mut counted, ["minLength", "maxLength"], &place)?;
        let (least, most) =
            (counted.get("minLength").and_then(Value::as_u64), counted.get("maxLength").and_then(Value::as_u64));
        let long =
            format!("^[\\s\\S]{{{},{}}}$", least.unwrap_or(0), most.map_or(String::new(), |most| most.to_string()));
        let pattern = match (map.get("pattern"), asked.len()) {
            (Some(Value::String(pattern)), 1) => pattern_of(pattern, &place)?,
            (None, _) => long,
            _ => return Err(place.says("`propertyNames` can be enforced with a pattern or lengths, not with both")),
        };
        for (name, one) in properties.iter_mut() {
            if !names::fits(&pattern, name).map_err(|why| place.says(&why))? {
                *one = Value::Bool(false);
            }
        }
        let of = additional.replace(Value::Bool(false)).unwrap_or(Value::Bool(true));
        if of == Value::Bool(false) {
            return Ok(());
        }
        match names::all(&pattern) {
            Some(names) => {
                for name in names {
                    properties.entry(name).or_insert_with(|| of.clone());
                }
            }
            // Beside the pattern they keep what is said of them alone.
            None => drop(patterns.insert(pattern, of)),
        }
        Ok(())
    }

    /// What has to be where a property is.
    fn dependent(
        &mut self,
        map: &Map<String, Value>,
        also: &mut Vec<Value>,
        place: &SchemaLocation,
    ) -> Result<(), String> {
        for key in ["dependentRequired", "dependentSchemas", "dependencies"] {
            let named = match map.get(key) {
                None => continue,
                Some(Value::Object(named)) => named,
                Some(_) => return Err(place.says(&format!("`{key}` has to be an object"))),
            };
            for (name, one) in named {
                let then = match one {
                    Value::Array(names) if key != "dependentSchemas" && names.iter().all(Value::is_string) => {
                        let mut names = names.clone();
                        if !names.iter().any(|one| one == name) {
                            names.push(name.as_str().into());
                        }
                        json!({"required": names})
                    }
                    one if key != "dependentRequired" => {
                        json!({"required": [name], "allOf": [self.of(one, &place.at(&[key, name]))?]})
                    }
                    _ => return Err(place.says(&format!("`{key}` has to have lists of names"))),
                };
                self.counts(place)?;
                also.push(json!({"anyOf": [{"properties": {name: false}}, then]}));
            }
        }
        Ok(())
    }
}

fn join(properties: &mut Map<String, Value>, name: String, one: &Value) {
    match properties.get_mut(&name) {
        Some(own) => *own = json!({"allOf": [own.take(), one]}),
        None => drop(properties.insert(name, one.clone())),
    }
}
