//! The device-free graph: dtypes, quantised formats, symbolic shapes, ops with their reference evaluation, text form,
//! verifier, hash.
//!
//! A model is emitted as a [`Graph`]; the compiler turns a graph and a target into a plan; devices run plans. This
//! crate knows the meaning of every op ([`op`], the scalar reference), of every stored format ([`quant`]) and of the codes
//! that activations may lie in ([`activation`]). It deliberately knows no device, no device's memory, no kernel, no file,
//! no thread, no environment.
#![forbid(unsafe_code)]

pub mod activation;
pub mod attr;
pub mod cost;
pub mod dim;
pub mod dtype;
pub mod expr;
pub mod graph;
pub mod hash;
pub mod interp;
pub mod op;
pub mod quant;
pub mod region;
pub mod rng;
pub mod strided;
pub mod tensor;
pub mod text;
pub mod types;
pub mod verify;

pub use activation::ActivationFormat;
pub use attr::F32;
pub use dim::{Dim, Dims, Sym};
pub use dtype::DType;
pub use expr::Expr;
pub use graph::{BuildError, Graph, GraphBuilder, Node, NodeKind, Value, ValueId, ValueSource};
pub use op::Op;
pub use quant::Format;
pub use region::{Region, RegionKind};
pub use strided::Strided;
pub use tensor::Tensor;
pub use types::{Type, TypeError};
pub use verify::verify;
