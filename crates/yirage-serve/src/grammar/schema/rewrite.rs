//! A schema written anew, keyword by keyword.

use super::drafts::SchemaDraft;
use super::names;
use super::refs::Index;
use super::words::says_nothing;
use super::{MAX_DEFINITIONS, MAX_LEAST, MAX_PROPERTIES, MAX_SCHEMAS, MAX_TEXT, formats, numbers};
use serde_json::{Map, Value, json};
use std::collections::{HashMap, HashSet};

/// The types that a value has one of, but for integers.
pub(super) const TYPES: [&str; 6] = ["null", "boolean", "number", "string", "array", "object"];

/// What strings and lists may have at most where more is allowed: no answer is longer.
const MAX_MOST: u64 = 1 << 16;

/// Where a schema stands.
#[derive(Clone)]
pub(super) struct SchemaLocation {
    /// What its references are relative to.
    base: String,
    path: String,
}

impl SchemaLocation {
    pub(super) fn at(&self, steps: &[&str]) -> SchemaLocation {
        let mut path = self.path.clone();
        for step in steps {
            path.push('/');
            path.extend(step.chars().take(64));
        }
        SchemaLocation { base: self.base.clone(), path }
    }

    /// An error of this place.
    pub(super) fn says(&self, what: &str) -> String {
        format!("at {}: {what}", self.path)
    }
}

/// A schema that is being written anew, with what it refers to.
pub(super) struct Rewriter<'a> {
    index: Index<'a>,
    draft: SchemaDraft,
    /// Whether what is written is below a keyword that the draft has not: whatever narrows it is as good there.
    beyond: bool,
    definitions: HashMap<*const Value, String>,
    waiting: Vec<(String, &'a Value, SchemaLocation)>,
    written: usize,
    /// The one `multipleOf` that there may be: the library overflows where it makes one of two.
    multiple: Option<f64>,
}

/// The schema in the library's words, with all definitions under `$defs`.
///
/// # Errors
/// The keyword that cannot be enforced, with its place.
pub(super) fn whole(schema: &Value) -> Result<Value, String> {
    let draft = SchemaDraft::of(schema);
    let mut rewriter = Rewriter {
        index: Index::new(schema, draft.hides()),
        draft,
        beyond: false,
        definitions: HashMap::new(),
        waiting: Vec::new(),
        written: 0,
        multiple: None,
    };
    let mut out = rewriter.of(schema, &SchemaLocation { base: String::new(), path: "#".into() })?;
    let mut definitions = Map::new();
    while let Some((name, schema, place)) = rewriter.waiting.pop() {
        let written = rewriter.of(schema, &place)?;
        definitions.insert(name, written);
    }
    if let Some(map) = out.as_object_mut().filter(|_| !definitions.is_empty()) {
        map.insert("$defs".into(), Value::Object(definitions));
    }
    Ok(out)
}

/// The types that a schema names; all where it names none. A number may be an integer.
pub(super) fn kinds(map: &Map<String, Value>) -> Vec<&str> {
    let mut named: Vec<&str> = match map.get("type") {
        Some(Value::String(one)) => vec![one],
        Some(Value::Array(list)) => list.iter().filter_map(Value::as_str).collect(),
        _ => TYPES.to_vec(),
    };
    if named.contains(&"number") {
        named.push("integer");
    } else if named.contains(&"integer") {
        named.push("number");
        named.retain(|one| *one != "integer");
        named.push("integer");
    }
    named
}

impl<'a> Rewriter<'a> {
    pub(super) fn location(&self, schema: &Value, around: &SchemaLocation) -> SchemaLocation {
        SchemaLocation { base: self.index.base(schema, &around.base).to_owned(), path: around.path.clone() }
    }

    /// What stands against a keyword where more than a narrower schema is made of it.
    pub(super) fn lacks(&self, keyword: &str, value: &Value) -> Option<String> {
        (!self.beyond && !self.draft.has(keyword, value)).then(|| self.draft.lacks(keyword))
    }

