//! The element types that both sides have, under each protocol's name for them: one row a type. Those with which no graph
//! computes are rows as well: they are copied, and some are read and written number by number.

use crate::abi::DlpackDType;
use std::ffi::CStr;
use yirage_ir::{DType, Format};

struct ArrayDTypeRow {
    element: ArrayDType,
    /// As NumPy and PyTorch call it.
    name: &'static str,
    /// DLPack's code and bits.
    code: u8,
    bits: u8,
    /// The character of `struct`; none where PEP 3118 has no such type.
    format: Option<&'static CStr>,
}

/// Numbers with which no graph computes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum StorageDType {
    I8,
    I16,
    I64,
    U8,
    U16,
    U64,
    F64,
    /// Floats E4M3 of the OCP 8-bit floating point specification.
    F8E4M3,
}

/// What `ml_dtypes` and PyTorch call 8-bit floats E4M3 without infinities.
pub(crate) const FLOAT8_E4M3FN: &str = "float8_e4m3fn";

/// A type of elements that has a row.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum ArrayDType {
    /// One that graphs compute with.
    Known(DType),
    Stored(StorageDType),
}

/// The type of elements as it was found.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum ForeignDType {
    Is(ArrayDType),
    /// One without a row, as its protocol says it.
    Other(String),
}

impl ArrayDType {
    fn row(self) -> &'static ArrayDTypeRow {
        let Some(row) = ROWS.iter().find(|row| row.element == self) else {
            unreachable!("{self:?} has no row: plain types of graphs and stored numbers have one each")
        };
        row
    }

    /// As NumPy and PyTorch call it.
    pub(crate) fn name(self) -> &'static str {
        self.row().name
    }

    /// Bytes of one.
    pub(crate) fn bytes(self) -> usize {
        usize::from(self.row().bits / 8)
    }

    pub(crate) fn dlpack(self) -> DlpackDType {
        let ArrayDTypeRow { code, bits, .. } = *self.row();
        DlpackDType { code, bits, lanes: 1 }
    }

    /// The character of `struct`; none where PEP 3118 has no such type.
    pub(crate) fn format(self) -> Option<&'static CStr> {
        self.row().format
    }

    /// The type that NumPy and PyTorch call `name`, with or without `torch.` before it; Mirage's `fp8_e4m3` as well.
    pub(crate) fn named(name: &str) -> Option<ArrayDType> {
        let name = name.strip_prefix("torch.").unwrap_or(name);
        let name = if name == "fp8_e4m3" { FLOAT8_E4M3FN } else { name };
        ROWS.iter().find(|row| row.name == name).map(|row| row.element)
    }
}

const SIGNED: u8 = 0;
const UNSIGNED: u8 = 1;
const FLOAT: u8 = 2;
const BFLOAT: u8 = 4;
const BOOL: u8 = 6;
const FLOAT8_E4M3FN_CODE: u8 = 10;

/// The words for DLPack's codes, before the number of bits; none for handles.
const KINDS: [&str; 7] = ["int", "uint", "float", "", "bfloat", "complex", "bool"];

/// The characters of types that nothing here takes: NumPy's two for complex numbers, and `struct`'s for objects.
const FORMATS: [(&[u8], &str); 3] = [(b"Zf", "complex64"), (b"Zd", "complex128"), (b"O", "object")];

const fn row(
    element: ArrayDType,
    name: &'static str,
    code: u8,
    bits: u8,
    format: Option<&'static CStr>,
) -> ArrayDTypeRow {
    ArrayDTypeRow { element, name, code, bits, format }
}

