//! The backend and the device.

use super::program::CpuProgram;
use super::rules;
use super::state::CpuState;
use super::weight::{self, CpuWeight, Sink, packed_bytes};
use crate::isa::{Isa, IsaError};
use crate::pool::{Facts, Pool, PoolError};
use crate::room::{self, Room};
use std::sync::{Arc, Mutex, PoisonError};
use yirage_hal::{
    Backend, Bindings, Device, DeviceInfo, HalError, Limit, MemoryReport, OpenOptions, PoolBytes, Probe, Program,
    StateHandle, Unavailable, WeightHandle, WeightImage, WeightSink,
};
use yirage_ir::{Format, RegionKind, Type};
use yirage_plan::rules::OpRule;
use yirage_plan::{ExecutorKind, KernelFacts, Precision, Sharing, Stage, Target, VerifiedPlan, WeightEntry, When};

/// The layout of packed matrices. Another number for another layout.
pub(super) const PRODUCT_LAYOUT: &str = "tiles16x64@1";

/// Bytes of a thread's stack, as Rust's library makes it.
const STACK: u64 = 2 << 20;

/// The CPU backend.
pub struct Cpu;

impl Backend for Cpu {
    fn name(&self) -> &'static str {
        "cpu"
    }

    fn probe(&self) -> Result<Vec<DeviceInfo>, Unavailable> {
        Ok(vec![info(Isa::detect(), &Facts::read().budget(None), room::left())])
    }

    fn open(&self, ordinal: u32, options: &OpenOptions) -> Result<(Arc<dyn Device>, Vec<String>), HalError> {
        if ordinal != 0 {
            return Err(HalError::Option { option: "device", why: format!("there is one cpu, 0, and no {ordinal}") });
        }
        let isa = match &options.isa {
            Some(name) => Isa::parse(name).map_err(isa_error)?,
            None => Isa::detect(),
        };
        let facts = Facts::read();
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
        let room = room::left();
        let pool = Pool::new(budget.0).map_err(|e| match e {
            PoolError::Spawn { .. } => {
                HalError::OutOfMemory { pool: "threads", wanted: budget.0 as u64 * STACK, detail: e.to_string() }
            }
            e => HalError::Option { option: "threads", why: e.to_string() },
        })?;
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
        let shared = Shared { isa, pool, memory: Mutex::default() };
        Ok((Arc::new(CpuDevice { info: info(isa, &budget, room), shared: Arc::new(shared) }), notes))
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

fn info(isa: Isa, budget: &(usize, String), room: Option<Room>) -> DeviceInfo {
    let limit = room.as_ref().map(|room| ("memory_limit", room.limit.clone()));
    let facts = [
        ("threads", budget.0.to_string()),
        ("threads_reason", budget.1.clone()),
        ("isa_available", available_isas().join(" ")),
    ];
    DeviceInfo {
        backend: "cpu",
        ordinal: 0,
        name: model_name().unwrap_or_else(|| "unnamed processor".into()),
        arch: format!("{}/{isa}", std::env::consts::ARCH),
        // No byte at all would mean that nothing is known.
        memory_bytes: room.map_or(0, |room| room.bytes.max(1)),
        facts: facts.into_iter().chain(limit).collect(),
    }
}

fn available_isas() -> Vec<&'static str> {
    Isa::ALL.iter().filter(|i| i.available()).map(|i| i.name()).collect()
}

fn model_name() -> Option<String> {
    let text = std::fs::read_to_string("/proc/cpuinfo").ok()?;
    let line = text.lines().find(|l| l.starts_with("model name"))?;
    Some(line.split_once(':')?.1.trim().to_string())
}

/// What a device shares with its weights and programs.
pub(super) struct Shared {
    pub(super) isa: Isa,
    pub(super) pool: Pool,
    memory: Mutex<MemoryReport>,
}

/// Which account bytes are booked to.
#[derive(Clone, Copy)]
pub(super) enum Purpose {
    Weights,
    Cache,
    Arena,
}

/// Bytes booked for as long as the value lives.
pub(super) struct Booked {
    shared: Arc<Shared>,
    purpose: Purpose,
    bytes: u64,
}

impl Shared {
    fn account<R>(&self, purpose: Purpose, change: impl FnOnce(&mut PoolBytes) -> R) -> R {
        let mut report = self.memory.lock().unwrap_or_else(PoisonError::into_inner);
        change(match purpose {
            Purpose::Weights => &mut report.weights,
            Purpose::Cache => &mut report.cache,
            Purpose::Arena => &mut report.arena,
        })
    }
}

