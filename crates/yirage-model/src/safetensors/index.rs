//! `model.safetensors.index.json`: which shard holds which tensor.

use crate::error::ModelError;
use crate::limits::{SAFETENSORS_INDEX_BYTES, SAFETENSORS_SHARDS, TENSORS};
use serde::Deserialize;
use std::collections::BTreeMap;

/// The index of a sharded model.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ShardIndex {
    /// Shard file names, sorted.
    pub shards: Vec<String>,
    /// The shard (an index into `shards`) of each tensor.
    pub weight_map: BTreeMap<String, usize>,
}

#[derive(Deserialize)]
struct ShardIndexFile {
    weight_map: BTreeMap<String, String>,
}

impl ShardIndex {
    /// Parses an index file; `name` is how errors call it.
    ///
    /// # Errors
    /// [`ModelError::Json`] where it is not JSON with a `weight_map` of strings; [`ModelError::Config`] for counts over
    /// budget and shard names that are not plain file names (an index must not reach outside its folder).
    pub fn parse(bytes: &[u8], name: &str) -> Result<ShardIndex, ModelError> {
        let bad = |key: &str, expected: String, found: String| {
            Err(ModelError::Config { file: name.to_owned(), key: key.to_owned(), expected, found })
        };
        if bytes.len() as u64 > SAFETENSORS_INDEX_BYTES {
            return bad("file", format!("at most {SAFETENSORS_INDEX_BYTES} bytes"), format!("{} bytes", bytes.len()));
        }
        let stored: ShardIndexFile = serde_json::from_slice(bytes).map_err(|e| ModelError::json(name, &e))?;
        if stored.weight_map.len() as u64 > TENSORS {
            return bad("weight_map", format!("at most {TENSORS} tensors"), stored.weight_map.len().to_string());
        }
        let mut shards: Vec<String> = stored.weight_map.values().cloned().collect();
        shards.sort_unstable();
        shards.dedup();
        if shards.is_empty() || shards.len() > SAFETENSORS_SHARDS {
            return bad("weight_map", format!("1 to {SAFETENSORS_SHARDS} shards"), shards.len().to_string());
        }
        if let Some(odd) = shards.iter().find(|s| !is_plain(s)) {
            return bad("weight_map", "plain file names".into(), format!("{odd:?}"));
        }
        let place = |shard: &String| shards.binary_search(shard).expect("every shard was collected above");
        let weight_map = stored.weight_map.iter().map(|(tensor, shard)| (tensor.clone(), place(shard))).collect();
        Ok(ShardIndex { shards, weight_map })
    }
}

/// Whether `name` stays in its folder on every system.
fn is_plain(name: &str) -> bool {
    !name.is_empty() && !name.starts_with('.') && !name.contains(['/', '\\', ':', '\0'])
}
