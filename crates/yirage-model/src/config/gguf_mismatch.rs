//! The error for metadata of a type that was not expected.

use crate::error::ModelError;
use crate::gguf::{Gguf, GgufValue};

/// The error for a metadata value of another type than `expected`.
pub(super) fn mismatch(gguf: &Gguf, key: &str, expected: &str, found: &GgufValue) -> ModelError {
    let found = match found {
        GgufValue::Array(a) => format!("{} of {}", a.type_name(), a.len()),
        other => format!("{} {other:?}", other.type_name()).chars().take(200).collect(),
    };
    ModelError::Config { file: gguf.name().to_owned(), key: key.to_owned(), expected: expected.to_owned(), found }
}
