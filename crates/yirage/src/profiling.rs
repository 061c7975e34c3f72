//! `--profile FILE`: the times of all tasks of a device, written when a command is done with it.

use crate::console::Console;
use crate::failure::CliFailure;
use crate::options::Layers;
use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use yirage_explain::write_trace;
use yirage_hal::{Device, Profile, Profiler};

/// Tasks that are kept, of all workers together: some thousand steps of a model, in 48 MiB.
const SPANS: usize = 1 << 21;

/// A profile that is to be written.
pub(crate) struct Profiling {
    file: PathBuf,
    profiler: Arc<Profiler>,
}

impl Profiling {
    /// Keeps the times of what is loaded on the device from now on, if the options want them. The file is made at once, so
    /// that one that cannot be written is known before anything is computed.
    ///
    /// # Errors
    /// A file that cannot be written; a device that keeps no such times.
    pub(crate) fn begin(layers: &Layers, device: &dyn Device) -> Result<Option<Profiling>, CliFailure> {
        let Some(file) = layers.text("profile").map(PathBuf::from) else { return Ok(None) };
        let profiler = device.profile(SPANS / device.target().queues() as usize)?;
        File::create(&file).map_err(|e| CliFailure::io(&file, e))?;
        Ok(Some(Profiling { file, profiler }))
    }

    /// Writes what there is.
    ///
    /// # Errors
    /// A file that cannot be written.
    pub(crate) fn write(&self, console: &Console) -> Result<(), CliFailure> {
        write(&self.file, &self.profiler.profile(), console)
    }
}

/// Writes a profile to a file.
///
/// # Errors
/// A file that cannot be written.
pub(crate) fn write(file: &Path, profile: &Profile, console: &Console) -> Result<(), CliFailure> {
    let written = File::create(file).and_then(|made| {
        let mut out = BufWriter::new(made);
        write_trace(profile, &mut out)?;
        out.flush()
    });
    written.map_err(|e| CliFailure::io(file, e))?;
    let (tasks, steps, name) = (profile.tasks.len(), profile.runs.len(), file.display());
    console.note(&format!("{name}: {tasks} tasks of {steps} steps; open it at https://ui.perfetto.dev"));
    if profile.dropped > 0 {
        console.note(&format!("{name}: {} further tasks had no room and are not in it", profile.dropped));
    }
    Ok(())
}
