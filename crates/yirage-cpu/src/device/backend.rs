//! The backend: opening the device with its threads and instruction set.

use super::info::info;
use super::on_cpu::CpuDevice;
use super::processor_defaults;
use crate::free_memory;
use crate::machine::ProcessorId;
use crate::peers::CpuPeers;
use crate::pool::{PoolError, ThreadBudgetInputs, ThreadPool};
use crate::shared::CpuContext;
use crate::straggler::WorkerMonitor;
use std::sync::Arc;
use yirage_cpu_kernels::isa::{Isa, IsaError};
use yirage_cpu_kernels::memory::{GUARDS, Supply};
use yirage_hal::{Backend, Device, DeviceInfo, HalError, OpenOptions, Unavailable};

/// Bytes of a thread's stack, as Rust's library makes it.
const STACK: u64 = 2 << 20;

/// The CPU backend.
pub struct Cpu;

/// The CPU as one of several ranks of a model. Its device computes what a plan says of a rank: that it is given its part of weights
/// and caches is somebody else's business.
pub struct CpuRank {
    peers: Arc<dyn CpuPeers>,
}

impl CpuRank {
    /// The CPU as the rank that has these peers.
    pub fn new(peers: Arc<dyn CpuPeers>) -> CpuRank {
        CpuRank { peers }
    }
}

impl Backend for Cpu {
    fn name(&self) -> &'static str {
        "cpu"
    }

    fn probe(&self) -> Result<Vec<DeviceInfo>, Unavailable> {
        Ok(vec![info(Isa::detect(), &ThreadBudgetInputs::read(), None, free_memory::available())])
    }

    fn open(&self, ordinal: u32, options: &OpenOptions) -> Result<(Arc<dyn Device>, Vec<String>), HalError> {
        open(ordinal, options, None)
    }
}

impl Backend for CpuRank {
    fn name(&self) -> &'static str {
        Cpu.name()
    }

    fn probe(&self) -> Result<Vec<DeviceInfo>, Unavailable> {
        Cpu.probe()
    }

    fn open(&self, ordinal: u32, options: &OpenOptions) -> Result<(Arc<dyn Device>, Vec<String>), HalError> {
        open(ordinal, options, Some(&self.peers))
    }
}

/// Opens the CPU, as a rank where it has peers.
fn open(
    ordinal: u32,
    options: &OpenOptions,
    peers: Option<&Arc<dyn CpuPeers>>,
) -> Result<(Arc<dyn Device>, Vec<String>), HalError> {
    if ordinal != 0 {
        return Err(HalError::Option { option: "device", why: format!("there is one cpu, 0, and no {ordinal}") });
    }
    let isa = match &options.isa {
        Some(name) => Isa::parse(name).map_err(isa_error)?,
        None => Isa::detect(),
    };
    let supply = if options.guarded { Supply::Guarded } else { Supply::Plain };
    if options.guarded && !GUARDS {
        let why = "this system has no pages that cannot be touched".into();
        return Err(HalError::Option { option: "guarded", why });
    }
    let facts = ThreadBudgetInputs::read();
    let (budget, most) = (facts.budget(options.threads), facts.most());
    if budget.0 > most {
        let (threads, processors) = (budget.0, facts.affinity);
        let why = format!(
            "{threads} threads would do little but wait for each other on the {processors} processors allowed to \
             this process; give {most} at most"
        );
        return Err(HalError::Option { option: "threads", why });
    }
    // Before threads begin, which reserve address space that they still have to give.
    let room = free_memory::available();
    let (rank, ranks) = peers.map_or((0, 1), |peers| (peers.rank(), peers.ranks() as usize));
    let pool = ThreadPool::beside(budget.0, rank, ranks).map_err(|e| match e {
        PoolError::Spawn { .. } => {
            HalError::OutOfMemory { pool: "threads", wanted: budget.0 as u64 * STACK, detail: e.to_string() }
        }
        e => HalError::Option { option: "threads", why: e.to_string() },
    })?;
    let (variant, _) = processor_defaults::choices(isa, ProcessorId::here().as_ref());
    let mut notes = Vec::new();
    if let Some(value) = &facts.omp_is_no_number {
        notes.push(format!("OMP_NUM_THREADS is {value:?}, which is no number of threads: it is not used"));
    }
    if budget.0 > facts.affinity {
        let (threads, processors) = (budget.0, facts.affinity);
        notes.push(format!("{threads} threads take turns on {processors} processors: fewer would be faster"));
    } else if let Some(why) = pool.pinning_refused() {
        notes.push(format!("threads are not pinned: {why}"));
    }
    let (watch, stalled) = watch(&pool, options.keep_stalled);
    let mut info = info(isa, &facts, options.threads, room);
    info.facts.push(("stalled_workers", stalled));
    let context = CpuContext::new(isa, (pool, watch), supply, variant, peers.cloned());
    Ok((Arc::new(CpuDevice::new(info, context)), notes))
}

/// What tells of workers whose processors are taken by others, if they are to be left out, and in words what is done.
fn watch(pool: &ThreadPool, keep_stalled: bool) -> (Option<WorkerMonitor>, String) {
    if keep_stalled {
        return (None, "kept: it was asked for".into());
    }
    if pool.count() == 1 {
        return (None, "kept: there is one".into());
    }
    match WorkerMonitor::new(&pool.threads()) {
        Ok(watch) => (Some(watch), "left out while that is faster".into()),
        Err(why) => (None, format!("kept: {why}")),
    }
}

/// A level that there is, but not here, is not supported; one that there is nowhere is a slip.
fn isa_error(error: IsaError) -> HalError {
    match &error {
        IsaError::Unknown(_) => HalError::Option { option: "isa", why: error.to_string() },
        IsaError::Unavailable { wanted, best } => HalError::Unsupported {
            what: format!("the instruction set {wanted}"),
            why: format!("this processor ({}) has {best} and those below it", std::env::consts::ARCH),
        },
    }
}
