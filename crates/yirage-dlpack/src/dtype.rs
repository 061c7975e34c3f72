//! The element types that both sides have, under each protocol's name for them: one row a type.

use crate::abi::ElementType;
use std::ffi::CStr;
use yirage_ir::{DType, Format};

struct Row {
    dtype: DType,
    /// As NumPy and PyTorch call it.
    name: &'static str,
    /// DLPack's code and bits.
    code: u8,
    bits: u8,
    /// The character of `struct`; none where PEP 3118 has no such type.
    format: Option<&'static CStr>,
}

const SIGNED: u8 = 0;
const UNSIGNED: u8 = 1;
const FLOAT: u8 = 2;
const BFLOAT: u8 = 4;
const BOOL: u8 = 6;

const ROWS: [Row; 6] = [
    Row { dtype: DType::F32, name: "float32", code: FLOAT, bits: 32, format: Some(c"f") },
    Row { dtype: DType::Stored(Format::F16), name: "float16", code: FLOAT, bits: 16, format: Some(c"e") },
    Row { dtype: DType::Stored(Format::BF16), name: "bfloat16", code: BFLOAT, bits: 16, format: None },
    Row { dtype: DType::I32, name: "int32", code: SIGNED, bits: 32, format: Some(c"i") },
    Row { dtype: DType::U32, name: "uint32", code: UNSIGNED, bits: 32, format: Some(c"I") },
    Row { dtype: DType::Bool, name: "bool", code: BOOL, bits: 8, format: Some(c"?") },
];

/// The names that are taken, for messages.
pub(crate) fn names() -> String {
    ROWS.map(|row| row.name).join(", ")
}

/// The name that NumPy and PyTorch have for a type of elements; none where they have no such type.
pub fn name_of(dtype: DType) -> Option<&'static str> {
    ROWS.iter().find(|row| row.dtype == dtype).map(|row| row.name)
}

/// The type of elements that NumPy and PyTorch call `name`, with or without `torch.` before it; none where there is none
/// here.
pub fn parse(name: &str) -> Option<DType> {
    let name = name.strip_prefix("torch.").unwrap_or(name);
    ROWS.iter().find(|row| row.name == name).map(|row| row.dtype)
}

pub(crate) fn of_dlpack(given: ElementType) -> Option<DType> {
    let is = |row: &&Row| given == ElementType { code: row.code, bits: row.bits, lanes: 1 };
    ROWS.iter().find(is).map(|row| row.dtype)
}

pub(crate) fn to_dlpack(dtype: DType) -> Option<ElementType> {
    let row = ROWS.iter().find(|row| row.dtype == dtype)?;
    Some(ElementType { code: row.code, bits: row.bits, lanes: 1 })
}

/// The type of a buffer's elements: what stands behind the mark of native order, and `l` where that has four bytes.
pub(crate) fn of_format(format: &CStr, bytes: usize) -> Option<DType> {
    let text = format.to_bytes();
    let text = match text {
        [b'@' | b'=', rest @ ..] => rest,
        [b'<', rest @ ..] if cfg!(target_endian = "little") => rest,
        [b'>', rest @ ..] if cfg!(target_endian = "big") => rest,
        all => all,
    };
    match (text, bytes) {
        (b"l", 4) => Some(DType::I32),
        (b"L", 4) => Some(DType::U32),
        _ => {
            let is = |row: &&Row| row.format.is_some_and(|f| f.to_bytes() == text) && row.bits as usize == bytes * 8;
            ROWS.iter().find(is).map(|row| row.dtype)
        }
    }
}

pub(crate) fn to_format(dtype: DType) -> Option<&'static CStr> {
    ROWS.iter().find(|row| row.dtype == dtype)?.format
}
