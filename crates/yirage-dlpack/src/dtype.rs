//! The element types that both sides have, under each protocol's name for them: one row a type. Whole numbers of 8 bytes
//! and elements of one byte, with which no graph computes, have names of their own.

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

/// Whole numbers of 8 bytes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Wide {
    I64,
    U64,
}

/// Elements of one byte.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Narrow {
    U8,
    /// Floats E4M3 of the OCP 8-bit floating point specification.
    F8E4M3,
}

impl Wide {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Wide::I64 => "int64",
            Wide::U64 => "uint64",
        }
    }
}

impl Narrow {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Narrow::U8 => "uint8",
            Narrow::F8E4M3 => FLOAT8_E4M3FN,
        }
    }
}

/// What `ml_dtypes` and PyTorch call 8-bit floats E4M3 without infinities.
pub(crate) const FLOAT8_E4M3FN: &str = "float8_e4m3fn";

/// The type of elements as it was found.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Element {
    /// One that graphs compute with.
    Known(DType),
    Wide(Wide),
    Narrow(Narrow),
    /// Any other, as its protocol says it.
    Other(String),
}

const SIGNED: u8 = 0;
const UNSIGNED: u8 = 1;
const FLOAT: u8 = 2;
const BFLOAT: u8 = 4;
const BOOL: u8 = 6;
const FLOAT8_E4M3FN_CODE: u8 = 10;

/// The words for DLPack's codes, before the number of bits; none for handles.
const KINDS: [&str; 7] = ["int", "uint", "float", "", "bfloat", "complex", "bool"];

/// Characters of `struct`, and NumPy's two for complex numbers, of types that nothing here computes with.
const FORMATS: [(&[u8], &str); 7] = [
    (b"b", "int8"),
    (b"h", "int16"),
    (b"H", "uint16"),
    (b"d", "float64"),
    (b"Zf", "complex64"),
    (b"Zd", "complex128"),
    (b"O", "object"),
];

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

pub(crate) fn of_dlpack(given: ElementType) -> Element {
    let is = |row: &&Row| given == ElementType { code: row.code, bits: row.bits, lanes: 1 };
    match (ROWS.iter().find(is), given) {
        (Some(row), _) => Element::Known(row.dtype),
        (None, ElementType { code: SIGNED, bits: 64, lanes: 1 }) => Element::Wide(Wide::I64),
        (None, ElementType { code: UNSIGNED, bits: 64, lanes: 1 }) => Element::Wide(Wide::U64),
        (None, ElementType { code: UNSIGNED, bits: 8, lanes: 1 }) => Element::Narrow(Narrow::U8),
        (None, ElementType { code: FLOAT8_E4M3FN_CODE, bits: 8, lanes: 1 }) => Element::Narrow(Narrow::F8E4M3),
        (None, ElementType { code, bits, lanes }) => Element::Other(match KINDS.get(usize::from(code)) {
            Some(kind) if lanes == 1 && !kind.is_empty() => format!("{kind}{bits}"),
            _ => format!("code {code}, {bits} bits, {lanes} lanes (DLPack)"),
        }),
    }
}

pub(crate) fn to_dlpack(dtype: DType) -> Option<ElementType> {
    let row = ROWS.iter().find(|row| row.dtype == dtype)?;
    Some(ElementType { code: row.code, bits: row.bits, lanes: 1 })
}

/// The type of a buffer's elements: what stands behind the mark of native order; `l` has as many bytes as the items.
pub(crate) fn of_format(format: &CStr, bytes: usize) -> Element {
    let text = format.to_bytes();
    let text = match text {
        [b'@' | b'=', rest @ ..] => rest,
        [b'<', rest @ ..] if cfg!(target_endian = "little") => rest,
        [b'>', rest @ ..] if cfg!(target_endian = "big") => rest,
        all => all,
    };
    match (text, bytes) {
        (b"l", 4) => Element::Known(DType::I32),
        (b"L", 4) => Element::Known(DType::U32),
        (b"l" | b"q", 8) => Element::Wide(Wide::I64),
        (b"L" | b"Q", 8) => Element::Wide(Wide::U64),
        (b"B", 1) => Element::Narrow(Narrow::U8),
        _ => {
            let is = |row: &&Row| row.format.is_some_and(|f| f.to_bytes() == text) && row.bits as usize == bytes * 8;
            let known = ROWS.iter().find(is).map(|row| Element::Known(row.dtype));
            let other = FORMATS.iter().find(|(of, _)| *of == text).map(|(_, name)| (*name).to_owned());
            known.unwrap_or_else(|| Element::Other(other.unwrap_or_else(|| format.to_string_lossy().into_owned())))
        }
    }
}

pub(crate) fn to_format(dtype: DType) -> Option<&'static CStr> {
    ROWS.iter().find(|row| row.dtype == dtype)?.format
}
