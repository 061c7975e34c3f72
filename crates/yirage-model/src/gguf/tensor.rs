//! The tensor table: reading it, and checking that every tensor has its own place in the file.

use super::cursor::Cursor;
use super::ggml_type::GgmlType;
use crate::error::ModelError;
use crate::flaw::Flaw;
use crate::limits::{GGUF_DIMS, TENSOR_NAME_BYTES};
use std::collections::HashSet;
use std::ops::Range;

/// A tensor as the table lists it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct GgufTensor {
    /// Its name, unique in the file.
    pub name: String,
    /// Dimensions **outermost first** (row-major), the reverse of how the file stores them; one to four, none zero.
    pub shape: Vec<u64>,
    /// Number format.
    pub ty: GgmlType,
    /// The bytes of its data in the file. For a format of unknown block size: up to the next tensor.
    pub range: Range<u64>,
}

/// A table row before placement: offsets are still relative to the data.
pub(super) struct GgufTensorEntry {
    at: u64,
    name: String,
    shape: Vec<u64>,
    ty: GgmlType,
    offset: u64,
}

pub(super) fn read_table(c: &mut Cursor<'_>, count: u64) -> Result<Vec<GgufTensorEntry>, ModelError> {
    let mut names = HashSet::with_capacity(count as usize);
    let mut rows = Vec::with_capacity(count as usize);
    for i in 0..count {
        let at = c.pos();
        let name = c.string(TENSOR_NAME_BYTES, &format!("name of tensor {i}"))?;
        if !names.insert(name) {
            return Err(c.error_at(at, &format!("tensor {name:?}"), Flaw::Duplicate));
        }
        let shape = read_shape(c, name)?;
        let ty = GgmlType(c.u32(&format!("type of tensor {name:?}"))?);
        let offset = c.u64(&format!("offset of tensor {name:?}"))?;
        rows.push(GgufTensorEntry { at, name: name.to_owned(), shape, ty, offset });
    }
    Ok(rows)
}

fn read_shape(c: &mut Cursor<'_>, name: &str) -> Result<Vec<u64>, ModelError> {
    let field = format!("dimensions of tensor {name:?}");
    let at = c.pos();
    let dims = c.u32(&field)?;
    if dims == 0 {
        return Err(c.error_at(at, &field, Flaw::Zero));
    }
    if dims > GGUF_DIMS {
        return Err(c.error_at(at, &field, Flaw::OverBudget { found: dims.into(), limit: GGUF_DIMS.into() }));
    }
    let mut shape = Vec::with_capacity(dims as usize);
    for _ in 0..dims {
        let at = c.pos();
        match c.u64(&field)? {
            0 => return Err(c.error_at(at, &field, Flaw::Zero)),
            dim => shape.push(dim),
        }
    }
    shape.reverse();
    Ok(shape)
}

/// Bytes of a tensor's data; `None` where the format's block size is unknown.
fn byte_size(row: &GgufTensorEntry) -> Result<Option<u64>, Flaw> {
    let overflow = || Flaw::SizeOverflow { shape: row.shape.clone() };
    let elements = row.shape.iter().try_fold(1u64, |n, &d| n.checked_mul(d)).ok_or_else(overflow)?;
    let Some((block, bytes)) = row.ty.block() else { return Ok(None) };
    let width = row.shape.last().copied().unwrap_or(1);
    if !width.is_multiple_of(block) {
        let format = row.ty.name().unwrap_or("unknown").to_owned();
        return Err(Flaw::PartialBlock { row: width, format, block });
    }
    (elements / block).checked_mul(bytes).ok_or_else(overflow).map(Some)
}

/// Turns relative offsets into ranges of the file and checks them against it and each other.
pub(super) fn place(
    c: &Cursor<'_>,
    rows: Vec<GgufTensorEntry>,
    data: u64,
    alignment: u64,
    file_len: u64,
) -> Result<Vec<GgufTensor>, ModelError> {
    let mut sizes = Vec::with_capacity(rows.len());
    for row in &rows {
        let error = |flaw| c.error_at(row.at, &format!("tensor {:?}", row.name), flaw);
        let size = byte_size(row).map_err(error)?;
        if !row.offset.is_multiple_of(alignment) {
            return Err(error(Flaw::Misaligned { found: row.offset, alignment }));
        }
        // Placing a tensor past 2^64 is placing it past the end of the file.
        let start = data.saturating_add(row.offset);
        let end = start.saturating_add(size.unwrap_or(0));
        if end > file_len {
            return Err(error(Flaw::PastEnd { start, end, len: file_len }));
        }
        sizes.push(size);
    }
    let ends = ends_without_overlap(c, &rows, &sizes, data, file_len)?;
    // Writers fill the last tensor up as they do all others.
    if let Some((last, &end)) = ends.iter().enumerate().max_by_key(|&(_, end)| end)
        && file_len - end >= alignment
    {
        let flaw = Flaw::Behind { end, len: file_len, alignment };
        return Err(c.error_at(rows[last].at, &format!("tensor {:?}", rows[last].name), flaw));
    }
    let tensors = rows.into_iter().zip(ends).map(|(row, end)| GgufTensor {
        name: row.name,
        shape: row.shape,
        ty: row.ty,
        range: data + row.offset..end,
    });
    Ok(tensors.collect())
}

/// The end of each tensor's data. All starts lie inside the file already.
fn ends_without_overlap(
    c: &Cursor<'_>,
    rows: &[GgufTensorEntry],
    sizes: &[Option<u64>],
    data: u64,
    file_len: u64,
) -> Result<Vec<u64>, ModelError> {
    let mut order: Vec<usize> = (0..rows.len()).collect();
    order.sort_by_key(|&i| rows[i].offset);
    let mut ends = vec![0; rows.len()];
    for (n, &i) in order.iter().enumerate() {
        let next = order.get(n + 1).copied();
        let next_start = next.map_or(file_len, |j| data + rows[j].offset);
        ends[i] = sizes[i].map_or(next_start, |size| data + rows[i].offset + size);
        // Tensors are never empty, so sharing a start is overlapping, also for formats of unknown size.
        if let Some(j) = next
            && (ends[i] > next_start || rows[i].offset == rows[j].offset)
        {
            let flaw = Flaw::Overlap { start: next_start, other: rows[i].name.clone(), other_end: ends[i] };
            return Err(c.error_at(rows[j].at, &format!("tensor {:?}", rows[j].name), flaw));
        }
    }
    Ok(ends)
}
