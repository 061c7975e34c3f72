//! Times of tasks, as an array and as a file.

use super::arguments::WORDS;
use super::shared::{Profiled, SharedKernel, wrong};
use crate::failure::{PyFailure, PyOutcome};
use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};
use yirage_dlpack::InPlace;
use yirage_hal::Profile;
use yirage_persistent::PersistentKernel;

/// Writes the times so far to where the kernel was told; gives how many tasks there was no room for.
pub(super) fn write_out(shared: &SharedKernel, kernel: &PersistentKernel) -> PyOutcome<u64> {
    let (Some(Profiled { tensor, trace_name }), Some(profile)) = (shared.profiled.as_deref(), kernel.profile()) else {
        return Ok(0);
    };
    if let Some(tensor) = tensor {
        fill(tensor, &profile);
    }
    if let Some(name) = trace_name {
        trace(&profile, &PathBuf::from(format!("{name}.perfetto-trace")))?;
    }
    Ok(profile.dropped)
}

/// A row for each task, and 0 behind them.
fn fill(tensor: &InPlace, profile: &Profile) {
    let tasks = profile.tasks.iter().map(|task| [task.worker as u64, u64::from(task.task), task.began, task.ended]);
    let words = tasks.flatten().chain(std::iter::repeat(0)).take(tensor.elements() / WORDS * WORDS);
    // Nanoseconds of 64 bits keep their bits.
    words.enumerate().for_each(|(at, word)| {
        tensor.set_int(at, word as i64);
    });
}

/// Writes the times so far as a trace.
pub(super) fn write_trace(kernel: &PersistentKernel, path: &Path) -> PyOutcome<()> {
    let nothing = || wrong("write_trace: nothing was kept: give the constructor profiler_tensor or trace_name".into());
    trace(&kernel.profile().ok_or_else(nothing)?, path)
}

fn trace(profile: &Profile, path: &Path) -> PyOutcome<()> {
    let failed = |e: std::io::Error| PyFailure::io("write", path, &e);
    let mut file = BufWriter::new(File::create(path).map_err(failed)?);
    yirage_explain::write_trace(profile, &mut file).map_err(failed)?;
    file.flush().map_err(failed)
}
