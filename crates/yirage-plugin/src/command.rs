//! Commands with all that they need, submitted now or kept in a captured graph.

use crate::abi::{RawLaunch, RawSlice};
use crate::device::DeviceTurn;
use crate::kernels::CompiledKernel;
use crate::status::{Answer, refused};
use std::sync::Arc;
use yirage_hal::driver::DriverError;

/// A command whose memory lies in buffers of the device.
pub(crate) enum PluginCommand {
    Launch { kernel: Arc<CompiledKernel>, grid: [u32; 3], slices: Vec<RawSlice> },
    Copy { from: RawSlice, to: RawSlice },
    Fill { slice: RawSlice, byte: u8 },
}

impl PluginCommand {
    /// Gives it to the device whose turn this is.
    pub(crate) fn submit(&self, device: &DeviceTurn<'_>) -> Result<(), DriverError> {
        match self {
            PluginCommand::Launch { kernel, grid, slices } => {
                let raw = RawLaunch {
                    module: kernel.module(),
                    kernel: kernel.name.as_ptr(),
                    grid: *grid,
                    threads: kernel.threads,
                    slices: slices.as_ptr(),
                    slice_count: slices.len(),
                };
                // SAFETY: the module has the kernel, every slice lies in memory of the device, and all of it lives through the call.
                let told =
                    device.ask("launch", |f, raw_device, message| unsafe { (f.launch)(raw_device, &raw, message) });
                told.map_err(|answer| of_kernel(&kernel.name.to_string_lossy(), answer))
            }
            PluginCommand::Copy { from, to } => {
                // SAFETY: both lie in memory of the device, and are as long.
                Ok(device.ask("copy", |f, raw, message| unsafe { (f.copy)(raw, *from, *to, message) })?)
            }
            PluginCommand::Fill { slice, byte } => {
                // SAFETY: it lies in memory of the device.
                Ok(device.ask("fill", |f, raw, message| unsafe { (f.fill)(raw, *slice, *byte, message) })?)
            }
        }
    }
}

/// What is wrong with a launch of a kernel, by its name.
fn of_kernel(entry: &str, answer: Answer) -> DriverError {
    match DriverError::from(answer) {
        DriverError::Failed { call, why } => refused(call, format!("kernel `{entry}`: {why}")),
        other => other,
    }
}
