//! Accelerators that compute by operators of their makers' libraries, not by kernels of ours: Huawei's Ascend by ACL and aclnn,
//! Cambricon's MLUs by CNRT and CNNL.
//!
//! [`NpuBackend`] finds a maker's devices and opens one; [`NpuDriver`] is what the device is made of: memory, a stream, and operators
//! that are described, asked what they want to work in, and run once. A node of a plan becomes calls of operators (`lowering/`);
//! what has none is evaluated on the host between two waits, by the op's reference, under a kernel's name of its own, and both are
//! counted. Nothing of a vendor's is linked or needed to build: the libraries are loaded when a device is opened.
//!
//! What is a maker's own is a folder (`ascend/`, `cambricon/`) behind one trait in `runtime.rs`; all else is the same for both, and
//! safe code. Unknown here: models, and when an op is worth an operator.
#![deny(unsafe_code)] // the modules that call into the vendors' libraries and own what those give alone

mod ascend;
mod backend;
mod buffers;
mod cambricon;
mod driver;
mod host_evaluation;
mod library;
mod limits;
mod lowering;
mod maker;
mod node_operation;
mod operands;
mod operators;
mod pinned;
mod queue;
mod range;
#[allow(unsafe_code)]
mod runtime;
mod status;
mod step_dims;
mod symbols;
mod vendor;

pub use backend::NpuBackend;
pub use driver::{NpuDriver, OperationCounts};
pub use vendor::NpuVendor;
