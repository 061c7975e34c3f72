//! From a graph's weights to bytes in a checkpoint.
//!
//! A [`WeightBinding`] says which stored elements a graph weight consists of, as strided views: slices of fused
//! tensors, transposes, interleaved rows and lists of experts are all views, so that nothing is copied before a backend
//! asks for rows. This module does not know what a weight is for, nor any layout that a backend repacks it into.

use crate::checkpoint::{Checkpoint, StoredType, TensorInfo};
use crate::error::ModelError;
use crate::rope::RopeTable;
use std::ops::Range;
use std::sync::Arc;
use yirage_ir::Format;

/// A strided view of a stored tensor, counted in elements. Its elements are taken in row-major order of `shape`.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct WeightView {
    /// The tensor's name in the checkpoint.
    pub tensor: String,
    /// Index of the first element in the stored tensor.
    pub offset: usize,
    /// Sizes, outermost first.
    pub shape: Vec<usize>,
    /// Stored elements between neighbours along each dimension.
    pub strides: Vec<usize>,
}

impl WeightView {
    /// A dense view of `shape` from element `offset` on.
    pub fn dense(tensor: impl Into<String>, offset: usize, shape: Vec<usize>) -> WeightView {
        let mut strides = vec![1usize; shape.len()];
        for d in (1..shape.len()).rev() {
            strides[d - 1] = strides[d].saturating_mul(shape[d]);
        }
        WeightView { tensor: tensor.into(), offset, shape, strides }
    }

    /// Number of elements.
    pub fn elements(&self) -> usize {
        self.shape.iter().fold(1, |n, &d| n.saturating_mul(d))
    }

    /// Elements that lie side by side in storage, from any multiple of that number on.
    fn run(&self) -> usize {
        let mut run = 1usize;
        for (&size, &stride) in self.shape.iter().zip(&self.strides).rev() {
            if size != 1 && stride != run {
                break;
            }
            run = run.saturating_mul(size);
        }
        run.max(1)
    }

    /// Index in storage of the view's element `index`.
    pub(crate) fn stored_index(&self, mut index: usize) -> usize {
        let mut at = self.offset;
        for (&size, &stride) in self.shape.iter().zip(&self.strides).rev() {
            at += index % size * stride;
            index /= size;
        }
        at
    }

    /// Stored elements between neighbours of the last `n`, where they lie evenly; `n` is a product of the last sizes.
    pub(crate) fn inner_step(&self, n: usize) -> Option<usize> {
        let mut pairs = self.shape.iter().zip(&self.strides).rev().filter(|(size, _)| **size != 1);
        let Some((&size, &step)) = pairs.next() else { return Some(1) };
        let mut covered = size;
        while covered < n {
            let (&size, &stride) = pairs.next()?;
            if stride != covered * step {
                return None;
            }
            covered *= size;
        }
        Some(step)
    }

    /// Index of the last stored element, or `None` where that does not fit in memory or the view is empty.
    fn last(&self) -> Option<usize> {
        let mut pairs = self.shape.iter().zip(&self.strides);
        pairs.try_fold(self.offset, |sum, (&n, &s)| sum.checked_add(n.checked_sub(1)?.checked_mul(s)?))
    }
}

/// Where a weight's values come from.
#[derive(Clone, PartialEq, Debug)]
pub enum WeightSource {
    /// Views of stored tensors of one format, one after the other along the first dimension.
    Stored(Vec<WeightView>),
    /// MXFP4 in the two byte tensors of gpt-oss safetensors: a view of the packed codes (a row is 16 bytes for each
    /// 32 weights) and one of the exponents (1 byte), with the same rows.
    PackedMxfp4 {
        /// Codes, two consecutive weights a byte, the first in the low nibble.
        blocks: WeightView,
        /// E8M0 exponents.
        scales: WeightView,
    },
    /// Values that no file holds, computed when they are read: a table of the rotary embedding.
    Computed(RopeTable),
    /// Values in memory, f32: the matrices of adapters.
    Given(Arc<Vec<f32>>),
}

/// A weight of a graph and its source.
#[derive(Clone, PartialEq, Debug)]
pub struct WeightBinding {
    /// Its name in the graph.
    pub name: String,
    /// Its element format in the graph.
    pub format: Format,
    /// Its shape in the graph, outermost first.
    pub shape: Vec<usize>,
    /// Its values.
    pub source: WeightSource,
}

impl WeightBinding {
    /// Elements of a row: the last dimension.
    pub fn width(&self) -> usize {
        self.shape.last().copied().unwrap_or(1)
    }

    /// Rows: the product of all dimensions but the last, so that a vector is one row.
    pub fn rows(&self) -> usize {
        self.shape.iter().rev().skip(1).fold(1, |n, &d| n.saturating_mul(d))
    }

    /// Bytes of a row.
    pub fn row_bytes(&self) -> usize {
        self.format.info().row_bytes(self.width())
    }