    /// Writes what is below a keyword.
    fn below<R>(&mut self, keyword: &str, value: &Value, f: impl FnOnce(&mut Self) -> R) -> R {
        let beyond = self.beyond || !self.draft.has(keyword, value);
        let before = std::mem::replace(&mut self.beyond, beyond);
        let written = f(self);
        self.beyond = before;
        written
    }

    /// Counts a schema that is written.
    pub(super) fn counts(&mut self, place: &SchemaLocation) -> Result<(), String> {
        self.written += 1;
        if self.written > MAX_SCHEMAS {
            return Err(place.says(&format!("it has more than {MAX_SCHEMAS} schemas within it")));
        }
        Ok(())
    }

    /// What a reference leads to.
    pub(super) fn resolve(
        &self,
        reference: &str,
        place: &SchemaLocation,
    ) -> Result<(&'a Value, SchemaLocation), String> {
        let found = self.index.find(&place.base, reference).ok_or_else(|| {
            let reference: String = reference.chars().take(200).collect();
            place.says(&format!("`$ref` {reference:?} leads to nothing in the schema, and nothing is fetched"))
        })?;
        let path = reference.chars().take(200).collect();
        Ok((found, SchemaLocation { base: self.index.base(found, &place.base).to_owned(), path }))
    }

    /// A reference to the definition of what one leads to.
    fn reference(&mut self, reference: &str, place: &SchemaLocation) -> Result<Value, String> {
        let (found, at) = self.resolve(reference, place)?;
        let count = self.definitions.len();
        if count > MAX_DEFINITIONS {
            return Err(place.says(&format!("it refers to more than {MAX_DEFINITIONS} schemas")));
        }
        let name = self.definitions.entry(std::ptr::from_ref(found)).or_insert_with(|| {
            let name = format!("r{count}");
            self.waiting.push((name.clone(), found, at));
            name
        });
        Ok(json!({"$ref": format!("#/$defs/{name}")}))
    }

    /// A schema in the library's words.
    pub(super) fn of(&mut self, schema: &Value, around: &SchemaLocation) -> Result<Value, String> {
        let place = self.location(schema, around);
        self.counts(&place)?;
        let map = match schema {
            Value::Bool(takes) => return Ok(Value::Bool(*takes)),
            Value::Object(map) => map,
            _ => return Err(place.says("a schema is an object or a truth value")),
        };
        let (mut out, mut also) = (Map::new(), Vec::new());
        for keyword in ["$ref", "$dynamicRef", "$recursiveRef"] {
            let Some(value) = map.get(keyword) else { continue };
            let text = value.as_str().ok_or_else(|| place.says(&format!("`{keyword}` has to be a string")))?;
            if self.index.depends(keyword, text) {
                return Err(place.says(&format!("`{keyword}` cannot be enforced where several schemas are meant")));
            }
            let reference = self.reference(text, &place)?;
            if self.draft.hides() && keyword == "$ref" {
                return Ok(reference);
            }
            also.push(reference);
        }
        for keyword in ["extends", "disallow", "divisibleBy"] {
            if map.contains_key(keyword) {
                return Err(place.says(&format!("`{keyword}` is of a draft that is not enforced")));
            }
        }
        self.values(map, &mut out, &place)?;
        self.strings(map, &mut out, &mut also, &place)?;
        self.arrays(map, &mut out, &mut also, &place)?;
        self.objects(map, &mut out, &mut also, &place)?;
        self.logic(map, &mut out, &mut also, &place)?;
        Ok(match also.len() {
            0 => Value::Object(out),
            1 if out.is_empty() => also.swap_remove(0),
            _ => {
                out.insert("allOf".into(), Value::Array(also));
                Value::Object(out)
            }
        })
    }

