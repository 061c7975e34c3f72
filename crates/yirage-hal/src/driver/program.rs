//! A plan loaded on a device over a driver: one launch after the other on its queue.

use super::buffer::{Buffer, DriverAccount, MemoryPool};
use super::captured_graphs::{CapturedGraphKey, CapturedGraphs};
use super::contract::{Address, Download, Driver, ModuleId};
use super::kv_cache::DeviceKvCache;
use super::library::{Library, ValueAddresses};
use super::weight::DeviceWeight;
use crate::device::{Bindings, Program};
use crate::error::HalError;
use crate::record::HostMemory;
use crate::step::{Fence, OutputHandle, Pending, StepInputValue, StepOutputs, StepRequest};
use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use yirage_ir::{Dims, Type, ValueId, ValueSource};
use yirage_plan::{ExecutorKind, Plan, VerifiedPlan};

/// How long a step may take before its device counts as hanging.
const HANG_AFTER: Duration = Duration::from_secs(120);

/// The program.
pub(super) struct DriverProgram<D: Driver, L: Library> {
    account: Arc<DriverAccount<D>>,
    library: Arc<L>,
    plan: Plan,
    /// Forgotten before the code that they launch.
    captured_graphs: CapturedGraphs<D>,
    code: LoadedModule<D>,
    /// Weights and states.
    bound: HashMap<ValueId, BoundBuffer<D>>,
    arena: Arc<Arena<D>>,
    inputs: Vec<DriverStepInput<D>>,
    /// The number of the last step among those that write to the arena.
    last: u64,
}

/// Memory for the values of programs of which one runs at a time.
struct Arena<D: Driver> {
    buffer: Buffer<D>,
    /// Steps that were submitted to write there, which whoever was given an output looks at.
    steps: AtomicU64,
}

/// Memory of a weight or a state, kept for as long as the program is.
enum BoundBuffer<D: Driver> {
    Weight(Arc<DeviceWeight<D>>),
    KvCache(Arc<DeviceKvCache<D>>),
}

/// A slot.
struct DriverStepInput<D: Driver> {
    id: ValueId,
    name: String,
    ty: Type,
    /// Memory for the largest step so far: many a bucket is far larger than any step.
    buffer: Option<Buffer<D>>,
}

/// Code, forgotten with the program.
struct LoadedModule<D: Driver> {
    account: Arc<DriverAccount<D>>,
    module: ModuleId,
}

/// An output where it lies.
struct DeviceOutput<D: Driver> {
    arena: Arc<Arena<D>>,
    at: Address,
    step: u64,
}

impl<D: Driver, L: Library> DriverProgram<D, L> {
    pub(super) fn new(
        account: &Arc<DriverAccount<D>>,
        library: &Arc<L>,
        plan: &VerifiedPlan,
        bindings: &Bindings,
    ) -> Result<DriverProgram<D, L>, HalError> {
        let graph = &plan.graph;
        let mut bound = HashMap::new();
        for &id in &graph.inputs {
            let value = graph.value(id);
            let found = match value.source {
                ValueSource::Weight => {
                    bindings.weights.get(&value.name).and_then(|w| w.0.clone().downcast().ok()).map(BoundBuffer::Weight)
                }
                ValueSource::KvCache => bindings
                    .kv_caches
                    .get(&value.name)
                    .and_then(|s| s.0.clone().downcast().ok())
                    .map(BoundBuffer::KvCache),
                _ => continue,
            };
            let fits = found.filter(|found| found.fits(account, &value.ty));
            let missing = || format!("`{}` is not bound to memory of this device of type {}", value.name, value.ty);
            bound.insert(id, fits.ok_or_else(|| HalError::Load(missing()))?);
        }
        let slot = |id| {
            let value = graph.value(id);
            DriverStepInput { id, name: value.name.clone(), ty: value.ty.clone(), buffer: None }
        };
        let code = library.code(plan)?;
        Ok(DriverProgram {
            captured_graphs: CapturedGraphs::new(),
            code: LoadedModule { account: account.clone(), module: account.driver.module(&code)? },
            bound,
            arena: bindings.arena.memory(
                |arena: &Arena<D>| arena.buffer.is_of(account) && arena.buffer.bytes() >= plan.arena,
                || {
                    Ok::<_, HalError>(Arena {
                        buffer: Buffer::new(account, MemoryPool::Arena, plan.arena)?,
                        steps: AtomicU64::new(0),
                    })
                },
            )?,
            inputs: graph.inputs_of(ValueSource::StepInput).map(slot).collect(),
            last: 0,
            plan: plan.clone().into_plan(),
            account: account.clone(),
            library: library.clone(),
        })
    }