    /// Names of the stored tensors it reads.
    pub fn tensors(&self) -> Vec<&str> {
        match &self.source {
            WeightSource::Stored(views) => views.iter().map(|v| v.tensor.as_str()).collect(),
            WeightSource::PackedMxfp4 { blocks, scales } => vec![&blocks.tensor, &scales.tensor],
            WeightSource::Computed(_) | WeightSource::Given(_) => Vec::new(),
        }
    }

    /// Checks that every element lies in its tensor, that all parts have the binding's format, that they fill its shape,
    /// and that views of block formats take whole blocks.
    ///
    /// # Errors
    /// [`ModelError::MissingTensor`]; [`ModelError::UnsupportedFormat`]; [`ModelError::Unsupported`] for a block format
    /// whose blocks a view would split; [`ModelError::Config`] for mixed formats and sizes that do not fit.
    pub fn check(&self, checkpoint: &Checkpoint) -> Result<(), ModelError> {
        let want = self.rows().saturating_mul(self.width());
        let given = match &self.source {
            WeightSource::Computed(table) => table.elements(),
            WeightSource::Given(values) => values.len(),
            WeightSource::PackedMxfp4 { blocks, scales } => {
                self.check_bytes(checkpoint, blocks, 16)?;
                self.check_bytes(checkpoint, scales, 1)?;
                want
            }
            WeightSource::Stored(views) => {
                views.iter().try_for_each(|v| self.check_view(checkpoint, v))?;
                views.iter().fold(0, |n: usize, v| n.saturating_add(v.elements()))
            }
        };
        if given == want {
            return Ok(());
        }
        Err(self.error(checkpoint, format!("{want} elements"), format!("{given}")))
    }

    fn error(&self, checkpoint: &Checkpoint, expected: String, found: String) -> ModelError {
        let key = format!("weight `{}` from {}", self.name, self.tensors().join(", "));
        ModelError::Config { file: checkpoint.label(), key, expected, found }
    }

    fn check_view(&self, checkpoint: &Checkpoint, view: &WeightView) -> Result<(), ModelError> {
        let tensor = checkpoint.require(&view.tensor)?;
        let (stored, format) = (checkpoint.format(tensor)?, self.format);
        if !checkpoint.gives(tensor, format)? {
            let expected = format!("one format for all its parts, here {}", self.format.info().name);
            return Err(self.error(checkpoint, expected, format!("{} in {:?}", stored.info().name, view.tensor)));
        }
        self.check_extent(checkpoint, view, tensor)?;
        let block = format.info().block;
        let inner_starts = view.shape.iter().zip(&view.strides).filter(|&(&n, &s)| n > 1 && s != 1).map(|(_, s)| *s);
        let whole = view.run().is_multiple_of(block) && view.offset.is_multiple_of(block);
        if whole && inner_starts.into_iter().all(|s| s.is_multiple_of(block)) {
            return Ok(());
        }
        Err(ModelError::Unsupported {
            what: format!("{} for the tensor {:?}", format.info().name, view.tensor),
            why: format!(
                "{}: the weight `{}` takes it transposed or in pieces, which would split its blocks of {block}; \
                 use a file that keeps this tensor in F32, F16 or BF16",
                checkpoint.label(),
                self.name
            ),
        })
    }

    fn check_extent(&self, checkpoint: &Checkpoint, view: &WeightView, t: &TensorInfo) -> Result<(), ModelError> {
        let fits = view.shape.len() == view.strides.len() && view.last().is_some_and(|last| last < t.elements());
        if fits {
            return Ok(());
        }
        let expected = format!("a view inside the {} elements of {:?}", t.elements(), t.name);
        let found = format!("offset {}, shape {:?}, strides {:?}", view.offset, view.shape, view.strides);
        Err(self.error(checkpoint, expected, found))
    }

    fn check_bytes(&self, checkpoint: &Checkpoint, view: &WeightView, per_block: usize) -> Result<(), ModelError> {
        let tensor = checkpoint.require(&view.tensor)?;
        if tensor.dtype != StoredType::U8 {
            return Err(self.error(checkpoint, format!("bytes in {:?}", view.tensor), tensor.dtype.to_string()));
        }
        self.check_extent(checkpoint, view, tensor)?;
        let row = self.width() / 32 * per_block;
        if view.run().is_multiple_of(row.max(1)) && view.elements() == self.rows().saturating_mul(row) {
            return Ok(());
        }
        let expected = format!("{} whole rows of {row} bytes in {:?}", self.rows(), view.tensor);
        Err(self.error(checkpoint, expected, format!("a view of shape {:?}", view.shape)))
    }
}

