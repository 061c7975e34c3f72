//! Graphics processors of any maker, over Vulkan, Metal or Direct3D 12 through wgpu.
//!
//! [`WgpuBackend`] finds adapters and opens one as a device; [`WgpuDriver`] is what the device is made of: memory, a queue
//! that records commands and submits them together, and kernels that come as text and become WGSL here. Nothing of an
//! interface is linked: its library is loaded when somebody asks for a device of it.
//!
//! Unknown here: ops, models, and what a kernel computes.
#![deny(unsafe_code)] // `instance.rs` calls into the interfaces beside wgpu, `pipeline_store.rs` gives a driver bytes of its own

mod adapter;
mod api;
mod backend;
mod bind_groups;
mod byte_commands;
mod capture;
mod clock;
mod driver;
mod errors;
mod instance;
mod limits;
mod loops;
mod memory;
mod pipeline_store;
mod pipelines;
mod recorder;
mod timeline;
mod transfers;

pub use api::GraphicsApi;
pub use backend::WgpuBackend;
pub use driver::WgpuDriver;
