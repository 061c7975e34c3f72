//! Model files written anew: a folder of safetensors as one GGUF file, and a GGUF file quantised by one of the mixes that
//! are published under a name, as `llama-quantize` writes them, byte by byte; and the importances that such a mix may be
//! chosen by.
//!
//! Sources of the methods: the block layouts of GGUF's specification; the searches and the choice of formats as llama.cpp
//! makes them (`ggml-quants`, `llama-quant`); names, keys and arrangements of tensors as its `convert_hf_to_gguf.py` has
//! them.
//!
//! How fast a model computes is not known here. What it computes is compared, where a file in another container should
//! be the same model; otherwise tensors are chosen by their names and shapes.

#![forbid(unsafe_code)]

mod atomic_file;
mod encode;
mod error;
mod gguf_writer;
mod importance_sums;
mod importances;
mod mix;
mod plan;
mod quantize;
mod tensor_role;
mod to_gguf;

pub use error::ConvertError;
pub use importance_sums::{ImportanceSums, ImportanceText, OUTPUT_MATRIX};
pub use importances::Importances;
pub use mix::Mix;
pub use plan::{QuantizeOptions, QuantizePlan, TensorPlan};
pub use quantize::{Output, quantize};
pub use to_gguf::{ConversionPlan, ConvertOptions, ConvertedTensor, ModelTexts, RoundedNumbers, WrittenGguf};