    /// Types, constants and numbers.
    fn values(
        &mut self,
        map: &Map<String, Value>,
        out: &mut Map<String, Value>,
        place: &SchemaLocation,
    ) -> Result<(), String> {
        let named: Vec<&Value> = match map.get("type") {
            None => Vec::new(),
            Some(Value::Array(list)) => list.iter().collect(),
            Some(one) => vec![one],
        };
        for one in &named {
            if !one.as_str().is_some_and(|one| one == "integer" || TYPES.contains(&one)) {
                return Err(place.says(&format!("`type` has to be one of {}, integer", TYPES.join(", "))));
            }
        }
        let number = named.iter().any(|one| *one == "number");
        let integer = named.iter().any(|one| *one == "integer") && !number;
        if map.contains_key("type") {
            let mut list: Vec<&Value> = Vec::new();
            for one in named {
                if !(list.contains(&one) || number && one == "integer") {
                    list.push(one);
                }
            }
            let one = if let [one] = list.as_slice() { (*one).clone() } else { json!(list) };
            out.insert("type".into(), one);
        }
        let wrong = |key: &str, why: String| place.says(&format!("`{key}`: {why}"));
        if let Some(value) = map.get("const") {
            text_is_short(value).map_err(|why| wrong("const", why))?;
            out.insert("const".into(), numbers::constant(value).map_err(|why| wrong("const", why))?);
        }
        match map.get("enum") {
            None => {}
            Some(Value::Array(list)) => {
                for value in list {
                    self.counts(place)?;
                    text_is_short(value).map_err(|why| wrong("enum", why))?;
                }
                let list = list.iter().map(numbers::constant).collect::<Result<Vec<_>, _>>();
                out.insert("enum".into(), Value::Array(list.map_err(|why| wrong("enum", why))?));
            }
            Some(_) => return Err(place.says("`enum` has to be a list")),
        }
        numbers::put(map, out, integer).map_err(|why| place.says(&why))?;
        if let Some(multiple) = out.get("multipleOf").and_then(Value::as_f64) {
            let small = |of: f64| of.fract() == 0.0 && of < 65_536.0;
            if self.multiple.is_some_and(|other| other != multiple && !(small(other) && small(multiple))) {
                return Err(
                    place.says("`multipleOf` has to be one number in the whole schema, or below 65536 and whole")
                );
            }
            self.multiple = Some(multiple);
        }
        Ok(())
    }

    fn strings(
        &mut self,
        map: &Map<String, Value>,
        out: &mut Map<String, Value>,
        also: &mut Vec<Value>,
        place: &SchemaLocation,
    ) -> Result<(), String> {
        counts_of(map, out, ["minLength", "maxLength"], place)?;
        match map.get("pattern") {
            None => {}
            Some(Value::String(pattern)) => drop(out.insert("pattern".into(), pattern_of(pattern, place)?.into())),
            Some(_) => return Err(place.says("`pattern` has to be a string")),
        }
        match map.get("format") {
            None => {}
            Some(Value::String(format)) if formats::of_library(format) => {
                out.insert("format".into(), format.as_str().into());
            }
            Some(Value::String(format)) => {
                also.extend(formats::other(format).map(|pattern| json!({"pattern": pattern})))
            }
            Some(_) => return Err(place.says("`format` has to be a string")),
        }
        Ok(())
    }

