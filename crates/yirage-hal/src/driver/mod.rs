//! Devices with memory and a queue of their own: what a vendor's runtime has to give, and the device made of it.
//!
//! A [`Driver`] is the least that such a runtime offers: memory, one queue that runs in order, and code that is launched on
//! it. [`DriverDevice`] is a [`Device`](crate::Device) over any driver and any [`Library`] of kernels, written once. A
//! backend gives these two and has all else. Unknown here: any vendor, and what a kernel computes.

mod buffer;
mod captured_graphs;
mod contract;
mod device;
mod error;
mod kv_cache;
mod library;
mod program;
mod weight;

pub use contract::{Address, CapturedGraphId, Download, Driver, GraphCapture, KernelArg, Launch, ModuleId};
pub use device::DriverDevice;
pub use error::DriverError;
pub use library::{Library, ValueAddresses};
