//! What the tools of a request say of the arguments they take: of which type a value is that a model wrote as bare text.

use crate::tools::Tool;
use serde_json::Value;
use std::sync::Arc;

/// Schemas within schemas that are followed to find a value's type.
const MAX_FOLLOWED: usize = 16;

/// The tools of a request.
#[derive(Clone, Debug, Default)]
pub(crate) struct DeclaredTools(Arc<[Tool]>);

/// What a value is to be.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Types(Vec<String>);

impl DeclaredTools {
    pub(crate) fn new(tools: &[Tool]) -> DeclaredTools {
        DeclaredTools(tools.into())
    }

    /// Whether there is a tool of this name.
    pub(super) fn has(&self, name: &str) -> bool {
        self.0.iter().any(|tool| tool.name == name)
    }

    /// The types that an argument of a tool may have, as its schema says; none where it says nothing.
    pub(super) fn types(&self, tool: &str, argument: &str) -> Types {
        let Some(root) = self.0.iter().find(|one| one.name == tool).map(|one| &one.parameters) else {
            return Types::default();
        };
        let root_properties = followed(root, root).and_then(|root| root.get("properties"));
        let schema = root_properties.and_then(|properties| properties.get(argument));
        schema.map_or_else(Types::default, |schema| Types::of(root, schema))
    }
}

/// The schema that a schema refers to within `root`, or itself.
pub(crate) fn followed<'a>(root: &'a Value, schema: &'a Value) -> Option<&'a Value> {
    match schema.get("$ref").and_then(Value::as_str) {
        Some(place) => root.pointer(place.strip_prefix('#')?),
        None => Some(schema),
    }
}

impl Types {
    fn collect(&mut self, root: &Value, schema: &Value, left: usize) {
        let (Some(schema), Some(left)) = (followed(root, schema), left.checked_sub(1)) else { return };
        match schema.get("type") {
            Some(Value::String(one)) => self.add(one),
            Some(Value::Array(list)) => list.iter().filter_map(Value::as_str).for_each(|one| self.add(one)),
            _ => {}
        }
        let values = schema.get("enum").and_then(Value::as_array).into_iter().flatten();
        values.chain(schema.get("const")).for_each(|value| self.add(kind(value)));
        for key in ["anyOf", "oneOf", "allOf"] {
            let inner = schema.get(key).and_then(Value::as_array);
            inner.into_iter().flatten().for_each(|one| self.collect(root, one, left));
        }
        if schema.get("$ref").is_some() {
            self.collect(root, schema, left);
        }
        if schema.get("nullable") == Some(&Value::Bool(true)) {
            self.add("null");
        }
    }

    fn add(&mut self, name: &str) {
        // Words that other languages' generators of schemas write.
        let name = match name {
            "str" | "text" | "char" => "string",
            "int" | "long" | "int64" | "int32" | "uint" => "integer",
            "float" | "double" => "number",
            "bool" => "boolean",
            "dict" => "object",
            "list" | "arr" => "array",
            other => other,
        };
        if !self.0.iter().any(|known| known == name) {
            self.0.push(name.to_owned());
        }
    }

    /// The types that a value of a schema within `root` may have; none where it says nothing.
    pub(crate) fn of(root: &Value, schema: &Value) -> Types {
        let mut types = Types::default();
        types.collect(root, schema, MAX_FOLLOWED);
        types
    }

    /// Whether there are types, and no others than these two.
    pub(crate) fn is(&self, one: &str, other: &str) -> bool {
        self.is_known() && self.0.iter().all(|known| known == one || known == other)
    }

    pub(crate) fn is_known(&self) -> bool {
        !self.0.is_empty()
    }

    pub(crate) fn has(&self, name: &str) -> bool {
        self.0.iter().any(|known| known == name)
    }

    /// Whether text can be nothing else than text.
    pub(super) fn only_text(&self) -> bool {
        self.is("string", "string")
    }
}

fn kind(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "boolean",
        Value::Number(number) if number.is_i64() || number.is_u64() => "integer",
        Value::Number(_) => "number",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    }
}
