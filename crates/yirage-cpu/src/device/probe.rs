//! The ceilings of this machine, measured on the device's own threads.

use crate::free_memory;
use crate::shared::CpuContext;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::Instant;
use yirage_cpu_kernels::isa::Isa;
use yirage_cpu_kernels::limits::{self, Arithmetic};
use yirage_cpu_kernels::memory::HugeBuf;
use yirage_hal::{HalError, Limit, LimitProbe};

/// Least size of the memory that is read.
const MEMORY: usize = 256 << 20;
/// That memory is at least so many times the last cache.
const CACHES: usize = 6;
/// Bytes that a thread takes at a time: shorter pieces cost bandwidth.
const PIECE: usize = 1 << 20;
/// Passes over the memory in one reading.
const PASSES: usize = 2;
/// Seconds that a reading of arithmetic takes at least.
const SECONDS: f64 = 4e-3;

/// Sets up a measurement.
pub(super) fn probe(shared: &Arc<CpuContext>, limit: Limit) -> Result<Box<dyn LimitProbe>, HalError> {
    if limit == Limit::MemoryRead {
        return Ok(Box::new(MemoryBandwidthProbe::new(shared)?));
    }
    let peak = arithmetic(shared.isa, limit).ok_or_else(|| HalError::Unsupported {
        what: format!("the limit of {limit}"),
        why: format!("the instruction set {} has no such instruction", shared.isa),
    })?;
    Ok(Box::new(Peak::new(shared, peak)?))
}

/// The loop for a ceiling of arithmetic on an instruction set; none where the set has no such instruction, and for memory.
fn arithmetic(isa: Isa, limit: Limit) -> Option<Arithmetic> {
    match limit {
        Limit::MemoryRead => None,
        Limit::F32 => Some(limits::f32(isa)),
        Limit::Bf16 => limits::bf16(isa),
        Limit::Int8 { bits } => Some(limits::int8(isa, u32::from(bits))),
    }
}

/// Seconds in which all workers have run `f`, from when the last of them began.
fn timed(shared: &CpuContext, f: impl Fn() -> u64 + Sync) -> Result<f64, HalError> {
    let nanos = AtomicU64::new(0);
    let run = shared.pool.try_run(|ctx| {
        ctx.barrier();
        let began = Instant::now();
        std::hint::black_box(f());
        ctx.barrier();
        if ctx.index == 0 {
            nanos.store(began.elapsed().as_nanos() as u64, Ordering::Relaxed);
        }
    });
    run.map_err(|e| HalError::Device(e.to_string()))?;
    Ok(nanos.into_inner().max(1) as f64 / 1e9)
}

/// Reads memory that no cache holds.
struct MemoryBandwidthProbe {
    shared: Arc<CpuContext>,
    bytes: HugeBuf,
    method: String,
}

impl MemoryBandwidthProbe {
    fn new(shared: &Arc<CpuContext>) -> Result<MemoryBandwidthProbe, HalError> {
        let size = MEMORY.max(CACHES.saturating_mul(last_cache().unwrap_or(0)));
        let no_memory = |e: yirage_cpu_kernels::memory::OutOfMemory| HalError::OutOfMemory {
            pool: "probe",
            wanted: size as u64,
            detail: e.to_string(),
        };
        // All of it will be written to, which is where a control group that allows less would end the process.
        if let Some(room) = free_memory::available().filter(|room| room.bytes < size as u64) {
            let detail = format!("{} {}", room.bytes, room.limit);
            return Err(HalError::OutOfMemory { pool: "probe", wanted: size as u64, detail });
        }
        let mut bytes = HugeBuf::zeroed(size).map_err(no_memory)?;
        // Pages nobody has written to are all the same page of zeros.
        bytes.as_mut_slice().fill(1);
        let threads = shared.pool.count();
        let method =
            format!("{} MiB read {PASSES} times by {threads} threads in pieces of {} KiB", size >> 20, PIECE >> 10);
        Ok(MemoryBandwidthProbe { shared: shared.clone(), bytes, method })
    }
}

impl LimitProbe for MemoryBandwidthProbe {
    fn method(&self) -> &str {
        &self.method
    }

    fn read(&mut self) -> Result<f64, HalError> {
        let (isa, bytes) = (self.shared.isa, self.bytes.as_slice());
        let pieces = bytes.len().div_ceil(PIECE);
        let next = AtomicUsize::new(0);
        let seconds = timed(&self.shared, || {
            let mut sum = 0;
            loop {
                let piece = next.fetch_add(1, Ordering::Relaxed);
                if piece >= pieces * PASSES {
                    return sum;
                }
                let at = piece % pieces * PIECE;
                sum ^= limits::read(isa, &bytes[at..bytes.len().min(at + PIECE)]);
            }
        })?;
        Ok((bytes.len() * PASSES) as f64 / seconds)
    }
}

/// Size of the last-level cache, where the system says it.
pub(super) fn last_cache() -> Option<usize> {
    let size = |index: usize| {
        let text = std::fs::read_to_string(format!("/sys/devices/system/cpu/cpu0/cache/index{index}/size")).ok()?;
        text.trim().strip_suffix('K')?.parse::<usize>().ok()?.checked_mul(1024)
    };
    (0..8).filter_map(size).max()
}

/// A loop of arithmetic on all threads.
struct Peak {
    shared: Arc<CpuContext>,
    peak: Arithmetic,
    rounds: u64,
    method: String,
}

impl Peak {
    fn new(shared: &Arc<CpuContext>, peak: Arithmetic) -> Result<Peak, HalError> {
        let method = format!("{}, {} threads", peak.method, shared.pool.count());
        let mut out = Peak { shared: shared.clone(), peak, rounds: 1 << 10, method };
        while out.seconds()? < SECONDS && out.rounds < 1 << 40 {
            out.rounds *= 2;
        }
        Ok(out)
    }

    fn seconds(&self) -> Result<f64, HalError> {
        // SAFETY: the device's instruction set is available, and the loop was chosen for it.
        timed(&self.shared, || unsafe { (self.peak.run)(self.rounds) })
    }
}

impl LimitProbe for Peak {
    fn method(&self) -> &str {
        &self.method
    }

    fn read(&mut self) -> Result<f64, HalError> {
        let ops = self.peak.round_ops * self.rounds * self.shared.pool.count() as u64;
        Ok(ops as f64 / self.seconds()?)
    }
}