    fn arrays(
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
            let said_of_all = !old && self.lacks(first, &Value::Null).is_some();
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
        let fewest = u64::from(self.lacks("minContains", &Value::Null).is_some());
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

    fn objects(
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

    fn logic(
        &mut self,
        map: &Map<String, Value>,
        out: &mut Map<String, Value>,
        also: &mut Vec<Value>,
        place: &SchemaLocation,
    ) -> Result<(), String> {
        let list = |key: &str| match map.get(key) {
            None => Ok(None),
            Some(Value::Array(list)) => Ok(Some(list)),
            Some(_) => Err(place.says(&format!("`{key}` has to be a list"))),
        };
        for (at, one) in list("allOf")?.into_iter().flatten().enumerate() {
            also.push(self.of(one, &place.at(&["allOf", &at.to_string()]))?);
        }
        if let Some(any) = list("anyOf")? {
            let of = |(at, one): (usize, &Value)| self.of(one, &place.at(&["anyOf", &at.to_string()]));
            let any = any.iter().enumerate().map(of).collect::<Result<Vec<_>, _>>()?;
            out.insert("anyOf".into(), Value::Array(any));
        }
        if let Some(one) = list("oneOf")? {
            let objects = kinds(map) == ["object"];
            let one = self.below("oneOf", &Value::Null, |this| this.one_of(one, objects, place))?;
            also.push(json!({"anyOf": one}));
        }
        if let Some(one) = map.get("not") {
            also.push(self.below("not", one, |this| this.negated(one, &place.at(&["not"]), 0))?);
        }
        if let Some(one) = map.get("if").filter(|_| map.contains_key("then") || map.contains_key("else")) {
            also.push(self.below("if", one, |this| this.chosen(one, map, place))?);
        }
        Ok(())
    }

    /// What fits a condition and what follows from it, or else the other.
    fn chosen(&mut self, one: &Value, map: &Map<String, Value>, place: &SchemaLocation) -> Result<Value, String> {
        let at = place.at(&["if"]);
        let mut branch = |key: &str| map.get(key).map(|then| self.of(then, &place.at(&[key]))).transpose();
        let (then, other) = (branch("then")?, branch("else")?);
        let (fits, not) = (self.of(one, &at)?, self.negated(one, &at, 0)?);
        let both = |first, second: Option<Value>| json!({"allOf": [first, second.unwrap_or(Value::Bool(true))]});
        Ok(json!({"anyOf": [both(fits, then), both(not, other)]}))
    }

    /// The ways to fit one of several schemas and none of the others.
    fn one_of(&mut self, list: &[Value], objects: bool, place: &SchemaLocation) -> Result<Vec<Value>, String> {
        let mut ways = Vec::with_capacity(list.len());
        for (at, one) in list.iter().enumerate() {
            let here = place.at(&["oneOf", &at.to_string()]);
            let mut all = vec![self.of(one, &here)?];
            for (beside, other) in list.iter().enumerate().filter(|(beside, _)| *beside != at) {
                let there = place.at(&["oneOf", &beside.to_string()]);
                if !self.disjoint((one, &here), (other, &there), objects, 0) {
                    all.push(self.negated(other, &there, 0)?);
                }
            }
            ways.push(if let [one] = all.as_slice() { one.clone() } else { json!({"allOf": all}) });
        }
        Ok(ways)
    }
}

/// Keywords by which schemas apply to the same value.
const APPLICATORS: [&str; 9] =
    ["allOf", "anyOf", "oneOf", "if", "$ref", "$dynamicRef", "$recursiveRef", "not", "dependentSchemas"];

fn join(properties: &mut Map<String, Value>, name: String, one: &Value) {
    match properties.get_mut(&name) {
        Some(own) => *own = json!({"allOf": [own.take(), one]}),
        None => drop(properties.insert(name, one.clone())),
    }
}

fn pattern_of(pattern: &str, place: &SchemaLocation) -> Result<String, String> {
    if pattern.len() > MAX_TEXT {
        return Err(place.says(&format!("`pattern` has {} bytes; {MAX_TEXT} are taken", pattern.len())));
    }
    super::super::text::check(pattern).map_err(|why| place.says(&format!("`pattern`: {why}")))?;
    Ok(pattern.to_owned())
}

fn text_is_short(value: &Value) -> Result<(), String> {
    match value {
        Value::String(text) if text.len() > MAX_TEXT => {
            Err(format!("a text has {} bytes; {MAX_TEXT} are taken", text.len()))
        }
        Value::Array(list) => list.iter().try_for_each(text_is_short),
        Value::Object(map) => map.values().try_for_each(text_is_short),
        _ => Ok(()),
    }
}

/// How many there are at least and at most.
fn counts_of(
    map: &Map<String, Value>,
    out: &mut Map<String, Value>,
    [least, most]: [&str; 2],
    place: &SchemaLocation,
) -> Result<(), String> {
    let counted = |key: &str| map.get(key).map(|value| numbers::count(key, value).map_err(|why| place.says(&why)));
    if let Some(count) = counted(least).transpose()?.filter(|count| *count > 0) {
        if count > MAX_LEAST {
            return Err(place.says(&format!("`{least}` is {count}; {MAX_LEAST} are taken")));
        }
        out.insert(least.into(), count.into());
    }
    if let Some(count) = counted(most).transpose()? {
        out.insert(most.into(), count.min(MAX_MOST).into());
    }
    Ok(())
}
