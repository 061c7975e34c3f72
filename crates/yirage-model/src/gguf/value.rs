//! Metadata values: the thirteen types of the format.

use super::cursor::Cursor;
use super::strings::StringArray;
use crate::error::ModelError;
use crate::flaw::Flaw;
use crate::limits::{GGUF_ARRAY_DEPTH, GGUF_ARRAY_ELEMENTS, GGUF_NESTED_ARRAYS, GGUF_STRING_BYTES};

/// One metadata value.
#[derive(Clone, PartialEq, Debug)]
#[allow(missing_docs)]
pub enum GgufValue {
    U8(u8),
    I8(i8),
    U16(u16),
    I16(i16),
    U32(u32),
    I32(i32),
    F32(f32),
    Bool(bool),
    String(String),
    Array(GgufArray),
    U64(u64),
    I64(i64),
    F64(f64),
}

/// A metadata array: the elements of one type, packed.
#[derive(Clone, PartialEq, Debug)]
#[allow(missing_docs)]
pub enum GgufArray {
    U8(Vec<u8>),
    I8(Vec<i8>),
    U16(Vec<u16>),
    I16(Vec<i16>),
    U32(Vec<u32>),
    I32(Vec<i32>),
    F32(Vec<f32>),
    Bool(Vec<bool>),
    String(StringArray),
    Array(Vec<GgufArray>),
    U64(Vec<u64>),
    I64(Vec<i64>),
    F64(Vec<f64>),
}

impl GgufValue {
    /// The name of the value's type, as error messages show it.
    pub fn type_name(&self) -> &'static str {
        match self {
            GgufValue::U8(_) => "u8",
            GgufValue::I8(_) => "i8",
            GgufValue::U16(_) => "u16",
            GgufValue::I16(_) => "i16",
            GgufValue::U32(_) => "u32",
            GgufValue::I32(_) => "i32",
            GgufValue::F32(_) => "f32",
            GgufValue::Bool(_) => "bool",
            GgufValue::String(_) => "string",
            GgufValue::Array(a) => a.type_name(),
            GgufValue::U64(_) => "u64",
            GgufValue::I64(_) => "i64",
            GgufValue::F64(_) => "f64",
        }
    }

    /// Any integer type, as `i128` (which holds them all).
    pub fn as_int(&self) -> Option<i128> {
        match *self {
            GgufValue::U8(v) => Some(v.into()),
            GgufValue::I8(v) => Some(v.into()),
            GgufValue::U16(v) => Some(v.into()),
            GgufValue::I16(v) => Some(v.into()),
            GgufValue::U32(v) => Some(v.into()),
            GgufValue::I32(v) => Some(v.into()),
            GgufValue::U64(v) => Some(v.into()),
            GgufValue::I64(v) => Some(v.into()),
            _ => None,
        }
    }

    /// Any integer type whose value fits `u32`.
    pub fn as_u32(&self) -> Option<u32> {
        self.as_int().and_then(|v| u32::try_from(v).ok())
    }

    /// Either float type. An `f32` gives the shortest decimal that reads back as it: converters write `1e-6` as `f32`,
    /// and the model means `1e-6`.
    pub fn as_f64(&self) -> Option<f64> {
        match *self {
            GgufValue::F32(v) => Some(shortest(v)),
            GgufValue::F64(v) => Some(v),
            _ => None,
        }
    }

    /// A boolean.
    pub fn as_bool(&self) -> Option<bool> {
        match *self {
            GgufValue::Bool(v) => Some(v),
            _ => None,
        }
    }

    /// A string.
    pub fn as_str(&self) -> Option<&str> {
        match self {
            GgufValue::String(v) => Some(v),
            _ => None,
        }
    }

    /// An array of strings.
    pub fn as_strings(&self) -> Option<&StringArray> {
        match self {
            GgufValue::Array(GgufArray::String(v)) => Some(v),
            _ => None,
        }
    }

    /// Any array.
    pub fn as_array(&self) -> Option<&GgufArray> {
        match self {
            GgufValue::Array(v) => Some(v),
            _ => None,
        }
    }
}

fn shortest(v: f32) -> f64 {
    v.to_string().parse().unwrap_or(f64::from(v))
}

