//! A GGUF header, byte by byte: version 3, entries in the order in which they were given.

use yirage_model::gguf::{GgmlType, GgufArray, GgufValue};

/// What the table of tensors says of one.
pub(crate) struct TensorEntry<'a> {
    pub(crate) name: &'a str,
    /// Dimensions, outermost first.
    pub(crate) shape: &'a [u64],
    pub(crate) ty: GgmlType,
    /// Bytes of its data.
    pub(crate) bytes: u64,
}

/// The header up to the first tensor, padded to `alignment`; tensors lie behind it in the order given, each padded.
pub(crate) fn header(entries: &[(&str, &GgufValue)], tensors: &[TensorEntry<'_>], alignment: u64) -> Vec<u8> {
    let mut out = Vec::new();
    out.extend_from_slice(b"GGUF");
    out.extend_from_slice(&3u32.to_le_bytes());
    put_len(&mut out, tensors.len());
    put_len(&mut out, entries.len());
    for (key, value) in entries {
        put_text(&mut out, key);
        put_value(&mut out, value);
    }
    let mut offset = 0u64;
    for tensor in tensors {
        put_text(&mut out, tensor.name);
        out.extend_from_slice(&(tensor.shape.len() as u32).to_le_bytes());
        tensor.shape.iter().rev().for_each(|dim| out.extend_from_slice(&dim.to_le_bytes()));
        out.extend_from_slice(&tensor.ty.0.to_le_bytes());
        out.extend_from_slice(&offset.to_le_bytes());
        offset += tensor.bytes.next_multiple_of(alignment);
    }
    out.resize((out.len() as u64).next_multiple_of(alignment) as usize, 0);
    out
}

fn put_len(out: &mut Vec<u8>, len: usize) {
    out.extend_from_slice(&(len as u64).to_le_bytes());
}

fn put_text(out: &mut Vec<u8>, text: &str) {
    put_len(out, text.len());
    out.extend_from_slice(text.as_bytes());
}

/// The published number of an array's type.
const ARRAY: u32 = 9;

fn put_value(out: &mut Vec<u8>, value: &GgufValue) {
    let mut put = |ty: u32, bytes: &[u8]| {
        out.extend_from_slice(&ty.to_le_bytes());
        out.extend_from_slice(bytes);
    };
    match value {
        GgufValue::U8(v) => put(0, &[*v]),
        GgufValue::I8(v) => put(1, &v.to_le_bytes()),
        GgufValue::U16(v) => put(2, &v.to_le_bytes()),
        GgufValue::I16(v) => put(3, &v.to_le_bytes()),
        GgufValue::U32(v) => put(4, &v.to_le_bytes()),
        GgufValue::I32(v) => put(5, &v.to_le_bytes()),
        GgufValue::F32(v) => put(6, &v.to_le_bytes()),
        GgufValue::Bool(v) => put(7, &[u8::from(*v)]),
        GgufValue::String(text) => {
            put(8, &[]);
            put_text(out, text);
        }
        GgufValue::Array(array) => {
            put(ARRAY, &[]);
            put_array(out, array);
        }
        GgufValue::U64(v) => put(10, &v.to_le_bytes()),
        GgufValue::I64(v) => put(11, &v.to_le_bytes()),
        GgufValue::F64(v) => put(12, &v.to_le_bytes()),
    }
}

/// The type of the elements, how many, and the elements.
fn put_array(out: &mut Vec<u8>, array: &GgufArray) {
    let ty: u32 = match array {
        GgufArray::U8(_) => 0,
        GgufArray::I8(_) => 1,
        GgufArray::U16(_) => 2,
        GgufArray::I16(_) => 3,
        GgufArray::U32(_) => 4,
        GgufArray::I32(_) => 5,
        GgufArray::F32(_) => 6,
        GgufArray::Bool(_) => 7,
        GgufArray::String(_) => 8,
        GgufArray::Array(_) => ARRAY,
        GgufArray::U64(_) => 10,
        GgufArray::I64(_) => 11,
        GgufArray::F64(_) => 12,
    };
    out.extend_from_slice(&ty.to_le_bytes());
    put_len(out, array.len());
    match array {
        GgufArray::U8(all) => out.extend_from_slice(all),
        GgufArray::I8(all) => out.extend(all.iter().flat_map(|v| v.to_le_bytes())),
        GgufArray::U16(all) => out.extend(all.iter().flat_map(|v| v.to_le_bytes())),
        GgufArray::I16(all) => out.extend(all.iter().flat_map(|v| v.to_le_bytes())),
        GgufArray::U32(all) => out.extend(all.iter().flat_map(|v| v.to_le_bytes())),
        GgufArray::I32(all) => out.extend(all.iter().flat_map(|v| v.to_le_bytes())),
        GgufArray::F32(all) => out.extend(all.iter().flat_map(|v| v.to_le_bytes())),
        GgufArray::Bool(all) => out.extend(all.iter().map(|&v| u8::from(v))),
        GgufArray::String(all) => all.iter().for_each(|text| put_text(out, text)),
        GgufArray::Array(all) => all.iter().for_each(|array| put_array(out, array)),
        GgufArray::U64(all) => out.extend(all.iter().flat_map(|v| v.to_le_bytes())),
        GgufArray::I64(all) => out.extend(all.iter().flat_map(|v| v.to_le_bytes())),
        GgufArray::F64(all) => out.extend(all.iter().flat_map(|v| v.to_le_bytes())),
    }
}
