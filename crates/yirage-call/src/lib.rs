//! A graph on a device, called with arrays: compiled and loaded once, run as often as it is called.
//!
//! What arrays are is checked before anything runs: their number, types, shapes and strides. This crate deliberately knows
//! no file, no model and no request; which call may see which part of a cache state is the engine's to know.
#![forbid(unsafe_code)]

mod array;
mod callable;
mod error;
mod interface;

pub use array::HostArray;
pub use callable::{CallOptions, Callable, ResidentWeights, planned, planned_with_kv_caches};
pub use error::CallError;
pub use interface::Interface;
