//! The device-free graph: dtypes, quantised formats, symbolic shapes, ops with their reference evaluation, text form, verifier, hash.
#![forbid(unsafe_code)]

pub mod dtype;
pub mod quant;

pub use dtype::DType;
pub use quant::Format;
