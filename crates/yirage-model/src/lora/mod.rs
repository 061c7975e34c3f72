//! Low-rank adapters (LoRA): for some matrices W of a model a pair of small ones, of which `W + scale * B * A` is used.
//!
//! Read as PEFT and as llama.cpp's converter write them. Here is what a file holds and which tensors of a model it means;
//! not when an adapter is used, nor whether its matrices are added to weights or stand beside them.

mod gguf;
mod layout;
mod peft;
mod target;

pub use crate::low_rank::{LoraPair, LoraTarget};
pub use layout::LoraLayout;

use crate::checkpoint::{Checkpoint, CheckpointFile, TensorInfo};
use crate::error::ModelError;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The largest rank of a pair.
pub const MAX_LORA_RANK: usize = 4096;

/// Who wrote an adapter, and so how it calls a model's tensors.
#[derive(Clone, PartialEq, Eq, Debug)]
enum LoraDialect {
    /// Modules of transformers, for models of safetensors.
    Peft {
        /// Whether the model stores its matrices `[in, out]`.
        fan_in_fan_out: bool,
    },
    /// Tensors of GGUF, for models of GGUF.
    Gguf {
        /// The architecture that it was made for.
        architecture: String,
    },
}

/// An adapter that was read. Cloning shares its matrices.
#[derive(Clone, Debug)]
pub struct LoraAdapter {
    path: PathBuf,
    dialect: LoraDialect,
    pairs: Arc<Vec<LoraPair>>,
    files: Vec<CheckpointFile>,
    digest: u128,
}

/// Two are equal that have the same pairs.
impl PartialEq for LoraAdapter {
    fn eq(&self, other: &LoraAdapter) -> bool {
        self.digest == other.digest
    }
}

impl LoraAdapter {
    /// Reads an adapter: a folder or `.safetensors` file of PEFT beside its `adapter_config.json`, or a `.gguf` file.
    ///
    /// # Errors
    /// [`ModelError`]: no adapter is there, a file is corrupt, tensors contradict its settings or each other
    /// ([`ModelError::Config`], with the numbers), or it is of a kind that is not known ([`ModelError::Unsupported`]).
    pub fn open(path: impl AsRef<Path>) -> Result<LoraAdapter, ModelError> {
        let path = path.as_ref();
        let file = if path.is_dir() { path.join(peft::TENSORS) } else { path.to_path_buf() };
        let tensors = Checkpoint::open(&file)?;
        let (dialect, pairs) = match (tensors.gguf(), tensors.folder()) {
            (Some(header), _) => gguf::read(&tensors, header)?,
            (None, folder) => peft::read(&tensors, folder.unwrap_or(Path::new("")))?,
        };
        if pairs.is_empty() {
            return Err(wrong(&tensors, "its tensors", "pairs of low-rank matrices", "none"));
        }
        tensors.intact()?;
        let files = tensors.files().to_vec();
        let digest = digest(&pairs);
        Ok(LoraAdapter { path: path.to_path_buf(), dialect, pairs: Arc::new(pairs), files, digest })
    }

    /// Adds the adapter to the weights that it is for, times `scale`, when they are read. The sum is rounded to what a weight
    /// is stored as, or to f16 where that is a format of few bits.
    ///
    /// # Errors
    /// As [`LoraAdapter::targets`]; [`ModelError::UnsupportedFormat`].
    pub fn merge_into(&self, checkpoint: &mut Checkpoint, scale: f32) -> Result<(), ModelError> {
        let targets = self.targets(checkpoint)?;
        checkpoint.merge(targets, scale, format!("{:032x} times {scale}", self.digest))
    }

    /// Where it was read from.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The file of its matrices, as it was when it was read.
    pub fn files(&self) -> &[CheckpointFile] {
        &self.files
    }

    /// The largest rank of its pairs.
    pub fn rank(&self) -> usize {
        self.pairs.iter().map(|pair| pair.rank).max().unwrap_or(0)
    }

    /// The pairs.
    pub fn pairs(&self) -> &[LoraPair] {
        &self.pairs
    }

    /// A hash of what its pairs are for and of their values.
    pub fn digest(&self) -> u128 {
        self.digest
    }
}

/// FNV-1a of 128 bits, over words.
fn digest(pairs: &[LoraPair]) -> u128 {
    const PRIME: u128 = 0x0000_0000_0100_0000_0000_0000_0000_013b;
    let mut hash: u128 = 0x6c62_272e_07bb_0142_62b8_2175_6295_c58d;
    let mut add = |word: u32| hash = (hash ^ u128::from(word)).wrapping_mul(PRIME);
    for pair in pairs {
        pair.of.bytes().for_each(|byte| add(byte.into()));
        [pair.rank, pair.inputs, pair.outputs].into_iter().for_each(|size| add(size as u32));
        pair.a.iter().chain(&pair.b).for_each(|value| add(value.to_bits()));
    }
    hash
}

/// A pair of the tensors `a` and `b`, of which `outputs * inputs` is the matrix that it is for.
fn pair(tensors: &Checkpoint, of: &str, [a, b]: [&TensorInfo; 2]) -> Result<LoraPair, ModelError> {
    let ([rank, inputs], [outputs, columns]) = (matrix(tensors, a)?, matrix(tensors, b)?);
    if rank != columns {
        let expected = format!("{rank} columns, as {:?} has rows", a.name);
        return Err(wrong(tensors, &tensor_key(b), &expected, &format!("the shape {:?}", b.shape)));
    }
    if !(1..=MAX_LORA_RANK).contains(&rank) {
        return Err(wrong(tensors, &tensor_key(a), &format!("a rank from 1 to {MAX_LORA_RANK}"), &rank.to_string()));
    }
    let (a_values, b_values) = (tensors.floats(a)?, tensors.floats(b)?);
    Ok(LoraPair { tensor: a.name.clone(), of: of.to_owned(), rank, inputs, outputs, a: a_values, b: b_values })
}

fn matrix(tensors: &Checkpoint, tensor: &TensorInfo) -> Result<[usize; 2], ModelError> {
    match tensor.shape[..] {
        [rows, columns] if rows > 0 && columns > 0 => Ok([rows, columns]),
        _ => Err(ModelError::Unsupported {
            what: format!("the adapter's tensor {:?}", tensor.name),
            why: format!("{}: its shape is {:?}; pairs of matrices are known", tensors.label(), tensor.shape),
        }),
    }
}

fn tensor_key(tensor: &TensorInfo) -> String {
    format!("tensor {:?}", tensor.name)
}

fn wrong(tensors: &Checkpoint, key: &str, expected: &str, found: &str) -> ModelError {
    let (file, key) = (tensors.label(), key.to_owned());
    ModelError::Config { file, key, expected: expected.to_owned(), found: found.to_owned() }
}
