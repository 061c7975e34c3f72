//! What a model is, by its files' contents, wherever they lie.

use crate::error::SessionError;
use sha2::{Digest, Sha256};
use std::fmt;
use yirage_mmap::read_bytes_if_there;
use yirage_model::Checkpoint;

/// Bytes of the beginning of each tensor that stand for all of it: fine-tuned models differ in every matrix.
const BEGINNING: usize = 4096;
/// The longest `config.json` that counts.
const CONFIG_BYTES: u64 = 16 << 20;

/// A hash of names, types, shapes and the first bytes of all tensors, and of the model's settings.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ModelFingerprint([u8; 32]);

impl ModelFingerprint {
    /// That of a model.
    ///
    /// # Errors
    /// [`SessionError::File`] for a `config.json` that cannot be read.
    pub fn of(checkpoint: &Checkpoint) -> Result<ModelFingerprint, SessionError> {
        let mut hash = Sha256::new();
        for tensor in checkpoint.tensors() {
            hash.update(format!("{} {} {:?}\n", tensor.name, tensor.dtype, tensor.shape));
            let bytes = checkpoint.bytes(tensor);
            hash.update(&bytes[..bytes.len().min(BEGINNING)]);
        }
        checkpoint.merged_adapters().iter().for_each(|merged| hash.update(format!("{merged}\n")));
        for (key, value) in checkpoint.gguf().iter().flat_map(|gguf| gguf.metadata()) {
            // Words are no setting of what is computed, and there are hundreds of thousands of them.
            if !key.starts_with("tokenizer.") {
                hash.update(format!("{key} {value:?}\n"));
            }
        }
        if let Some(folder) = checkpoint.folder() {
            hash.update(read_bytes_if_there(&folder.join("config.json"), CONFIG_BYTES)?.unwrap_or_default());
        }
        Ok(ModelFingerprint(hash.finalize().into()))
    }
}

impl fmt::Display for ModelFingerprint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}