impl GgufArray {
    /// Number of elements (of the outermost level).
    pub fn len(&self) -> usize {
        match self {
            GgufArray::U8(v) => v.len(),
            GgufArray::I8(v) => v.len(),
            GgufArray::U16(v) => v.len(),
            GgufArray::I16(v) => v.len(),
            GgufArray::U32(v) => v.len(),
            GgufArray::I32(v) => v.len(),
            GgufArray::F32(v) => v.len(),
            GgufArray::Bool(v) => v.len(),
            GgufArray::String(v) => v.len(),
            GgufArray::Array(v) => v.len(),
            GgufArray::U64(v) => v.len(),
            GgufArray::I64(v) => v.len(),
            GgufArray::F64(v) => v.len(),
        }
    }

    /// Whether there are no elements.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The name of the array's type, as error messages show it.
    pub fn type_name(&self) -> &'static str {
        match self {
            GgufArray::U8(_) => "array of u8",
            GgufArray::I8(_) => "array of i8",
            GgufArray::U16(_) => "array of u16",
            GgufArray::I16(_) => "array of i16",
            GgufArray::U32(_) => "array of u32",
            GgufArray::I32(_) => "array of i32",
            GgufArray::F32(_) => "array of f32",
            GgufArray::Bool(_) => "array of bool",
            GgufArray::String(_) => "array of string",
            GgufArray::Array(_) => "array of array",
            GgufArray::U64(_) => "array of u64",
            GgufArray::I64(_) => "array of i64",
            GgufArray::F64(_) => "array of f64",
        }
    }

    /// Element `i` as a value of its own; `None` past the end.
    pub fn get(&self, i: usize) -> Option<GgufValue> {
        match self {
            GgufArray::U8(v) => v.get(i).map(|&x| GgufValue::U8(x)),
            GgufArray::I8(v) => v.get(i).map(|&x| GgufValue::I8(x)),
            GgufArray::U16(v) => v.get(i).map(|&x| GgufValue::U16(x)),
            GgufArray::I16(v) => v.get(i).map(|&x| GgufValue::I16(x)),
            GgufArray::U32(v) => v.get(i).map(|&x| GgufValue::U32(x)),
            GgufArray::I32(v) => v.get(i).map(|&x| GgufValue::I32(x)),
            GgufArray::F32(v) => v.get(i).map(|&x| GgufValue::F32(x)),
            GgufArray::Bool(v) => v.get(i).map(|&x| GgufValue::Bool(x)),
            GgufArray::String(v) => v.get(i).map(|x| GgufValue::String(x.to_owned())),
            GgufArray::Array(v) => v.get(i).map(|x| GgufValue::Array(x.clone())),
            GgufArray::U64(v) => v.get(i).map(|&x| GgufValue::U64(x)),
            GgufArray::I64(v) => v.get(i).map(|&x| GgufValue::I64(x)),
            GgufArray::F64(v) => v.get(i).map(|&x| GgufValue::F64(x)),
        }
    }

    /// The scores of a vocabulary and the like, without copying.
    pub fn as_f32s(&self) -> Option<&[f32]> {
        match self {
            GgufArray::F32(v) => Some(v),
            _ => None,
        }
    }

    /// The token types of a vocabulary and the like, without copying.
    pub fn as_i32s(&self) -> Option<&[i32]> {
        match self {
            GgufArray::I32(v) => Some(v),
            _ => None,
        }
    }
}

/// Reads values; counts nested arrays over the whole file.
pub(super) struct ValueReader {
    nested: u64,
}

impl ValueReader {
    pub(super) fn new() -> ValueReader {
        ValueReader { nested: 0 }
    }

    /// The value of `key`: type number, then content.
    pub(super) fn value(&mut self, c: &mut Cursor<'_>, key: &str) -> Result<GgufValue, ModelError> {
        let at = c.pos();
        Ok(match c.u32(key)? {
            0 => GgufValue::U8(u8::from_le_bytes(c.array(key)?)),
            1 => GgufValue::I8(i8::from_le_bytes(c.array(key)?)),
            2 => GgufValue::U16(u16::from_le_bytes(c.array(key)?)),
            3 => GgufValue::I16(i16::from_le_bytes(c.array(key)?)),
            4 => GgufValue::U32(c.u32(key)?),
            5 => GgufValue::I32(i32::from_le_bytes(c.array(key)?)),
            6 => GgufValue::F32(f32::from_le_bytes(c.array(key)?)),
            7 => GgufValue::Bool(bools(c, 1, key)?[0]),
            8 => GgufValue::String(c.string(GGUF_STRING_BYTES, key)?.to_owned()),
            9 => GgufValue::Array(self.array(c, key, 1)?),
            10 => GgufValue::U64(c.u64(key)?),
            11 => GgufValue::I64(i64::from_le_bytes(c.array(key)?)),
            12 => GgufValue::F64(f64::from_le_bytes(c.array(key)?)),
            found => return Err(c.error_at(at, key, Flaw::ValueType { found })),
        })
    }

