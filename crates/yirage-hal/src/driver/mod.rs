//! Devices with memory and a queue of their own: what a vendor's runtime has to give, and the device made of it.
//!
//! A [`Driver`] is the least that such a runtime offers: memory, one queue that runs in order, and code that is launched on
//! it. [`DriverDevice`] is a [`Device`](crate::Device) over any driver and any [`Library`] of kernels, written once. A
//! backend gives these two and has all else. Unknown here: any vendor, and what a kernel computes.

mod buffer;
mod contract;
mod device;
mod error;
mod library;
mod program;
mod recordings;
mod state;
mod weight;

pub use contract::{Address, Arg, Download, Driver, Launch, ModuleId, Recorder, RecordingId};
pub use device::DriverDevice;
pub use error::DriverError;
pub use library::{Library, Places};