static ROWS: [ArrayDTypeRow; 14] = [
    row(ArrayDType::Known(DType::F32), "float32", FLOAT, 32, Some(c"f")),
    row(ArrayDType::Known(DType::Stored(Format::F16)), "float16", FLOAT, 16, Some(c"e")),
    row(ArrayDType::Known(DType::Stored(Format::BF16)), "bfloat16", BFLOAT, 16, None),
    row(ArrayDType::Known(DType::I32), "int32", SIGNED, 32, Some(c"i")),
    row(ArrayDType::Known(DType::U32), "uint32", UNSIGNED, 32, Some(c"I")),
    row(ArrayDType::Known(DType::Bool), "bool", BOOL, 8, Some(c"?")),
    row(ArrayDType::Stored(StorageDType::I64), "int64", SIGNED, 64, Some(c"q")),
    row(ArrayDType::Stored(StorageDType::U64), "uint64", UNSIGNED, 64, Some(c"Q")),
    row(ArrayDType::Stored(StorageDType::F64), "float64", FLOAT, 64, Some(c"d")),
    row(ArrayDType::Stored(StorageDType::I8), "int8", SIGNED, 8, Some(c"b")),
    row(ArrayDType::Stored(StorageDType::U8), "uint8", UNSIGNED, 8, Some(c"B")),
    row(ArrayDType::Stored(StorageDType::I16), "int16", SIGNED, 16, Some(c"h")),
    row(ArrayDType::Stored(StorageDType::U16), "uint16", UNSIGNED, 16, Some(c"H")),
    row(ArrayDType::Stored(StorageDType::F8E4M3), FLOAT8_E4M3FN, FLOAT8_E4M3FN_CODE, 8, None),
];

fn computed() -> impl Iterator<Item = (DType, &'static ArrayDTypeRow)> {
    ROWS.iter().filter_map(|row| match row.element {
        ArrayDType::Known(dtype) => Some((dtype, row)),
        ArrayDType::Stored(_) => None,
    })
}

/// The names of the types that graphs compute with, for messages.
pub(crate) fn names() -> String {
    computed().map(|(_, row)| row.name).collect::<Vec<_>>().join(", ")
}

/// The names of all types that are stored, for messages.
pub(crate) fn stored_names() -> String {
    ROWS.iter().map(|row| row.name).collect::<Vec<_>>().join(", ")
}

/// The name that NumPy and PyTorch have for a type of elements; none where they have no such type.
pub fn name_of(dtype: DType) -> Option<&'static str> {
    computed().find(|(of, _)| *of == dtype).map(|(_, row)| row.name)
}

/// The type of elements that NumPy and PyTorch call `name`, with or without `torch.` before it; none where graphs compute with
/// no such type.
pub fn parse(name: &str) -> Option<DType> {
    match ArrayDType::named(name)? {
        ArrayDType::Known(dtype) => Some(dtype),
        ArrayDType::Stored(_) => None,
    }
}

pub(crate) fn of_dlpack(given: DlpackDType) -> ForeignDType {
    let is = |row: &&ArrayDTypeRow| given == DlpackDType { code: row.code, bits: row.bits, lanes: 1 };
    if let Some(row) = ROWS.iter().find(is) {
        return ForeignDType::Is(row.element);
    }
    let DlpackDType { code, bits, lanes } = given;
    ForeignDType::Other(match KINDS.get(usize::from(code)) {
        Some(kind) if lanes == 1 && !kind.is_empty() => format!("{kind}{bits}"),
        _ => format!("code {code}, {bits} bits, {lanes} lanes (DLPack)"),
    })
}

/// The type of a buffer's elements: what stands behind the mark of native order; `l` has as many bytes as the items.
pub(crate) fn of_format(format: &CStr, bytes: usize) -> ForeignDType {
    let text = format.to_bytes();
    let text = match text {
        [b'@' | b'=', rest @ ..] => rest,
        [b'<', rest @ ..] if cfg!(target_endian = "little") => rest,
        [b'>', rest @ ..] if cfg!(target_endian = "big") => rest,
        all => all,
    };
    let text: &[u8] = match (text, bytes) {
        (b"l", 4) => b"i",
        (b"L", 4) => b"I",
        (b"l", 8) => b"q",
        (b"L", 8) => b"Q",
        _ => text,
    };
    let is =
        |row: &&ArrayDTypeRow| row.format.is_some_and(|f| f.to_bytes() == text) && usize::from(row.bits) == bytes * 8;
    if let Some(row) = ROWS.iter().find(is) {
        return ForeignDType::Is(row.element);
    }
    let other = FORMATS.iter().find(|(of, _)| *of == text).map(|(_, name)| (*name).to_owned());
    ForeignDType::Other(other.unwrap_or_else(|| format.to_string_lossy().into_owned()))
}
