//! GGUF headers, versions 2 and 3: metadata and the tensor table.
//!
//! The reader works on bytes it is given and copies what it keeps. It does not open files (that is
//! [`crate::checkpoint`]), look at weights, or know what any metadata key means (that is [`crate::config`] and the
//! tokenizer).

mod cursor;
mod ggml_type;
mod strings;
mod tensor;
mod value;

pub use ggml_type::GgmlType;
pub use strings::StringArray;
pub use tensor::GgufTensor;
pub use value::{GgufArray, GgufValue};

use crate::error::ModelError;
use crate::flaw::Flaw;
use crate::limits::{GGUF_KEY_BYTES, GGUF_METADATA_ENTRIES, TENSORS};
use cursor::Cursor;
use std::collections::HashMap;

/// A parsed header.
#[derive(Clone, Debug)]
pub struct Gguf {
    name: String,
    version: u32,
    alignment: u64,
    data_offset: u64,
    entries: Vec<(String, GgufValue)>,
    index: HashMap<String, usize>,
    tensors: Vec<GgufTensor>,
}

/// Alignment of tensor data where the file does not say.
const DEFAULT_ALIGNMENT: u64 = 32;
/// Fewest bytes of a metadata entry: empty key, type, one-byte value.
const SMALLEST_ENTRY: u64 = 8 + 4 + 1;
/// Fewest bytes of a tensor's entry: empty name, one dimension, type, offset.
const SMALLEST_TENSOR: u64 = 8 + 4 + 8 + 4 + 8;

impl Gguf {
    /// Parses the header of a whole file. `name` is how errors call it.
    ///
    /// The tensor table is checked against the file's length: every tensor lies inside it, aligned, in whole blocks,
    /// and overlaps no other. A number format that nothing here can compute with is not an error yet.
    ///
    /// # Errors
    /// [`ModelError::Corrupt`] with file, field, byte offset and the numbers.
    pub fn parse(bytes: &[u8], name: &str) -> Result<Gguf, ModelError> {
        let mut c = Cursor::new(name, bytes);
        let version = magic_and_version(&mut c)?;
        let tensors_at = c.pos();
        let tensor_count = c.u64("tensor count")?;
        let entry_count = c.count(GGUF_METADATA_ENTRIES, SMALLEST_ENTRY, "metadata count")?;
        c.check_count(tensors_at, tensor_count, TENSORS, SMALLEST_TENSOR, "tensor count")?;

        let mut gguf = Gguf {
            name: name.to_owned(),
            version,
            alignment: DEFAULT_ALIGNMENT,
            data_offset: 0,
            entries: Vec::with_capacity(entry_count as usize),
            index: HashMap::with_capacity(entry_count as usize),
            tensors: Vec::new(),
        };
        gguf.read_metadata(&mut c, entry_count)?;
        let table = tensor::read_table(&mut c, tensor_count)?;
        // The header ends inside the file and within its budget, so the next multiple of 65536 at most fits.
        gguf.data_offset = c.pos().next_multiple_of(gguf.alignment);
        gguf.tensors = tensor::place(&c, table, gguf.data_offset, gguf.alignment, bytes.len() as u64)?;
        Ok(gguf)
    }

    fn read_metadata(&mut self, c: &mut Cursor<'_>, count: u64) -> Result<(), ModelError> {
        let mut reader = value::ValueReader::new();
        for i in 0..count {
            let at = c.pos();
            let key = c.string(GGUF_KEY_BYTES, &format!("metadata key {i}"))?;
            let value_at = c.pos();
            let value = reader.value(c, key)?;
            if key == "general.alignment" {
                self.alignment = alignment(c, value_at, &value)?;
            }
            if self.index.insert(key.to_owned(), self.entries.len()).is_some() {
                return Err(c.error_at(at, key, Flaw::Duplicate));
            }
            self.entries.push((key.to_owned(), value));
        }
        Ok(())
    }

    /// How errors call the file.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Container version: 2 or 3.
    pub fn version(&self) -> u32 {
        self.version
    }

    /// Tensors start at multiples of this many bytes from [`Gguf::data_offset`].
    pub fn alignment(&self) -> u64 {
        self.alignment
    }

    /// First byte of the tensor data.
    pub fn data_offset(&self) -> u64 {
        self.data_offset
    }

    /// All metadata, in file order.
    pub fn metadata(&self) -> impl ExactSizeIterator<Item = (&str, &GgufValue)> {
        self.entries.iter().map(|(k, v)| (k.as_str(), v))
    }

    /// The metadata value of `key`.
    pub fn get(&self, key: &str) -> Option<&GgufValue> {
        self.index.get(key).map(|&i| &self.entries[i].1)
    }

    /// The value of `<architecture>.<suffix>`.
    pub fn arch_key(&self, suffix: &str) -> Option<&GgufValue> {
        self.get(&format!("{}.{suffix}", self.architecture()?))
    }

    /// `general.architecture`.
    pub fn architecture(&self) -> Option<&str> {
        self.get("general.architecture").and_then(GgufValue::as_str)
    }

    /// All tensors, in the table's order.
    pub fn tensors(&self) -> &[GgufTensor] {
        &self.tensors
    }
}

fn magic_and_version(c: &mut Cursor<'_>) -> Result<u32, ModelError> {
    let magic: [u8; 4] = c.array("magic")?;
    if &magic == b"FUGG" {
        return Err(c.error_at(0, "magic", Flaw::BigEndian));
    }
    if &magic != b"GGUF" {
        return Err(c.error_at(0, "magic", Flaw::Magic { found: magic, expected: "GGUF" }));
    }
    let at = c.pos();
    match c.u32("version")? {
        found @ (2 | 3) => Ok(found),
        // Big-endian files keep the magic's byte order and swap the numbers.
        found if matches!(found.swap_bytes(), 1..=3) => Err(c.error_at(at, "version", Flaw::BigEndian)),
        found => Err(c.error_at(at, "version", Flaw::Version { found })),
    }
}

fn alignment(c: &Cursor<'_>, at: u64, value: &GgufValue) -> Result<u64, ModelError> {
    let Some(found) = value.as_int().and_then(|v| u64::try_from(v).ok()) else {
        let flaw = Flaw::Unexpected { expected: "an unsigned integer".into(), found: value.type_name().into() };
        return Err(c.error_at(at, "general.alignment", flaw));
    };
    if !found.is_power_of_two() || found > 65_536 {
        return Err(c.error_at(at, "general.alignment", Flaw::Alignment { found }));
    }
    Ok(found)
}
