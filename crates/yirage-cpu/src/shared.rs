//! What a device shares with all that it holds and runs: its threads, its instruction set, and the account of its memory.

use crate::peers::CpuPeers;
use crate::pool::ThreadPool;
use crate::straggler::WorkerMonitor;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use yirage_cpu_kernels::isa::Isa;
use yirage_cpu_kernels::linear::MatmulVariant;
use yirage_cpu_kernels::memory::Supply;
use yirage_hal::{HalError, MemoryReport, PoolBytes, Profiler};

/// Threads, instruction set and account of a device.
pub(crate) struct CpuContext {
    pub(crate) isa: Isa,
    pub(crate) pool: ThreadPool,
    /// What the system counts of the pool's threads; none where all workers take part in every step.
    pub(crate) watch: Option<Mutex<WorkerMonitor>>,
    /// Where memory for what kernels touch comes from.
    pub(crate) supply: Supply,
    /// How products of programs are computed that are given no other way.
    pub(crate) variant: MatmulVariant,
    /// Where programs write the times of their tasks, if they are to.
    pub(crate) profiler: OnceLock<Arc<Profiler>>,
    /// The ranks that its programs compute with, where it is one of several.
    pub(crate) peers: Option<Arc<dyn CpuPeers>>,
    turn: Mutex<()>,
    memory: Mutex<MemoryReport>,
}

/// Leave to run a program of a device and to look at what its programs have computed: one thread has it at a time.
pub(crate) struct RunPermit<'a> {
    _held: MutexGuard<'a, ()>,
}

/// Which account bytes are booked to.
#[derive(Clone, Copy)]
pub(crate) enum MemoryPurpose {
    Weights,
    Cache,
    Arena,
}

/// Bytes booked for as long as the value lives.
pub(crate) struct MemoryReservation {
    shared: Arc<CpuContext>,
    purpose: MemoryPurpose,
    bytes: u64,
}

impl CpuContext {
    /// With nothing booked.
    pub(crate) fn new(
        isa: Isa,
        (pool, watch): (ThreadPool, Option<WorkerMonitor>),
        supply: Supply,
        variant: MatmulVariant,
        peers: Option<Arc<dyn CpuPeers>>,
    ) -> CpuContext {
        let (profiler, turn, memory) = (OnceLock::new(), Mutex::default(), Mutex::default());
        CpuContext { isa, pool, watch: watch.map(Mutex::new), supply, variant, profiler, peers, turn, memory }
    }

    /// How products are computed by the choices of a text, if there is one.
    ///
    /// # Errors
    /// [`HalError::Option`] for choices and values that there are not, and for those that need what this CPU lacks.
    pub(crate) fn parse_variant(&self, text: Option<&str>) -> Result<MatmulVariant, HalError> {
        let bad = |why: String| HalError::Option { option: "variant", why };
        let way = self.variant.with(text.unwrap_or_default()).map_err(|e| bad(e.to_string()))?;
        way.require().map_err(|e| bad(e.to_string()))?;
        Ok(way)
    }

    /// Waits until no program of the device runs.
    pub(crate) fn turn(&self) -> RunPermit<'_> {
        RunPermit { _held: self.turn.lock().unwrap_or_else(PoisonError::into_inner) }
    }

    /// Bytes held, by purpose.
    pub(crate) fn memory(&self) -> MemoryReport {
        *self.memory.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn account<R>(&self, purpose: MemoryPurpose, change: impl FnOnce(&mut PoolBytes) -> R) -> R {
        let mut report = self.memory.lock().unwrap_or_else(PoisonError::into_inner);
        change(match purpose {
            MemoryPurpose::Weights => &mut report.weights,
            MemoryPurpose::Cache => &mut report.cache,
            MemoryPurpose::Arena => &mut report.arena,
        })
    }
}

/// Books bytes to a purpose.
pub(crate) fn book(shared: &Arc<CpuContext>, purpose: MemoryPurpose, bytes: u64) -> MemoryReservation {
    shared.account(purpose, |pool| {
        pool.used += bytes;
        pool.peak = pool.peak.max(pool.used);
    });
    MemoryReservation { shared: shared.clone(), purpose, bytes }
}

impl Drop for MemoryReservation {
    fn drop(&mut self) {
        self.shared.account(self.purpose, |pool| pool.used -= self.bytes);
    }
}
