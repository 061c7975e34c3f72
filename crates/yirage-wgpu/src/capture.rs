//! Captured graphs: commands with all that they need, recorded again for every replay.

use crate::recorder::RecordedCommand;
use std::collections::HashMap;
use std::sync::Arc;
use yirage_hal::driver::{CapturedGraphId, DriverError};

/// The graphs of a device.
#[derive(Default)]
pub(crate) struct CapturedGraphs {
    graphs: HashMap<u64, Arc<[RecordedCommand]>>,
    last: u64,
}

impl CapturedGraphs {
    pub(crate) fn add(&mut self, commands: Vec<RecordedCommand>) -> CapturedGraphId {
        self.last += 1;
        self.graphs.insert(self.last, commands.into());
        CapturedGraphId(self.last)
    }

    pub(crate) fn get(&self, graph: CapturedGraphId) -> Result<Arc<[RecordedCommand]>, DriverError> {
        let gone = || crate::errors::refused("replay", format!("there is no captured graph {}", graph.0));
        self.graphs.get(&graph.0).cloned().ok_or_else(gone)
    }

    pub(crate) fn remove(&mut self, graph: CapturedGraphId) {
        self.graphs.remove(&graph.0);
    }
}
