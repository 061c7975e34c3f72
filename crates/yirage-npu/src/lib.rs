//! Accelerators that compute by operators of their makers' libraries, not by kernels of ours: Huawei's Ascend by ACL and aclnn.
//!
//! [`AscendBackend`] finds devices and opens one; [`AscendDriver`] is what the device is made of: memory, a stream, and operators
//! that are described, asked what they want to work in, and run once. A node of a plan becomes calls of operators (`lowering/`);
//! what has none is evaluated on the host between two waits, by the op's reference, under a kernel's name of its own, and both are
//! counted. Nothing of a vendor's is linked or needed to build: the libraries are loaded when a device is opened.
//!
//! What calls into them is `runtime.rs` and `aclnn.rs`; all else is safe code over them. Unknown here: models, and when an op is
//! worth an operator.
#![deny(unsafe_code)] // the modules below that call into the vendor's libraries alone

#[allow(unsafe_code)]
mod aclnn;
mod backend;
mod buffers;
mod driver;
mod host_evaluation;
mod library;
mod limits;
mod lowering;
mod node_operation;
mod operators;
mod pinned;
mod queue;
#[allow(unsafe_code)]
mod runtime;
mod status;
mod step_dims;
#[allow(unsafe_code)]
mod symbols;

pub use backend::AscendBackend;
pub use driver::{AscendDriver, OperationCounts};
