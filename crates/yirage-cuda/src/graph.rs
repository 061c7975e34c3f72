//! Captured graphs, and the commands that they are made of.

use crate::kernels::ReadyLaunch;
use crate::runtime::{CudaGraph, CudaStream, DeviceRange};
use crate::status::refused;
use std::collections::HashMap;
use std::sync::Arc;
use yirage_hal::driver::{CapturedGraphId, DriverError};

/// A command with all that it needs.
pub(crate) enum ReadyCommand {
    Launch(ReadyLaunch),
    Copy { from: DeviceRange, to: DeviceRange },
    Fill { range: DeviceRange, byte: u8 },
}

impl ReadyCommand {
    /// Submits it; `before`: the command ahead of it in the same graph.
    pub(crate) fn submit(&self, stream: &CudaStream, before: Option<&ReadyCommand>) -> Result<(), DriverError> {
        match self {
            ReadyCommand::Launch(launch) => launch.submit(stream, matches!(before, Some(ReadyCommand::Launch(_)))),
            // The driver takes a copy of no byte for a mistake where it is captured.
            ReadyCommand::Copy { to: range, .. } | ReadyCommand::Fill { range, .. } if range.bytes() == 0 => Ok(()),
            ReadyCommand::Copy { from, to } => stream.copy(*from, *to),
            ReadyCommand::Fill { range, byte } => stream.fill(*range, *byte),
        }
    }
}

/// A graph, with the kernels that it runs.
pub(crate) struct CapturedCommands {
    pub(crate) graph: CudaGraph,
    _commands: Vec<ReadyCommand>,
}

impl CapturedCommands {
    /// Captures commands by a stream that nothing else is submitted to.
    pub(crate) fn new(stream: &CudaStream, commands: Vec<ReadyCommand>) -> Result<CapturedCommands, DriverError> {
        let before = |at: usize| at.checked_sub(1).and_then(|before| commands.get(before));
        let submit = |stream: &CudaStream| {
            commands.iter().enumerate().try_for_each(|(at, command)| command.submit(stream, before(at)))
        };
        let graph = stream.capture(submit)?;
        Ok(CapturedCommands { graph, _commands: commands })
    }
}

/// The graphs of a device.
#[derive(Default)]
pub(crate) struct CudaGraphs {
    all: HashMap<u64, Arc<CapturedCommands>>,
    last: u64,
}

impl CudaGraphs {
    pub(crate) fn add(&mut self, commands: CapturedCommands) -> CapturedGraphId {
        self.last += 1;
        self.all.insert(self.last, Arc::new(commands));
        CapturedGraphId(self.last)
    }

    pub(crate) fn get(&self, graph: CapturedGraphId) -> Result<&Arc<CapturedCommands>, DriverError> {
        self.all.get(&graph.0).ok_or_else(|| refused("replay", format!("there is no captured graph {}", graph.0)))
    }

    pub(crate) fn remove(&mut self, graph: CapturedGraphId) -> Option<Arc<CapturedCommands>> {
        self.all.remove(&graph.0)
    }
}
