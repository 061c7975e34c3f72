//! A schema written anew, keyword by keyword.

use super::drafts::SchemaDraft;
use super::refs::Index;
use super::{MAX_DEFINITIONS, MAX_LEAST, MAX_SCHEMAS, MAX_TEXT, formats, numbers};
use serde_json::{Map, Value, json};
use std::collections::HashMap;

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
    /// Whose keywords they are.
    draft: SchemaDraft,
}

impl SchemaLocation {
    pub(super) fn at(&self, steps: &[&str]) -> SchemaLocation {
        let mut path = self.path.clone();
        for step in steps {
            path.push('/');
            path.extend(step.chars().take(64));
        }
        SchemaLocation { base: self.base.clone(), path, draft: self.draft }
    }

    /// An error of this place.
    pub(super) fn says(&self, what: &str) -> String {
        format!("at {}: {what}", self.path)
    }
}

/// A schema that is being written anew, with what it refers to.
pub(super) struct Rewriter<'a> {
    index: Index<'a>,
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
        index: Index::new(schema, draft),
        beyond: false,
        definitions: HashMap::new(),
        waiting: Vec::new(),
        written: 0,
        multiple: None,
    };
    let mut out = rewriter.of(schema, &SchemaLocation { base: String::new(), path: "#".into(), draft })?;
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
        let draft = SchemaDraft::named(schema).unwrap_or(around.draft);
        SchemaLocation { base: self.index.base(schema, &around.base).to_owned(), path: around.path.clone(), draft }
    }

    /// What stands against a keyword where more than a narrower schema is made of it.
    pub(super) fn lacks(&self, keyword: &str, value: &Value, place: &SchemaLocation) -> Option<String> {
        (!self.beyond && !place.draft.has(keyword, value)).then(|| place.draft.lacks(keyword))
    }

    /// Writes what is below a keyword.
    fn below<R>(
        &mut self,
        (keyword, value): (&str, &Value),
        place: &SchemaLocation,
        f: impl FnOnce(&mut Self) -> R,
    ) -> R {
        let beyond = self.beyond || !place.draft.has(keyword, value);
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
        let draft = SchemaDraft::named(found).unwrap_or(place.draft);
        Ok((found, SchemaLocation { base: self.index.base(found, &place.base).to_owned(), path, draft }))
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
            if place.draft.hides() && keyword == "$ref" {
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
            let one = self.below(("oneOf", &Value::Null), place, |this| this.one_of(one, objects, place))?;
            also.push(json!({"anyOf": one}));
        }
        if let Some(one) = map.get("not") {
            also.push(self.below(("not", one), place, |this| this.negated(one, &place.at(&["not"]), 0))?);
        }
        if let Some(one) = map.get("if").filter(|_| map.contains_key("then") || map.contains_key("else")) {
            also.push(self.below(("if", one), place, |this| this.chosen(one, map, place))?);
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

pub(super) fn pattern_of(pattern: &str, place: &SchemaLocation) -> Result<String, String> {
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
pub(super) fn counts_of(
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
