//! Devices whose drivers have CUDA's shape, by the drivers' own interface: NVIDIA (CUDA, NVRTC), AMD and Hygon (HIP, hipRTC), Moore
//! Threads (MUSA, MTRTC), Iluvatar (CoreX), MetaX (MACA, MCRTC).
//!
//! [`CudaBackend`] finds devices and opens one; [`CudaDriver`] is what the device is made of: memory, two streams, captured
//! graphs, and kernels that come as text and are compiled here for the device at hand. Nothing of a vendor's is linked or needed
//! to build: the driver's library is loaded when somebody asks for a device, the compiler's when a device is opened, that of
//! collectives when it is opened as a rank of a group.
//!
//! A step of a plan may be one cooperative kernel (`persistent/`), whose blocks stay on the device and wait for what they read.
//!
//! Where a folder is named, compiled kernels are kept there (`code_store.rs`) for the next start.
//!
//! A vendor is a file in `vendor/`, which has names and little else; its kernels are a row of `yirage-kir`'s table of dialects.
//! What calls into the driver is `runtime.rs`, what calls into the compiler is `compiler.rs`; all else is safe code over them.
//! Unknown here: ops, models, and what a kernel computes.
#![deny(unsafe_code)] // the modules below that call into the vendor's libraries alone

mod backend;
mod buffers;
mod clock;
mod code_store;
#[allow(unsafe_code)]
mod compiler;
mod driver;
mod graph;
mod kernels;
mod limits;
mod native;
mod persistent;
mod pinned;
mod queue;
#[allow(unsafe_code)]
mod runtime;
mod status;
#[allow(unsafe_code)]
mod symbols;
mod vendor;

pub use backend::CudaBackend;
pub use code_store::{CodeStoreError, CodeStoreReport};
pub use driver::CudaDriver;
pub use native::{attention, matmul};
pub use persistent::source::persistent_kernel;
pub use vendor::CudaVendor;
