//! What can go wrong when a model is read: always the caller's file, never a panic.
//!
//! This module knows nothing of exit codes; the command line maps [`ModelError::Unsupported`] and
//! [`ModelError::UnsupportedFormat`] to its "not supported here" code.

use crate::flaw::Flaw;
use std::io;
use std::path::PathBuf;
use thiserror::Error;
use yirage_mmap::{FileError, MapError};

/// Why a model could not be read.
#[derive(Debug, Error)]
pub enum ModelError {
    /// A file could not be mapped.
    #[error(transparent)]
    Map(#[from] MapError),
    /// A file could not be read, or is none.
    #[error(transparent)]
    File(#[from] FileError),
    /// A folder could not be read.
    #[error("{}: {source}; check the folder and its permissions", path.display())]
    Folder {
        /// The folder.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// The path holds nothing this engine can load.
    #[error("{}: not a model: {why}", path.display())]
    NotAModel {
        /// The path asked for.
        path: PathBuf,
        /// What was looked for.
        why: String,
    },
    /// The file's content contradicts its format or itself.
    #[error(transparent)]
    Corrupt(#[from] Box<Corrupt>),
    /// A JSON file does not parse.
    #[error("{file}: line {line}, column {column}: {why}; mend the JSON or download the file again")]
    Json {
        /// The file.
        file: String,
        /// Line, from 1.
        line: usize,
        /// Column, from 1.
        column: usize,
        /// What the parser said.
        why: String,
    },
    /// A shard of a split model is absent.
    #[error("{}: shard is missing, though {named_by} names it; download it into the same folder", path.display())]
    MissingShard {
        /// Where the shard should be.
        path: PathBuf,
        /// What names it.
        named_by: String,
    },
    /// A tensor that is named somewhere is in no file.
    #[error("{file}: tensor {tensor:?} is missing; the file is incomplete or of another model: download it again")]
    MissingTensor {
        /// The file that should hold it.
        file: String,
        /// The tensor.
        tensor: String,
    },
    /// The file has tensors that the model never reads: its configuration is not the file's.
    #[error(transparent)]
    UnusedTensors(Box<UnusedTensors>),
    /// A tensor is stored in a number format that this engine cannot compute with.
    #[error(
        "{file}: tensor {tensor:?} is stored as {dtype}, which is not supported; \
             use a file with F32, F16, BF16, Q4_0 to Q8_0, Q2_K to Q6_K, IQ1 to IQ4, TQ1_0, TQ2_0, NVFP4 or MXFP4 weights"
    )]
    UnsupportedFormat {
        /// The file.
        file: String,
        /// The tensor.
        tensor: String,
        /// The format's name, with its number where it has one.
        dtype: String,
    },
    /// A key of the configuration is absent, of another type, or out of range.
    #[error("{file}: {key}: expected {expected}, found {found}; correct the file or use the model's original one")]
    Config {
        /// The file.
        file: String,
        /// The key, with dots for nesting.
        key: String,
        /// What is needed.
        expected: String,
        /// What is there.
        found: String,
    },
    /// The model is well-formed, but needs something that this engine does not have.
    #[error("{what} is not supported: {why}")]
    Unsupported {
        /// The feature, by the name its users know.
        what: String,
        /// Where it was found, and what to use instead.
        why: String,
    },
}

impl ModelError {
    /// The error of a JSON parser, about `file`.
    pub(crate) fn json(file: &str, e: &serde_json::Error) -> ModelError {
        // The message ends in the position, which has fields of its own here.
        let text = e.to_string();
        let why = text.rsplit_once(" at line ").map_or(text.as_str(), |(why, _)| why).to_owned();
        ModelError::Json { file: file.to_owned(), line: e.line(), column: e.column(), why }
    }
}

/// Tensors that a model never reads.
#[derive(Clone, PartialEq, Eq, Debug, Error)]
#[error(
    "{file}: {count} tensors would never be read, among them {}: {why}, or use the model's original file",
    quoted(names)
)]
pub struct UnusedTensors {
    /// The file.
    pub file: String,
    /// How many.
    pub count: usize,
    /// The names of some.
    pub names: Vec<String>,
    /// What is probably wrong.
    pub why: String,
}

fn quoted(names: &[String]) -> String {
    names.iter().map(|name| format!("{name:?}")).collect::<Vec<_>>().join(", ")
}

/// Where a file is wrong, and how.
#[derive(Clone, PartialEq, Eq, Debug, Error)]
#[error("{file}: {field} at byte {offset}: {flaw}; {}", flaw.remedy())]
pub struct Corrupt {
    /// The file.
    pub file: String,
    /// The field of the format, or the key or tensor concerned.
    pub field: String,
    /// Bytes from the start of the file.
    pub offset: u64,
    /// What is wrong.
    pub flaw: Flaw,
}

impl Corrupt {
    /// The error for `flaw` in `field` at `offset` of `file`.
    pub(crate) fn at(file: &str, field: impl Into<String>, offset: u64, flaw: Flaw) -> ModelError {
        ModelError::Corrupt(Box::new(Corrupt { file: file.to_owned(), field: field.into(), offset, flaw }))
    }
}
