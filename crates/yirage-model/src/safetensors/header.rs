//! The JSON header as it is stored, read without building a tree, so that its budgets hold while it is read.

use crate::limits::{SAFETENSORS_DIMS, SAFETENSORS_METADATA_ENTRIES, TENSOR_NAME_BYTES, TENSORS};
use serde::Deserialize;
use serde::de::{Deserializer, Error, MapAccess, SeqAccess, Visitor};
use std::collections::{BTreeMap, HashSet};
use std::fmt;

/// Everything the header says.
#[derive(Default)]
pub(super) struct SafetensorsHeader {
    pub(super) metadata: BTreeMap<String, String>,
    pub(super) tensors: Vec<(String, SafetensorsEntry)>,
}

/// A tensor's entry.
#[derive(Deserialize)]
pub(super) struct SafetensorsEntry {
    pub(super) dtype: String,
    pub(super) shape: SafetensorsShape,
    pub(super) data_offsets: (u64, u64),
}

/// Dimensions, outermost first; never more than the budget.
pub(super) struct SafetensorsShape(pub(super) Vec<u64>);

impl<'de> Deserialize<'de> for SafetensorsShape {
    fn deserialize<D: Deserializer<'de>>(d: D) -> Result<SafetensorsShape, D::Error> {
        struct ShapeVisitor;
        impl<'de> Visitor<'de> for ShapeVisitor {
            type Value = SafetensorsShape;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, "a list of at most {SAFETENSORS_DIMS} dimensions")
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<SafetensorsShape, A::Error> {
                let mut dims = Vec::new();
                while let Some(dim) = seq.next_element()? {
                    if dims.len() == SAFETENSORS_DIMS {
                        return Err(A::Error::invalid_length(dims.len() + 1, &self));
                    }
                    dims.push(dim);
                }
                Ok(SafetensorsShape(dims))
            }
        }
        d.deserialize_seq(ShapeVisitor)
    }
}

/// The `__metadata__` table; a repeated key is an error, as is an entry too many.
struct Metadata(BTreeMap<String, String>);

impl<'de> Deserialize<'de> for Metadata {
    fn deserialize<D: Deserializer<'de>>(d: D) -> Result<Metadata, D::Error> {
        struct MetadataVisitor;
        impl<'de> Visitor<'de> for MetadataVisitor {
            type Value = Metadata;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a table of strings")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Metadata, A::Error> {
                let mut table = BTreeMap::new();
                while let Some((key, value)) = map.next_entry::<String, String>()? {
                    if table.len() == SAFETENSORS_METADATA_ENTRIES {
                        return Err(A::Error::custom(format_args!("more than {} metadata entries", table.len())));
                    }
                    if table.insert(key.clone(), value).is_some() {
                        return Err(A::Error::custom(format_args!("metadata key {key:?} occurs a second time")));
                    }
                }
                Ok(Metadata(table))
            }
        }
        d.deserialize_map(MetadataVisitor)
    }
}

impl<'de> Deserialize<'de> for SafetensorsHeader {
    fn deserialize<D: Deserializer<'de>>(d: D) -> Result<SafetensorsHeader, D::Error> {
        struct Top;
        impl<'de> Visitor<'de> for Top {
            type Value = SafetensorsHeader;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a table of tensors")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<SafetensorsHeader, A::Error> {
                let mut header = SafetensorsHeader::default();
                let mut names = HashSet::new();
                while let Some(name) = map.next_key::<String>()? {
                    if name.len() as u64 > TENSOR_NAME_BYTES {
                        return Err(A::Error::custom(format_args!(
                            "a tensor name of {} bytes exceeds the limit of {TENSOR_NAME_BYTES}",
                            name.len()
                        )));
                    }
                    if names.len() as u64 > TENSORS {
                        return Err(A::Error::custom(format_args!("more than {TENSORS} tensors")));
                    }
                    if !names.insert(name.clone()) {
                        return Err(A::Error::custom(format_args!("tensor {name:?} occurs a second time")));
                    }
                    if name == "__metadata__" {
                        header.metadata = map.next_value::<Option<Metadata>>()?.map_or_else(BTreeMap::new, |m| m.0);
                    } else {
                        header.tensors.push((name, map.next_value()?));
                    }
                }
                Ok(header)
            }
        }
        d.deserialize_map(Top)
    }
}
