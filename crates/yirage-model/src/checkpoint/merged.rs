//! Tensors to which low-rank adapters are added when they are read.

use super::{Checkpoint, StoredType, TensorInfo};
use crate::error::ModelError;
use crate::low_rank::LoraTarget;
use std::ops::Range;
use yirage_ir::Format;

/// What is added to a tensor.
#[derive(Debug)]
pub(super) struct MergedTensor {
    /// The tensor as it is stored.
    stored: TensorInfo,
    /// The format of the sum.
    format: Format,
    /// Pairs and their scales.
    added: Vec<(LoraTarget, f32)>,
}

impl Checkpoint {
    /// Adds pairs to the tensors that they are for, times `scale`, when these are read. The sum is rounded to what a tensor is
    /// stored as, or to f16 where that is a format of few bits. `named` tells what was added.
    ///
    /// # Errors
    /// [`ModelError::UnsupportedFormat`].
    pub(crate) fn merge(&mut self, targets: Vec<LoraTarget>, scale: f32, named: String) -> Result<(), ModelError> {
        for target in targets {
            let at = self.index[&target.tensor];
            if let Some(merged) = self.merged.get_mut(&target.tensor) {
                merged.added.push((target, scale));
                continue;
            }
            let stored = self.tensors[at].clone();
            let format = match self.format(&stored)? {
                float @ (Format::F32 | Format::F16 | Format::BF16) => float,
                _ => Format::F16,
            };
            self.tensors[at].dtype = StoredType::Format(format);
            let name = target.tensor.clone();
            self.merged.insert(name, MergedTensor { stored, format, added: vec![(target, scale)] });
        }
        self.merged_adapters.push(named);
        Ok(())
    }

    /// The adapters that are added, in words: a hash of each, and its scale.
    pub fn merged_adapters(&self) -> &[String] {
        &self.merged_adapters
    }

    /// Whether something is added to a tensor.
    pub(crate) fn is_merged(&self, tensor: &TensorInfo) -> bool {
        self.merged.contains_key(&tensor.name)
    }

    /// All elements of a tensor.
    ///
    /// # Errors
    /// [`ModelError::UnsupportedFormat`].
    pub fn floats(&self, tensor: &TensorInfo) -> Result<Vec<f32>, ModelError> {
        let mut values = vec![0.0; tensor.elements()];
        let format = self.format(tensor)?;
        (format.info().decode)(self.elements(tensor, 0..tensor.elements(), &mut Vec::new())?, &mut values);
        Ok(values)
    }

    /// Appends elements of a merged tensor to `out`, in `format`: the sum's, or f32.
    pub(super) fn merge_elements(&self, name: &str, elements: Range<usize>, format: Format, out: &mut Vec<u8>) {
        let MergedTensor { stored, format: rounded, added } = &self.merged[name];
        let mut values = self.stored_floats(stored, elements.clone());
        added.iter().for_each(|(target, scale)| target.add_to(&mut values, elements.start, *scale));
        let mut append = |values: &[f32], format: Format| {
            let (from, info) = (out.len(), format.info());
            out.resize(from + info.row_bytes(values.len()), 0);
            // Formats of single floats are all encoded.
            if let Some(encode) = info.encode {
                encode(values, &mut out[from..]);
            }
        };
        if format == *rounded {
            append(&values, format);
        } else {
            // Parts of one weight may have several formats: f32 then holds the rounded sum.
            let mut bytes = vec![0; rounded.info().row_bytes(values.len())];
            if let Some(encode) = rounded.info().encode {
                encode(&values, &mut bytes);
            }
            (rounded.info().decode)(&bytes, &mut values);
            append(&values, format);
        }
    }

    /// Elements of a tensor as it is stored, whatever blocks they lie in.
    fn stored_floats(&self, stored: &TensorInfo, elements: Range<usize>) -> Vec<f32> {
        let format = match &stored.dtype {
            StoredType::Format(format) => *format,
            _ => self.decoded_format(stored),
        };
        let (info, mut scratch) = (format.info(), Vec::new());
        let whole = elements.start / info.block * info.block..elements.end.next_multiple_of(info.block);
        let bytes = match self.decoded_elements(stored, format) {
            Some(decode) => {
                decode(whole.clone(), &mut scratch);
                &scratch[..]
            }
            None => &self.bytes(stored)[info.row_bytes(whole.start)..info.row_bytes(whole.end)],
        };
        let mut values = vec![0.0; whole.len()];
        (info.decode)(bytes, &mut values);
        values.truncate(elements.end - whole.start);
        values.drain(..elements.start - whole.start);
        values
    }
}