    fn array(&mut self, c: &mut Cursor<'_>, key: &str, depth: u32) -> Result<GgufArray, ModelError> {
        let at = c.pos();
        if depth > GGUF_ARRAY_DEPTH {
            let over = Flaw::OverBudget { found: depth.into(), limit: GGUF_ARRAY_DEPTH.into() };
            return Err(c.error_at(at, &format!("{key} (depth of arrays)"), over));
        }
        let ty = c.u32(key)?;
        let n = c.count(GGUF_ARRAY_ELEMENTS, smallest(ty), key)?;
        Ok(match ty {
            0 => GgufArray::U8(c.take(n, key)?.to_vec()),
            1 => GgufArray::I8(numbers(c, n, key, i8::from_le_bytes)?),
            2 => GgufArray::U16(numbers(c, n, key, u16::from_le_bytes)?),
            3 => GgufArray::I16(numbers(c, n, key, i16::from_le_bytes)?),
            4 => GgufArray::U32(numbers(c, n, key, u32::from_le_bytes)?),
            5 => GgufArray::I32(numbers(c, n, key, i32::from_le_bytes)?),
            6 => GgufArray::F32(numbers(c, n, key, f32::from_le_bytes)?),
            7 => GgufArray::Bool(bools(c, n, key)?),
            8 => GgufArray::String(StringArray::read(c, n, key)?),
            9 => GgufArray::Array(self.arrays(c, n, key, depth)?),
            10 => GgufArray::U64(numbers(c, n, key, u64::from_le_bytes)?),
            11 => GgufArray::I64(numbers(c, n, key, i64::from_le_bytes)?),
            12 => GgufArray::F64(numbers(c, n, key, f64::from_le_bytes)?),
            found => return Err(c.error_at(at, key, Flaw::ValueType { found })),
        })
    }

    fn arrays(&mut self, c: &mut Cursor<'_>, n: u64, key: &str, depth: u32) -> Result<Vec<GgufArray>, ModelError> {
        self.nested = self.nested.saturating_add(n);
        if self.nested > GGUF_NESTED_ARRAYS {
            let over = Flaw::OverBudget { found: self.nested, limit: GGUF_NESTED_ARRAYS };
            return Err(c.error(&format!("{key} (arrays inside arrays)"), over));
        }
        (0..n).map(|_| self.array(c, key, depth + 1)).collect()
    }
}

/// The fewest bytes an array element of type number `ty` takes; 0 for unknown types.
fn smallest(ty: u32) -> u64 {
    match ty {
        0 | 1 | 7 => 1,
        2 | 3 => 2,
        4..=6 => 4,
        8 | 10..=12 => 8,
        9 => 12,
        _ => 0,
    }
}

fn numbers<T, const N: usize>(
    c: &mut Cursor<'_>,
    n: u64,
    key: &str,
    read: fn([u8; N]) -> T,
) -> Result<Vec<T>, ModelError> {
    // n <= GGUF_ARRAY_ELEMENTS, so the product cannot overflow.
    let bytes = c.take(n * N as u64, key)?;
    Ok(bytes.as_chunks::<N>().0.iter().map(|&chunk| read(chunk)).collect())
}

fn bools(c: &mut Cursor<'_>, n: u64, key: &str) -> Result<Vec<bool>, ModelError> {
    let at = c.pos();
    let bytes = c.take(n, key)?;
    if let Some(i) = bytes.iter().position(|&b| b > 1) {
        return Err(c.error_at(at + i as u64, key, Flaw::Bool { found: bytes[i] }));
    }
    Ok(bytes.iter().map(|&b| b == 1).collect())
}
