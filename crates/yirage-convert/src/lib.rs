//! Model files written anew: a GGUF file quantised by one of the mixes that are published under a name, as `llama-quantize`
//! writes them, byte by byte.
//!
//! Sources of the methods: the block layouts of GGUF's specification; the searches and the choice of formats as llama.cpp
//! makes them (`ggml-quants`, `llama-quant`).
//!
//! What a model computes, and how fast, is not known here: tensors are chosen by their names and shapes.

#![forbid(unsafe_code)]

mod encode;
mod error;
mod gguf_writer;
mod importances;
mod mix;
mod plan;
mod quantize;
mod tensor_role;

pub use error::ConvertError;
pub use importances::Importances;
pub use mix::Mix;
pub use plan::{QuantizeOptions, QuantizePlan, TensorPlan};
pub use quantize::{Output, quantize};
