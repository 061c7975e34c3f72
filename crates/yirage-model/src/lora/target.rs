//! Which tensors of a model an adapter's pairs are for.

use super::{LoraAdapter, LoraDialect};
use crate::checkpoint::Checkpoint;
use crate::error::ModelError;
use crate::low_rank::LoraTarget;
use crate::tensor_names::stored_module;

impl LoraAdapter {
    /// The tensors of a model that the pairs are for.
    ///
    /// # Errors
    /// [`ModelError::Config`] with the adapter's file and tensor: for another architecture, a tensor that the model does not
    /// have, or one of another shape. [`ModelError::Unsupported`] for an adapter of the other container's names.
    pub fn targets(&self, checkpoint: &Checkpoint) -> Result<Vec<LoraTarget>, ModelError> {
        self.check_container(checkpoint)?;
        (0..self.pairs.len()).map(|at| self.target(checkpoint, at)).collect()
    }

    fn check_container(&self, checkpoint: &Checkpoint) -> Result<(), ModelError> {
        let (file, of) = (self.path.display().to_string(), checkpoint.label());
        match (&self.dialect, checkpoint.gguf()) {
            (LoraDialect::Gguf { architecture }, Some(model)) => {
                let found = model.architecture().unwrap_or_default();
                if found == architecture {
                    return Ok(());
                }
                let expected = format!("the architecture of {of}, which is {found:?}");
                let found = format!("{architecture:?}");
                Err(ModelError::Config { file, key: "general.architecture".into(), expected, found })
            }
            (LoraDialect::Peft { .. }, None) => Ok(()),
            (LoraDialect::Peft { .. }, Some(_)) => Err(ModelError::Unsupported {
                what: "an adapter of PEFT for a model of GGUF".into(),
                why: format!(
                    "{file} names modules of transformers, and {of} arranges some tensors otherwise; convert the \
                     adapter with llama.cpp's convert_lora_to_gguf.py, or use the model's safetensors"
                ),
            }),
            (LoraDialect::Gguf { .. }, None) => Err(ModelError::Unsupported {
                what: "an adapter of GGUF for a model of safetensors".into(),
                why: format!("{file} names tensors of GGUF; use the adapter as PEFT wrote it, or the model's GGUF"),
            }),
        }
    }

    fn target(&self, checkpoint: &Checkpoint, at: usize) -> Result<LoraTarget, ModelError> {
        let pair = &self.pairs[at];
        let (name, transposed) = match self.dialect {
            LoraDialect::Peft { fan_in_fan_out } => (stored_module(&pair.of, checkpoint), fan_in_fan_out),
            LoraDialect::Gguf { .. } => (pair.of.clone(), false),
        };
        let wrong = |expected: String, found: String| ModelError::Config {
            file: self.path.display().to_string(),
            key: format!("tensor {:?}", pair.tensor),
            expected,
            found,
        };
        let Some(tensor) = checkpoint.tensor(&name) else {
            return Err(wrong(
                format!("a matrix of {}", checkpoint.label()),
                format!("one for {name:?}, which it lacks"),
            ));
        };
        let (n, k) = (pair.outputs, pair.inputs);
        let shape = if transposed { [k, n] } else { [n, k] };
        // A vocabulary's table is looked up by row, for which a pair would be needed the other way round.
        if name.ends_with("token_embd.weight") || name.ends_with("embed_tokens.weight") {
            return Err(ModelError::Unsupported {
                what: format!("the adapter's tensor {:?}", pair.tensor),
                why: format!("{}: it is for the table of token embeddings", self.path.display()),
            });
        }
        if tensor.shape != shape {
            let expected = format!("matrices for {name:?}, whose shape is {:?}", tensor.shape);
            return Err(wrong(expected, format!("such for {shape:?} (rank {})", pair.rank)));
        }
        Ok(LoraTarget { tensor: name, transposed, pairs: self.pairs.clone(), at })
    }
}
