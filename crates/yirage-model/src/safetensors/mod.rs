//! safetensors headers and shard indices.
//!
//! Own reading instead of the `safetensors` crate, whose errors name neither tensor nor offset and whose header goes
//! through unbounded collections. The rules are the same and as strict: offsets contiguous from zero to the end of the
//! file, sizes that follow from shape and type.
//!
//! Opens no files (that is [`crate::checkpoint`]) and knows no tensor's meaning.

mod dtype;
mod header;
mod index;

pub use dtype::SafeDtype;
pub use index::ShardIndex;

use crate::error::{Corrupt, ModelError};
use crate::flaw::Flaw;
use crate::limits::SAFETENSORS_HEADER_BYTES;
use header::SafetensorsHeader;
use std::collections::BTreeMap;
use std::ops::Range;

/// A parsed header.
#[derive(Clone, Debug)]
pub struct SafeTensors {
    name: String,
    data_offset: u64,
    metadata: BTreeMap<String, String>,
    tensors: Vec<SafeTensor>,
}

/// A tensor as the header lists it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct SafeTensor {
    /// Its name, unique in the file.
    pub name: String,
    /// Dimensions, outermost first; empty for a scalar. A dimension may be zero.
    pub shape: Vec<u64>,
    /// Element type.
    pub dtype: SafeDtype,
    /// The bytes of its data in the file. Nothing is promised about their alignment.
    pub range: Range<u64>,
}

/// Bytes of the length field before the header.
const PREFIX: u64 = 8;

impl SafeTensors {
    /// Parses the header of a whole file. `name` is how errors call it.
    ///
    /// # Errors
    /// [`ModelError::Corrupt`] with file, field or tensor, byte offset and the numbers.
    pub fn parse(bytes: &[u8], name: &str) -> Result<SafeTensors, ModelError> {
        let len = bytes.len() as u64;
        let (text, data_offset) = header_text(bytes, name)?;
        let header: SafetensorsHeader = serde_json::from_slice(text).map_err(|e| header_error(text, name, &e))?;
        let mut tensors = Vec::with_capacity(header.tensors.len());
        for (tensor, entry) in header.tensors {
            let (begin, end) = entry.data_offsets;
            let error = |flaw| Corrupt::at(name, format!("tensor {tensor:?}"), data_offset.saturating_add(begin), flaw);
            let range = data_offset.saturating_add(begin)..data_offset.saturating_add(end);
            if begin > end {
                let found = format!("{begin} to {end}");
                return Err(error(Flaw::Unexpected { expected: "ascending data offsets".into(), found }));
            }
            if range.end > len {
                return Err(error(Flaw::PastEnd { start: range.start, end: range.end, len }));
            }
            let dtype = SafeDtype(entry.dtype);
            check_size(&entry.shape.0, &dtype, end - begin).map_err(error)?;
            tensors.push(SafeTensor { name: tensor, shape: entry.shape.0, dtype, range });
        }
        tensors.sort_by_key(|t| (t.range.start, t.range.end));
        check_contiguous(&tensors, name, data_offset, len)?;
        Ok(SafeTensors { name: name.to_owned(), data_offset, metadata: header.metadata, tensors })
    }

    /// How errors call the file.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// First byte of the tensor data.
    pub fn data_offset(&self) -> u64 {
        self.data_offset
    }

    /// The `__metadata__` table.
    pub fn metadata(&self) -> &BTreeMap<String, String> {
        &self.metadata
    }

    /// All tensors, in the order of their data.
    pub fn tensors(&self) -> &[SafeTensor] {
        &self.tensors
    }
}

/// The header's JSON text, and the offset of the data behind it.
fn header_text<'a>(bytes: &'a [u8], name: &str) -> Result<(&'a [u8], u64), ModelError> {
    let left = bytes.len() as u64;
    let Some((prefix, rest)) = bytes.split_first_chunk::<8>() else {
        return Err(Corrupt::at(name, "header length", 0, Flaw::Truncated { needed: PREFIX, left }));
    };
    let length = u64::from_le_bytes(*prefix);
    if length > SAFETENSORS_HEADER_BYTES {
        let over = Flaw::OverBudget { found: length, limit: SAFETENSORS_HEADER_BYTES };
        return Err(Corrupt::at(name, "header length", 0, over));
    }
    match rest.get(..length as usize) {
        Some(text) => Ok((text, PREFIX + length)),
        None => {
            let flaw = Flaw::Truncated { needed: length, left: rest.len() as u64 };
            Err(Corrupt::at(name, "header", PREFIX, flaw))
        }
    }
}

/// Where in the file the parser stopped.
fn header_error(text: &[u8], name: &str, e: &serde_json::Error) -> ModelError {
    let line_start: usize =
        text.split_inclusive(|&b| b == b'\n').take(e.line().saturating_sub(1)).map(<[u8]>::len).sum();
    let offset = PREFIX + (line_start + e.column().saturating_sub(1)) as u64;
    Corrupt::at(name, "header", offset, Flaw::Header { why: e.to_string() })
}

fn check_size(shape: &[u64], dtype: &SafeDtype, found: u64) -> Result<(), Flaw> {
    let overflow = || Flaw::SizeOverflow { shape: shape.to_vec() };
    let elements = shape.iter().try_fold(1u64, |n, &d| n.checked_mul(d)).ok_or_else(overflow)?;
    let Some(bits) = dtype.bits() else { return Ok(()) };
    let total = elements.checked_mul(bits).ok_or_else(overflow)?;
    if !total.is_multiple_of(8) {
        let block = if bits == 4 { 2 } else { 4 };
        return Err(Flaw::PartialBlock { row: elements, format: dtype.0.clone(), block });
    }
    let expected = total / 8;
    if found == expected { Ok(()) } else { Err(Flaw::SizeMismatch { found, expected }) }
}

/// Every byte behind the header belongs to exactly one tensor.
fn check_contiguous(tensors: &[SafeTensor], name: &str, data: u64, len: u64) -> Result<(), ModelError> {
    let mut expected = data;
    let mut before = "the header";
    for t in tensors {
        let start = t.range.start;
        let flaw = match start.cmp(&expected) {
            std::cmp::Ordering::Less => Flaw::Overlap { start, other: before.to_owned(), other_end: expected },
            std::cmp::Ordering::Greater => Flaw::Hole { start, expected },
            std::cmp::Ordering::Equal => {
                expected = t.range.end;
                before = &t.name;
                continue;
            }
        };
        return Err(Corrupt::at(name, format!("tensor {:?}", t.name), start, flaw));
    }
    if expected != len {
        let flaw = Flaw::SizeMismatch { found: len, expected };
        return Err(Corrupt::at(name, "file length", expected, flaw));
    }
    Ok(())
}
