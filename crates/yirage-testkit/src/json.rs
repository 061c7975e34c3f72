//! Reading golden files.

use serde_json::Value;
use std::path::Path;

/// A JSON file.
#[must_use]
pub fn read(path: &Path) -> Value {
    let text = std::fs::read(path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
    serde_json::from_slice(&text).unwrap_or_else(|e| panic!("{}: {e}", path.display()))
}

/// A list of token ids.
#[must_use]
pub fn ids(list: &Value) -> Vec<u32> {
    list.as_array().unwrap().iter().map(|x| u32::try_from(x.as_u64().unwrap()).unwrap()).collect()
}

/// A list of numbers.
#[must_use]
pub fn floats(list: &Value) -> Vec<f64> {
    list.as_array().unwrap().iter().map(|x| x.as_f64().unwrap()).collect()
}
