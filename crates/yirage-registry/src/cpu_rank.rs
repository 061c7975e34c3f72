//! The CPU as a rank of a group whose other ranks are in other processes.

use std::sync::Arc;
use yirage_cpu::{CpuPeers, CpuRank};
use yirage_hal::{Backend, Device, DeviceInfo, HalError, OpenOptions, Unavailable};
use yirage_ir::{DType, Op};
use yirage_ranks::{RankDevice, RankGroup};

/// The CPU, which is given whole weights and holds its part.
pub(crate) struct CpuOfGroup {
    group: Arc<RankGroup>,
    cpu: CpuRank,
}

/// A group as the CPU's kernels reach it.
struct GroupPeers(Arc<RankGroup>);

impl CpuPeers for GroupPeers {
    fn rank(&self) -> usize {
        self.0.rank()
    }

    fn ranks(&self) -> u32 {
        self.0.ranks()
    }

    fn meet(&self, op: &Op, dtype: DType, size: [usize; 2], bytes: &[u8]) -> Result<Vec<u8>, String> {
        self.0.meet(op, dtype, size, bytes).map_err(|error| error.to_string())
    }
}

impl CpuOfGroup {
    pub(crate) fn new(group: Arc<RankGroup>) -> CpuOfGroup {
        let cpu = CpuRank::new(Arc::new(GroupPeers(group.clone())));
        CpuOfGroup { group, cpu }
    }
}

impl Backend for CpuOfGroup {
    fn name(&self) -> &'static str {
        self.cpu.name()
    }

    fn probe(&self) -> Result<Vec<DeviceInfo>, Unavailable> {
        self.cpu.probe()
    }

    fn open(&self, ordinal: u32, options: &OpenOptions) -> Result<(Arc<dyn Device>, Vec<String>), HalError> {
        let (device, notes) = self.cpu.open(ordinal, options)?;
        // A group of one has no collectives.
        let device = match self.group.ranks() {
            0 | 1 => device,
            _ => Arc::new(RankDevice::new(device, self.group.clone(), options.experts)?),
        };
        Ok((device, notes))
    }
}