    /// Where each slot lies in the step; what the host gives is on its way there.
    fn input_addresses(&mut self, step: &StepRequest) -> Result<HashMap<ValueId, Address>, HalError> {
        if let Some(sym) = step.dims.exceeds(&self.plan.bucket) {
            let (got, max) = (step.dims.get(sym), self.plan.bucket.get(sym));
            return Err(HalError::Step(format!("{} = {got} exceeds the {max} that the plan was made for", sym.name())));
        }
        if step.inputs.len() != self.inputs.len() {
            return Err(HalError::Step(format!(
                "{} slots are given, the plan has {}",
                step.inputs.len(),
                self.inputs.len()
            )));
        }
        let mut at = HashMap::new();
        for (slot, value) in self.inputs.iter_mut().zip(&step.inputs) {
            at.insert(slot.id, slot.fill(&self.account, &self.arena, value, &step.dims)?);
        }
        Ok(at)
    }

    /// Submits the launches of a step one by one.
    fn launch(&self, dims: &Dims, slots: HashMap<ValueId, Address>) -> Result<(), HalError> {
        let places = StepAddresses { program: self, inputs: slots };
        for n in 0..self.plan.steps.len() {
            for launch in self.library.launches(&self.plan, self.code.module, n, dims, &places)? {
                self.account.driver.launch(launch)?;
            }
        }
        Ok(())
    }

    /// Submits the launches of a step as one recording.
    fn replay(&mut self, dims: &Dims, slots: HashMap<ValueId, Address>) -> Result<(), HalError> {
        let mut recordings = std::mem::replace(&mut self.captured_graphs, CapturedGraphs::new());
        let key = CapturedGraphKey {
            dims: *dims,
            inputs: self.inputs.iter().filter_map(|slot| slots.get(&slot.id).copied()).collect(),
        };
        let places = StepAddresses { program: self, inputs: slots };
        let launches = || {
            let of = |n| self.library.launches(&self.plan, self.code.module, n, dims, &places);
            Ok((0..self.plan.steps.len()).map(of).collect::<Result<Vec<_>, HalError>>()?.concat())
        };
        let played = recordings.replay(&self.account, key, launches);
        self.captured_graphs = recordings;
        played
    }

    /// An output's place in the arena and its type.
    fn output(&self, index: usize) -> Result<(Address, &Type), HalError> {
        let place = self.plan.graph.outputs.get(index).and_then(|&id| self.plan.placement(id));
        let place = place.ok_or_else(|| HalError::Step(format!("output {index} is not there, or is a cache state")))?;
        Ok((self.arena.buffer.at().offset(place.offset), self.plan.graph.ty(place.value)))
    }
}

impl<D: Driver> DriverStepInput<D> {
    /// Where the slot lies in a step of the program with this arena; what the host gives is on its way there.
    fn fill(
        &mut self,
        account: &Arc<DriverAccount<D>>,
        arena: &Arc<Arena<D>>,
        value: &StepInputValue,
        dims: &Dims,
    ) -> Result<Address, HalError> {
        let bytes = self.ty.storage_bytes(dims);
        match value {
            StepInputValue::Host(memory) => {
                let got = memory.bytes().len();
                if got != bytes {
                    let DriverStepInput { name, ty, .. } = self;
                    return Err(HalError::Step(format!("slot `{name}` has {got} bytes, {ty} needs {bytes}")));
                }
                let at = self.reserve(account, bytes as u64)?;
                account.driver.upload(memory.clone(), at)?;
                Ok(at)
            }
            StepInputValue::Resident(resident) => {
                let foreign = || HalError::Step(format!("slot `{}` lies on a device of another backend", self.name));
                let left = resident.0.downcast_ref::<DeviceOutput<D>>().ok_or_else(foreign)?;
                left.check_current(&self.name)?;
                if !left.arena.buffer.is_of(account) {
                    let at = self.reserve(account, bytes as u64)?;
                    account.driver.copy_from(left.arena.buffer.driver(), left.at, at, bytes as u64)?;
                    return Ok(at);
                }
                if !Arc::ptr_eq(&left.arena, arena) {
                    return Ok(left.at);
                }
                // The step writes where it would read.
                let at = self.reserve(account, bytes as u64)?;
                account.driver.copy(left.at, at, bytes as u64)?;
                Ok(at)
            }
        }
    }

    /// Memory of so many bytes. The memory of steps before is given back behind them.
    fn reserve(&mut self, account: &Arc<DriverAccount<D>>, bytes: u64) -> Result<Address, HalError> {
        match &self.buffer {
            Some(buffer) if buffer.bytes() >= bytes => Ok(buffer.at()),
            _ => {
                let room = bytes.checked_next_power_of_two().unwrap_or(bytes);
                Ok(self.buffer.insert(Buffer::new(account, MemoryPool::Arena, room)?).at())
            }
        }
    }
}

