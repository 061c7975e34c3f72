//! One process: what was opened does not survive a fork, and says so.

use crate::failure::{Class, PyFailure, PyOutcome};
use std::sync::atomic::{AtomicU32, Ordering};

/// The process that opened the first device; 0 while there is none.
static OWNER: AtomicU32 = AtomicU32::new(0);

/// Says that this process has devices or models from now on.
pub(crate) fn own() {
    // Whoever was first stays it.
    let _ = OWNER.compare_exchange(0, std::process::id(), Ordering::Relaxed, Ordering::Relaxed);
}

/// Refuses a process that is a fork of the one that opened devices: their threads are not there.
///
/// # Errors
/// A `ForkError`.
pub(crate) fn check() -> PyOutcome<()> {
    let (owner, own) = (OWNER.load(Ordering::Relaxed), std::process::id());
    if owner == 0 || owner == own {
        return Ok(());
    }
    let text = format!(
        "process {own} is a fork of process {owner}, which had opened a device or a model, and threads do not survive a \
         fork: start processes by multiprocessing's `spawn` or `forkserver`, or fork before anything is opened"
    );
    Err(PyFailure::Ours(Class::Fork, text))
}
