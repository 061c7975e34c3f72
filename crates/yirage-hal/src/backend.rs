//! Backends: what may be there, and how to open it.

use crate::device::Device;
use crate::error::HalError;
use crate::info::DeviceInfo;
use std::sync::Arc;
use thiserror::Error;
use yirage_plan::ExpertDivision;

/// Why a backend has no device here.
#[derive(Clone, PartialEq, Eq, Debug, Error)]
#[error("{backend}: {why}; {remedy}")]
pub struct Unavailable {
    /// The backend.
    pub backend: &'static str,
    /// The reason.
    pub why: String,
    /// What to do.
    pub remedy: String,
    /// Whether something of it is on this machine all the same: a library, or a device.
    pub present: bool,
}

/// How a device is opened.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct OpenOptions {
    /// Threads of a CPU device; by default what affinity, cgroup limits and `OMP_NUM_THREADS` allow.
    pub threads: Option<usize>,
    /// Instruction-set level; by default the best available.
    pub isa: Option<String>,
    /// Whether all memory that kernels touch ends at a page that nobody may touch, value by value, so that reading or
    /// writing past an end is a fault. An instrument of tests: it is slow and takes much memory.
    pub guarded: bool,
    /// Whether all threads of a CPU device take part in every step, also those whose processors are taken by others. By
    /// default such threads are left out while steps are faster without them; the results are the same.
    pub keep_stalled: bool,
    /// How a device that is one of several ranks shares a model's experts with the others. The output is the same.
    pub experts: ExpertDivision,
}

impl OpenOptions {
    /// What was given and means nothing to a device that is no processor, for whoever gave it; `device` is what that is instead, as
    /// "an accelerator".
    pub fn ignored_on(&self, device: &str) -> Vec<String> {
        let OpenOptions { threads, isa, guarded, keep_stalled, experts: _ } = self;
        let given = [
            ("threads", threads.is_some()),
            ("isa", isa.is_some()),
            ("guarded", *guarded),
            ("keep_stalled", *keep_stalled),
        ];
        let ignored = given.into_iter().filter(|&(_, given)| given);
        ignored.map(|(name, _)| format!("`{name}` is for processors: ignored on {device}")).collect()
    }
}

/// A family of devices.
pub trait Backend: Send + Sync {
    /// The name on command lines and in kernel names.
    fn name(&self) -> &'static str;
    /// The devices that are there, or why none is.
    fn probe(&self) -> Result<Vec<DeviceInfo>, Unavailable>;
    /// Opens a device. The second value holds what the user should know: refused pinning, clamped values.
    fn open(&self, ordinal: u32, options: &OpenOptions) -> Result<(Arc<dyn Device>, Vec<String>), HalError>;
}
