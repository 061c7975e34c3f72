//! The null backend: the smallest thing that compiles, to copy when a new backend is begun.
//!
//! How to bring up a device: copy this file into a crate of its own, rename, and run the conformance suite with your
//! backend in its list. Each method that is hit and still says `Unsupported` is the next one to write, in this order:
//! `probe` and `open`; `target` with no kernels (the compiler now names the first kernel that is missing); `weight`
//! and `state`; `load`; then one kernel after another, each added to `Target::kernels` when it passes its op's cases.
//! Exclusions carry their reason: a permanent `Unsupported`, or a case expected to fail that must fail.

use crate::backend::{Backend, OpenOptions, Unavailable};
use crate::device::Device;
use crate::error::HalError;
use crate::info::DeviceInfo;
use std::sync::Arc;

/// A backend without devices.
pub struct Null;

impl Backend for Null {
    fn name(&self) -> &'static str {
        "null"
    }

    fn probe(&self) -> Result<Vec<DeviceInfo>, Unavailable> {
        let why = "the null backend is a pattern to copy and has no device".into();
        Err(Unavailable { backend: "null", why, remedy: "name another backend".into() })
    }

    fn open(&self, _: u32, _: &OpenOptions) -> Result<(Arc<dyn Device>, Vec<String>), HalError> {
        let why = "it is a pattern to copy and has no device".into();
        Err(HalError::Unsupported { what: "the null backend".into(), why })
    }
}
