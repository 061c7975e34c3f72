//! The scales that GGUF files have in tensors of their own beside NVFP4 weights: `x.scale` for `x.weight`.

use super::decoded::DecodedTensor;
use super::{Checkpoint, StoredType};
use crate::decode::ggml::{GgmlDecoder, ScaledValues};
use crate::error::ModelError;
use crate::gguf::GgmlType;
use std::collections::HashSet;
use yirage_ir::Format;

const NVFP4: GgmlType = GgmlType(40);

impl Checkpoint {
    /// Has weights stand for their scales as well. The scales of activations, which are not rounded here, go with them.
    ///
    /// # Errors
    /// [`ModelError::Config`] for scales that are neither one nor one for each matrix, or no f32.
    pub(super) fn join_ggml_scales(mut self) -> Result<Checkpoint, ModelError> {
        let mut joined = HashSet::new();
        for at in 0..self.tensors.len() {
            let weight = &self.tensors[at];
            let Some(stem) = weight.name.strip_suffix(".weight").filter(|_| weight.dtype == StoredType::Ggml(NVFP4))
            else {
                continue;
            };
            joined.extend(self.index.get(&format!("{stem}.input_scale")));
            let Some(&place) = self.index.get(&format!("{stem}.scale")) else { continue };
            let scale = &self.tensors[place];
            let matrices = if weight.shape.len() == 3 { weight.shape[0] } else { 1 };
            let count = scale.elements();
            if scale.dtype != StoredType::Format(Format::F32) || (count != 1 && count != matrices) {
                return Err(ModelError::Config {
                    file: self.files[scale.file].path.display().to_string(),
                    key: format!("tensor {:?}", scale.name),
                    expected: format!("one f32, or {matrices}, for the shape {:?} of {:?}", weight.shape, weight.name),
                    found: format!("{} of the shape {:?}", scale.dtype, scale.shape),
                });
            }
            let Some(values) = GgmlDecoder::of(NVFP4) else { continue };
            let each = weight.elements() / count;
            let parts = [weight, scale].map(|t| (t.file, t.range.clone())).to_vec();
            let decoded = DecodedTensor::of_parts(Box::new(ScaledValues { values, each }), parts);
            self.decoded.insert(weight.name.clone(), decoded);
            joined.insert(place);
            self.tensors[at].dtype = StoredType::Quantized(format!("NVFP4 with {count} scales"));
        }
        self.drop_parts(&joined);
        Ok(self)
    }
}
