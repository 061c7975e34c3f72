//! Values that stand for those of a file: of a tensor that somebody has in memory.

use super::{Checkpoint, StoredType};
use crate::error::ModelError;
use std::fmt;
use std::sync::Arc;
use yirage_ir::Format;

/// A tensor in memory.
#[derive(Clone)]
pub struct TensorOverride {
    /// Its name in the checkpoint.
    pub name: String,
    /// How its elements are stored: F32, F16 or BF16.
    pub format: Format,
    /// Dimensions, outermost first.
    pub shape: Vec<usize>,
    /// Its elements, dense and row-major.
    pub values: Arc<dyn AsRef<[u8]> + Send + Sync>,
}

/// The elements.
pub(super) struct OverrideBytes(Arc<dyn AsRef<[u8]> + Send + Sync>);

impl OverrideBytes {
    pub(super) fn bytes(&self) -> &[u8] {
        (*self.0).as_ref()
    }
}

impl fmt::Debug for OverrideBytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} bytes in memory", self.bytes().len())
    }
}

impl Checkpoint {
    /// Has a tensor's values stand for those of the file. Their format may be another one; their shape is the file's.
    ///
    /// # Errors
    /// [`ModelError::MissingTensor`], [`ModelError::UnsupportedFormat`] for elements that are no floats of their own, and
    /// [`ModelError::Config`] for another shape or number of bytes.
    pub fn override_tensor(&mut self, tensor: TensorOverride) -> Result<(), ModelError> {
        let TensorOverride { name, format, shape, values } = tensor;
        let stored = self.require(&name)?;
        let file = self.label();
        if ![Format::F32, Format::F16, Format::BF16].contains(&format) {
            let dtype = format.info().name.to_owned();
            return Err(ModelError::UnsupportedFormat { file, tensor: name, dtype });
        }
        let wrong = |expected: String, found: String| ModelError::Config {
            file: file.clone(),
            key: format!("tensor {name:?}"),
            expected,
            found,
        };
        if stored.shape != shape {
            return Err(wrong(format!("shape {:?}", stored.shape), format!("{shape:?}")));
        }
        let (needed, given) = (format.info().row_bytes(stored.elements()), (*values).as_ref().len());
        if needed != given {
            return Err(wrong(format!("{needed} bytes"), format!("{given}")));
        }
        let at = self.index[&name];
        self.tensors[at].dtype = StoredType::Format(format);
        self.decoded.remove(&name);
        self.overrides.insert(name, OverrideBytes(values));
        Ok(())
    }
}