/// Books bytes to a purpose.
pub(super) fn book(shared: &Arc<Shared>, purpose: Purpose, bytes: u64) -> Booked {
    shared.account(purpose, |pool| {
        pool.used += bytes;
        pool.peak = pool.peak.max(pool.used);
    });
    Booked { shared: shared.clone(), purpose, bytes }
}

impl Drop for Booked {
    fn drop(&mut self) {
        self.shared.account(self.purpose, |pool| pool.used -= self.bytes);
    }
}

struct CpuDevice {
    info: DeviceInfo,
    shared: Arc<Shared>,
}

impl Device for CpuDevice {
    fn info(&self) -> &DeviceInfo {
        &self.info
    }

    fn target(&self) -> Target {
        let facts =
            |name: &str, regions: &[RegionKind], rules: Vec<OpRule>, scratch: bool, stages: &[Stage]| KernelFacts {
                name: format!("cpu/{name}@1"),
                variant: self.shared.isa.to_string(),
                regions: regions.to_vec(),
                rules,
                stages: stages.to_vec(),
                scratch,
            };
        let staging = Stage { sharing: Sharing::Shares, when: When::FloatInput };
        let filling = Stage { sharing: Sharing::Shares, when: When::NoState };
        let (shares, drained) = (Stage::always(Sharing::Shares), Stage::always(Sharing::Drained));
        let (row_wise, products) = ([RegionKind::Rows], [RegionKind::Products]);
        Target {
            family: "cpu".into(),
            arch: self.info.arch.clone(),
            workers: self.shared.pool.count() as u32,
            product_layout: PRODUCT_LAYOUT.into(),
            q8a_block_bytes: crate::activation::Q8_BLOCK_BYTES as u32,
            q8a_row_multiple: 64,
            align: 64,
            executors: vec![ExecutorKind::Steps, ExecutorKind::Persistent],
            kernels: vec![
                facts("rows", &row_wise, rules::rows(), false, &[shares]),
                facts("products", &products, rules::products(), true, &[staging, drained]),
                facts("experts", &products, rules::experts(), true, &[staging, shares, drained]),
                facts("attention", &[], rules::attention(), true, &[filling, drained, shares]),
                facts("gather", &[], rules::gather(), false, &[shares]),
                facts("sample", &[], rules::sample(), false, &[drained]),
            ],
        }
    }

    fn memory(&self) -> MemoryReport {
        *self.shared.memory.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn weight_bytes(&self, entry: &WeightEntry) -> Result<u64, HalError> {
        packed_bytes(entry)
    }

    fn state_block_bytes(&self, block: &Type, k_width: u32) -> Result<u64, HalError> {
        Ok(CpuState::shape(block, k_width)?.block_bytes() as u64)
    }

    fn weight(&self, entry: &WeightEntry) -> Result<Box<dyn WeightSink>, HalError> {
        Ok(Box::new(Sink::new(&self.shared, entry)?))
    }

    fn packing(&self) -> Option<String> {
        weight::packing(&self.shared).ok()
    }

    fn image<'a>(&self, handle: &'a WeightHandle) -> Result<&'a [u8], HalError> {
        let weight = handle.0.downcast_ref::<CpuWeight>();
        Ok(weight.ok_or_else(|| HalError::Load("the weight is of another device".into()))?.image())
    }

    fn adopt(&self, entry: &WeightEntry, image: WeightImage) -> Result<WeightHandle, HalError> {
        weight::adopt(&self.shared, entry, image)
    }

    fn state(&self, block: &Type, k_width: u32, blocks: usize) -> Result<StateHandle, HalError> {
        Ok(StateHandle(Arc::new(CpuState::new(&self.shared, block, k_width, blocks, Purpose::Cache)?)))
    }

    fn load(&self, plan: &VerifiedPlan, bindings: &Bindings) -> Result<Box<dyn Program>, HalError> {
        if *plan.target() != self.target() {
            let (made, own) = (plan.target().describe(), self.target().describe());
            return Err(HalError::Load(format!("it was proved for the target {made}; this device is {own}")));
        }
        Ok(Box::new(CpuProgram::new(&self.shared, plan, bindings)?))
    }

    fn probe(&self, limit: Limit) -> Result<Box<dyn Probe>, HalError> {
        super::probe::probe(&self.shared, limit)
    }

    fn product_limit(&self, precision: Precision, format: Format) -> Limit {
        let precision = match precision {
            Precision::Exact => crate::linear::Precision::Exact,
            Precision::Fast => crate::linear::Precision::Fast,
        };
        // A device's instruction set is available: there are kernels for it.
        crate::linear::Kernel::new(self.shared.isa, precision, format).map_or(Limit::F32, |k| k.limit())
    }
}
