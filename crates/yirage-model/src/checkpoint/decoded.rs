//! Tensors that are decoded when they are read: where their parts lie, and what becomes of them.

use super::{Checkpoint, StoredType, TensorInfo};
use crate::decode::{DecodedTensors, TensorDecoder};
use std::collections::HashSet;
use std::ops::Range;
use std::sync::OnceLock;
use yirage_ir::Format;

/// A tensor's decoder and its parts.
#[derive(Debug)]
pub(super) struct DecodedTensor {
    decoder: Box<dyn TensorDecoder>,
    /// The file and the bytes of each part.
    parts: Vec<(usize, Range<usize>)>,
    format: OnceLock<Format>,
}

/// What appends elements of a tensor to bytes.
pub(crate) type AppendElements<'a> = Box<dyn Fn(Range<usize>, &mut Vec<u8>) + 'a>;

impl DecodedTensor {
    /// A tensor whose values are all in one place.
    pub(super) fn of_one(decoder: impl TensorDecoder + 'static, tensor: &TensorInfo) -> DecodedTensor {
        DecodedTensor::of_parts(Box::new(decoder), vec![(tensor.file, tensor.range.clone())])
    }

    /// A tensor whose parts lie in these files and bytes.
    pub(super) fn of_parts(decoder: Box<dyn TensorDecoder>, parts: Vec<(usize, Range<usize>)>) -> DecodedTensor {
        DecodedTensor { decoder, parts, format: OnceLock::new() }
    }

    fn stored_bytes(&self) -> usize {
        self.parts.iter().map(|(_, range)| range.len()).sum()
    }
}

impl Checkpoint {
    fn parts(&self, decoded: &DecodedTensor) -> Vec<&[u8]> {
        decoded.parts.iter().map(|(file, range)| &self.maps[*file].bytes()[range.clone()]).collect()
    }

    /// Takes tensors that are parts of others out of the table.
    pub(super) fn drop_parts(&mut self, parts: &HashSet<usize>) {
        let mut place = 0..;
        self.tensors.retain(|_| place.next().is_none_or(|i| !parts.contains(&i)));
        self.index = self.tensors.iter().enumerate().map(|(i, t)| (t.name.clone(), i)).collect();
    }

    /// The format of a tensor that is decoded.
    pub(super) fn decoded_format(&self, tensor: &TensorInfo) -> Format {
        let decoded = &self.decoded[&tensor.name];
        *decoded.format.get_or_init(|| decoded.decoder.format(&self.parts(decoded)))
    }

    /// Bytes of a tensor in its files, all its parts together.
    pub fn stored_bytes(&self, tensor: &TensorInfo) -> usize {
        self.decoded.get(&tensor.name).map_or(tensor.range.len(), DecodedTensor::stored_bytes)
    }

    /// Elements of a tensor in the format to compute with, as [`Checkpoint::format`] gives it: borrowed from the mapped file,
    /// or decoded into `scratch`, which is cleared. They lie in the tensor, and begin and end with blocks.
    ///
    /// # Errors
    /// [`ModelError::UnsupportedFormat`](crate::ModelError::UnsupportedFormat).
    pub fn elements<'a>(
        &'a self,
        tensor: &TensorInfo,
        elements: Range<usize>,
        scratch: &'a mut Vec<u8>,
    ) -> Result<&'a [u8], crate::ModelError> {
        let info = self.format(tensor)?.info();
        scratch.clear();
        if let Some(decode) = self.decoding(tensor, self.format(tensor)?) {
            decode(elements, scratch);
            return Ok(scratch);
        }
        Ok(&self.bytes(tensor)[info.row_bytes(elements.start)..info.row_bytes(elements.end)])
    }

    /// Whether a tensor's elements can be had in `format`: those that are decoded also as f32, since tensors that make one
    /// weight may be decoded into several formats.
    ///
    /// # Errors
    /// [`ModelError::UnsupportedFormat`](crate::ModelError::UnsupportedFormat).
    pub(crate) fn gives(&self, tensor: &TensorInfo, format: Format) -> Result<bool, crate::ModelError> {
        let decoded = self.decoded.contains_key(&tensor.name) || self.is_merged(tensor);
        Ok(self.format(tensor)? == format || decoded && format == Format::F32)
    }

    /// Of a tensor that is decoded or merged, what appends elements of it to bytes in a format that it
    /// [`gives`](Checkpoint::gives).
    pub(crate) fn decoding<'a>(&'a self, tensor: &TensorInfo, format: Format) -> Option<AppendElements<'a>> {
        if self.is_merged(tensor) {
            let name = tensor.name.clone();
            return Some(Box::new(move |elements, out| self.merge_elements(&name, elements, format, out)));
        }
        self.decoded_elements(tensor, format)
    }

    /// Of a tensor that is decoded, what appends elements of it to bytes, as they are in the file.
    pub(super) fn decoded_elements<'a>(&'a self, tensor: &TensorInfo, format: Format) -> Option<AppendElements<'a>> {
        let decoded = self.decoded.get(&tensor.name)?;
        let parts = self.parts(decoded);
        Some(Box::new(move |elements, out| decoded.decoder.decode(&parts, elements, format, out)))
    }

    /// Gives back the pages of all parts of a tensor that was read up to `end` of its stored bytes, which may be all.
    pub(super) fn release_decoded(&self, tensor: &TensorInfo, end: usize) -> usize {
        if end < tensor.range.len() {
            return 0;
        }
        let parts = &self.decoded[&tensor.name].parts;
        parts.iter().map(|(file, range)| self.maps[*file].release(range.clone())).sum()
    }

    /// What is decoded of this checkpoint, and into what, sorted by the stored format's name. Scales are read for it.
    pub fn decoded_tensors(&self) -> Vec<DecodedTensors> {
        let mut all: Vec<DecodedTensors> = Vec::new();
        for tensor in self.tensors.iter().filter(|t| self.decoded.contains_key(&t.name)) {
            let (stored, format) = (type_name(&tensor.dtype), self.decoded_format(tensor));
            let stored_bytes = self.stored_bytes(tensor) as u64;
            let bytes = format.info().row_bytes(tensor.elements()) as u64;
            match all.iter_mut().find(|d| d.stored == stored && d.format == format) {
                Some(same) => {
                    same.tensors += 1;
                    same.stored_bytes += stored_bytes;
                    same.bytes += bytes;
                }
                None => all.push(DecodedTensors { stored, format, tensors: 1, stored_bytes, bytes }),
            }
        }
        all.sort_by(|a, b| a.stored.cmp(&b.stored));
        all
    }
}

/// The name of a stored format without its number.
fn type_name(dtype: &StoredType) -> String {
    match dtype {
        StoredType::Ggml(ty) => ty.name().map_or_else(|| ty.to_string(), str::to_owned),
        other => other.to_string(),
    }
}