/// The bytes of `rows` of a graph weight in its format: borrowed from the mapped file where they lie there side by
/// side, else gathered, or decoded, in `scratch`.
///
/// # Errors
/// Those of [`WeightBinding::check`]; [`ModelError::Config`] for rows that the weight does not have.
pub fn materialise<'a>(
    checkpoint: &'a Checkpoint,
    binding: &WeightBinding,
    rows: Range<usize>,
    scratch: &'a mut Vec<u8>,
) -> Result<&'a [u8], ModelError> {
    if rows.start > rows.end || rows.end > binding.rows() {
        return Err(binding.error(checkpoint, format!("rows within {}", binding.rows()), format!("{rows:?}")));
    }
    let elements = rows.start.saturating_mul(binding.width())..rows.end.saturating_mul(binding.width());
    scratch.clear();
    match &binding.source {
        WeightSource::Computed(table) => {
            binding.check(checkpoint)?;
            // A row is a position, and there are no more of either than a u32 counts.
            let positions = rows.start as u32..rows.end as u32;
            append_floats(&table.values(positions), scratch);
            Ok(scratch)
        }
        WeightSource::Given(values) => {
            binding.check(checkpoint)?;
            append_floats(&values[elements], scratch);
            Ok(scratch)
        }
        WeightSource::PackedMxfp4 { blocks, scales } => {
            binding.check(checkpoint)?;
            pack_mxfp4(checkpoint, [blocks, scales], rows, binding.width() / 32, scratch)?;
            Ok(scratch)
        }
        WeightSource::Stored(views) => stored_bytes(checkpoint, binding, views, elements, scratch),
    }
}

fn append_floats(values: &[f32], out: &mut Vec<u8>) {
    let from = out.len();
    out.resize(from + values.len() * 4, 0);
    out[from..].chunks_exact_mut(4).zip(values).for_each(|(bytes, value)| bytes.copy_from_slice(&value.to_le_bytes()));
}

/// Only the views that hold some of `elements` are looked at: a weight may have one for each of hundreds of experts.
fn stored_bytes<'a>(
    checkpoint: &'a Checkpoint,
    binding: &WeightBinding,
    views: &[WeightView],
    elements: Range<usize>,
    scratch: &'a mut Vec<u8>,
) -> Result<&'a [u8], ModelError> {
    let bytes_of = |n: usize| binding.format.info().row_bytes(n);
    let (mut before, mut found) = (0usize, 0);
    for view in views {
        let after = before.saturating_add(view.elements());
        let (first, end) = (elements.start.max(before), elements.end.min(after));
        let part = first.saturating_sub(before)..end.saturating_sub(before);
        before = after;
        if part.is_empty() {
            continue;
        }
        binding.check_view(checkpoint, view)?;
        let tensor = checkpoint.require(&view.tensor)?;
        if let Some(decode) = checkpoint.decoding(tensor, binding.format) {
            found += part.len();
            gather(view, part, |at, n| decode(at..at + n, scratch));
            continue;
        }
        let stored = checkpoint.bytes(tensor);
        let run = view.run();
        let one_run = part.start / run == (part.end - 1) / run;
        if one_run && part.len() == elements.len() {
            return Ok(&stored[bytes_of(view.stored_index(part.start))..][..bytes_of(part.len())]);
        }
        found += part.len();
        gather(view, part, |at, n| scratch.extend_from_slice(&stored[bytes_of(at)..][..bytes_of(n)]));
    }
    if found == elements.len() {
        return Ok(scratch);
    }
    Err(binding.error(checkpoint, format!("elements {elements:?}"), format!("{before} in all its parts")))
}

/// Calls `take(stored index, elements)` for each contiguous piece of the view's elements in `part`, in order.
fn gather(view: &WeightView, part: Range<usize>, mut take: impl FnMut(usize, usize)) {
    let run = view.run();
    let mut at = part.start;
    while at < part.end {
        let n = (run - at % run).min(part.end - at);
        take(view.stored_index(at), n);
        at += n;
    }
}

/// Interleaves codes and exponents into the blocks of [`Format::MXFP4`]: there a byte holds weights i and i + 16 of
/// its block, here weights 2i and 2i + 1.
fn pack_mxfp4(
    checkpoint: &Checkpoint,
    [blocks, scales]: [&WeightView; 2],
    rows: Range<usize>,
    per_row: usize,
    out: &mut Vec<u8>,
) -> Result<(), ModelError> {
    let codes = checkpoint.bytes(checkpoint.require(&blocks.tensor)?);
    let exponents = checkpoint.bytes(checkpoint.require(&scales.tensor)?);
    for row in rows {
        let (code_at, exponent_at) = (blocks.stored_index(row * per_row * 16), scales.stored_index(row * per_row));
        for b in 0..per_row {
            let pairs: &[u8] = &codes[code_at + b * 16..][..16];
            let nibble = |i: usize| pairs[i / 2] >> (4 * (i % 2)) & 15;
            out.push(exponents[exponent_at + b]);
            out.extend((0..16).map(|i| nibble(i) | nibble(i + 16) << 4));
        }
    }
    Ok(())
}