impl<D: Driver> DeviceOutput<D> {
    /// That no later step has written over it.
    fn check_current(&self, slot: &str) -> Result<(), HalError> {
        let late = self.arena.steps.load(Ordering::Relaxed) - self.step;
        if late == 0 {
            return Ok(());
        }
        Err(HalError::Step(format!("slot `{slot}` is given an output that {late} later steps have written over")))
    }
}

impl<D: Driver, L: Library> Program for DriverProgram<D, L> {
    fn submit(&mut self, step: StepRequest) -> Result<Fence, HalError> {
        let slots = self.input_addresses(&step)?;
        self.last = self.arena.steps.fetch_add(1, Ordering::Relaxed) + 1;
        match step.kind {
            ExecutorKind::Steps => self.launch(&step.dims, slots)?,
            ExecutorKind::Replay => self.replay(&step.dims, slots)?,
            ExecutorKind::Persistent => {
                let why = "the device runs one launch after the other".into();
                return Err(HalError::Unsupported { what: "a persistent executor".into(), why });
            }
        }
        let driver = &self.account.driver;
        let read = |&index: &usize| {
            let (at, ty) = self.output(index)?;
            Ok(driver.download(at, ty.bytes(&step.dims) as u64)?)
        };
        let downloads = step.reads.iter().map(read).collect::<Result<Vec<_>, HalError>>()?;
        let value = driver.signal()?;
        let given = step.inputs.into_iter().filter_map(StepInputValue::into_host).collect();
        Ok(Fence::Pending(Box::new(InQueue { account: self.account.clone(), value, downloads, _given: given })))
    }

    fn output_handle(&self, index: usize) -> Result<OutputHandle, HalError> {
        let (at, _) = self.output(index)?;
        Ok(OutputHandle(Arc::new(DeviceOutput { arena: self.arena.clone(), at, step: self.last })))
    }
}

/// Where values lie in a step.
struct StepAddresses<'a, D: Driver, L: Library> {
    program: &'a DriverProgram<D, L>,
    inputs: HashMap<ValueId, Address>,
}

impl<D: Driver, L: Library> ValueAddresses for StepAddresses<'_, D, L> {
    fn address(&self, value: ValueId) -> Result<Address, HalError> {
        let DriverProgram { plan, bound, arena, .. } = self.program;
        let value = plan.graph.kv_cache_of(value).unwrap_or(value);
        let given = self.inputs.get(&value).copied().or_else(|| bound.get(&value).map(BoundBuffer::at));
        let placed = || plan.placement(value).map(|place| arena.buffer.at().offset(place.offset));
        let missing = || HalError::Load(format!("`{}` has no place in memory", plan.graph.value(value).name));
        given.or_else(placed).ok_or_else(missing)
    }

    fn blocks(&self, state: ValueId) -> Result<u32, HalError> {
        let DriverProgram { plan, bound, .. } = self.program;
        let id = plan.graph.kv_cache_of(state).and_then(|id| bound.get(&id));
        match id {
            Some(BoundBuffer::KvCache(state)) => Ok(state.blocks),
            _ => Err(HalError::Load(format!("`{}` is no cache state", plan.graph.value(state).name))),
        }
    }
}

impl<D: Driver> BoundBuffer<D> {
    fn fits(&self, account: &Arc<DriverAccount<D>>, ty: &Type) -> bool {
        match self {
            BoundBuffer::Weight(weight) => weight.buffer.is_of(account) && weight.ty == ty.dense(),
            BoundBuffer::KvCache(state) => state.buffer.is_of(account) && state.block == *ty,
        }
    }

    fn at(&self) -> Address {
        match self {
            BoundBuffer::Weight(weight) => weight.buffer.at(),
            BoundBuffer::KvCache(state) => state.buffer.at(),
        }
    }
}

impl<D: Driver> Drop for LoadedModule<D> {
    fn drop(&mut self) {
        self.account.driver.unload(self.module);
    }
}

/// A step on the queue.
struct InQueue<D: Driver> {
    account: Arc<DriverAccount<D>>,
    value: u64,
    downloads: Vec<Box<dyn Download>>,
    /// What the host gave, which its owners may want back only when the step is over.
    _given: Vec<Arc<dyn HostMemory>>,
}

impl<D: Driver> Pending for InQueue<D> {
    fn is_done(&self) -> bool {
        // Of a lost device nothing more comes.
        self.account.driver.reached().map_or(true, |reached| reached >= self.value)
    }

    fn wait(self: Box<Self>) -> Result<StepOutputs, HalError> {
        self.account.driver.wait(self.value, HANG_AFTER)?;
        Ok(StepOutputs { outputs: self.downloads.into_iter().map(Download::take).collect() })
    }
}
