//! The document as it lies: what stands where, and nothing of what it means.

use serde::de::{Error, MapAccess, SeqAccess, Visitor};
use serde::ser::SerializeMap;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::Value;
use std::fmt;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Document {
    #[serde(rename = "yirage-graph")]
    pub(super) version: u32,
    pub(super) graph: GraphForm,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct GraphForm {
    pub(super) name: String,
    pub(super) inputs: Vec<InputForm>,
    pub(super) nodes: Vec<NodeForm>,
    pub(super) outputs: Vec<String>,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct InputForm {
    pub(super) name: String,
    pub(super) kind: String,
    pub(super) dtype: String,
    pub(super) shape: Vec<Size>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) strides: Option<Vec<u32>>,
    #[serde(default, skip_serializing_if = "is_zero")]
    pub(super) after: usize,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct NodeForm {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) op: Option<String>,
    #[serde(default, skip_serializing_if = "Attributes::is_empty")]
    pub(super) attrs: Attributes,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) region: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) graph: Option<Box<GraphForm>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) block: Option<Box<GraphForm>>,
    pub(super) inputs: Vec<String>,
    pub(super) outputs: Vec<OutputForm>,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct OutputForm {
    pub(super) name: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) dtype: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) shape: Option<Vec<Size>>,
}

fn is_zero(n: &usize) -> bool {
    *n == 0
}

/// One dimension.
pub(super) enum Size {
    Fixed(u32),
    Symbol(String),
}

impl Serialize for Size {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        match self {
            Size::Fixed(n) => to.serialize_u32(*n),
            Size::Symbol(name) => to.serialize_str(name),
        }
    }
}

impl<'de> Deserialize<'de> for Size {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Size, D::Error> {
        from.deserialize_any(SizeVisitor)
    }
}

struct SizeVisitor;

impl Visitor<'_> for SizeVisitor {
    type Value = Size;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a size below 2^32 or the name of a symbol")
    }

    fn visit_u64<E: Error>(self, n: u64) -> Result<Size, E> {
        let size = u32::try_from(n).map_err(|_| E::invalid_value(serde::de::Unexpected::Unsigned(n), &self))?;
        Ok(Size::Fixed(size))
    }

    fn visit_str<E: Error>(self, name: &str) -> Result<Size, E> {
        Ok(Size::Symbol(name.to_owned()))
    }
}

/// Attributes in their text form, in order. One that stands twice stays twice, for the op to refuse.
#[derive(Default)]
pub(super) struct Attributes(pub(super) Vec<(String, String)>);

impl Attributes {
    fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl Serialize for Attributes {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        let mut map = to.serialize_map(Some(self.0.len()))?;
        for (name, text) in &self.0 {
            map.serialize_entry(name, &natural(text))?;
        }
        map.end()
    }
}

/// Whole numbers, truth values and lists of whole numbers as such, where their text is how they print; else the text.
fn natural(text: &str) -> Value {
    match serde_json::from_str(text) {
        Ok(value) if spelt(&value).as_deref() == Some(text) && !matches!(value, Value::String(_)) => value,
        _ => Value::String(text.to_owned()),
    }
}

/// The text form of an attribute; none for what no attribute is.
fn spelt(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => Some(text.clone()),
        Value::Bool(value) => Some(value.to_string()),
        Value::Number(n) if n.is_u64() || n.is_i64() => Some(n.to_string()),
        Value::Array(items) => {
            let whole = |v: &Value| v.as_i64().map(|n| n.to_string());
            Some(format!("[{}]", items.iter().map(whole).collect::<Option<Vec<_>>>()?.join(", ")))
        }
        _ => None,
    }
}

impl<'de> Deserialize<'de> for Attributes {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Attributes, D::Error> {
        from.deserialize_map(AttributesVisitor)
    }
}

struct AttributesVisitor;

impl<'de> Visitor<'de> for AttributesVisitor {
    type Value = Attributes;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object of attributes")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Attributes, A::Error> {
        let mut list = Vec::new();
        while let Some(name) = map.next_key::<String>()? {
            list.push((name, map.next_value::<AttributeText>()?.0));
        }
        Ok(Attributes(list))
    }
}

/// The text form of one attribute.
struct AttributeText(String);

impl<'de> Deserialize<'de> for AttributeText {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<AttributeText, D::Error> {
        from.deserialize_any(AttributeVisitor)
    }
}

struct AttributeVisitor;

impl<'de> Visitor<'de> for AttributeVisitor {
    type Value = AttributeText;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a text, a whole number, a truth value or a list of whole numbers")
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<AttributeText, E> {
        Ok(AttributeText(text.to_owned()))
    }

    fn visit_bool<E: Error>(self, value: bool) -> Result<AttributeText, E> {
        Ok(AttributeText(value.to_string()))
    }

    fn visit_u64<E: Error>(self, n: u64) -> Result<AttributeText, E> {
        Ok(AttributeText(n.to_string()))
    }

    fn visit_i64<E: Error>(self, n: i64) -> Result<AttributeText, E> {
        Ok(AttributeText(n.to_string()))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<AttributeText, A::Error> {
        let mut items = Vec::new();
        while let Some(n) = list.next_element::<i64>()? {
            items.push(n.to_string());
        }
        Ok(AttributeText(format!("[{}]", items.join(", "))))
    }
}
