//! A plan loaded on a device over a driver: one launch after the other on its queue.

use super::buffer::{Account, Buffer, Pool};
use super::contract::{Address, Download, Driver, ModuleId};
use super::library::{Library, Places};
use super::recordings::{Key, Recordings};
use super::state::State;
use super::weight::Weight;
use crate::device::{Bindings, Program};
use crate::error::HalError;
use crate::record::HostMemory;
use crate::step::{Fence, Finished, Pending, Resident, SlotValue, Step};
use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use yirage_ir::{Dims, Source, Type, ValueId};
use yirage_plan::{ExecutorKind, Plan, VerifiedPlan};

/// How long a step may take before its device counts as hanging.
const HANG_AFTER: Duration = Duration::from_secs(120);

/// The program.
pub(super) struct DriverProgram<D: Driver, L: Library> {
    account: Arc<Account<D>>,
    library: Arc<L>,
    plan: Plan,
    /// Forgotten before the code that they launch.
    recordings: Recordings<D>,
    code: Code<D>,
    /// Weights and states.
    bound: HashMap<ValueId, Bound<D>>,
    arena: Arc<Arena<D>>,
    slots: Vec<Slot<D>>,
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
enum Bound<D: Driver> {
    Weight(Arc<Weight<D>>),
    State(Arc<State<D>>),
}

/// A slot.
struct Slot<D: Driver> {
    id: ValueId,
    name: String,
    ty: Type,
    /// Memory for the largest step so far: many a bucket is far larger than any step.
    buffer: Option<Buffer<D>>,
}

/// Code, forgotten with the program.
struct Code<D: Driver> {
    account: Arc<Account<D>>,
    module: ModuleId,
}

/// An output where it lies.
struct Left<D: Driver> {
    arena: Arc<Arena<D>>,
    at: Address,
    step: u64,
}

impl<D: Driver, L: Library> DriverProgram<D, L> {
    pub(super) fn new(
        account: &Arc<Account<D>>,
        library: &Arc<L>,
        plan: &VerifiedPlan,
        bindings: &Bindings,
    ) -> Result<DriverProgram<D, L>, HalError> {
        let graph = &plan.graph;
        let mut bound = HashMap::new();
        for &id in &graph.inputs {
            let value = graph.value(id);
            let found = match value.source {
                Source::Weight => {
                    bindings.weights.get(&value.name).and_then(|w| w.0.clone().downcast().ok()).map(Bound::Weight)
                }
                Source::State => {
                    bindings.states.get(&value.name).and_then(|s| s.0.clone().downcast().ok()).map(Bound::State)
                }
                _ => continue,
            };
            let fits = found.filter(|found| found.fits(account, &value.ty));
            let missing = || format!("`{}` is not bound to memory of this device of type {}", value.name, value.ty);
            bound.insert(id, fits.ok_or_else(|| HalError::Load(missing()))?);
        }
        let slot = |id| {
            let value = graph.value(id);
            Slot { id, name: value.name.clone(), ty: value.ty.clone(), buffer: None }
        };
        let code = library.code(plan)?;
        Ok(DriverProgram {
            recordings: Recordings::new(),
            code: Code { account: account.clone(), module: account.driver.module(&code)? },
            bound,
            arena: bindings.arena.memory(
                |arena: &Arena<D>| arena.buffer.is_of(account) && arena.buffer.bytes() >= plan.arena,
                || {
                    Ok::<_, HalError>(Arena {
                        buffer: Buffer::new(account, Pool::Arena, plan.arena)?,
                        steps: AtomicU64::new(0),
                    })
                },
            )?,
            slots: graph.inputs_of(Source::Slot).map(slot).collect(),
            last: 0,
            plan: plan.clone().into_plan(),
            account: account.clone(),
            library: library.clone(),
        })
    }

    /// Where each slot lies in the step; what the host gives is on its way there.
    fn slots(&mut self, step: &Step) -> Result<HashMap<ValueId, Address>, HalError> {
        if let Some(sym) = step.dims.exceeds(&self.plan.bucket) {
            let (got, max) = (step.dims.get(sym), self.plan.bucket.get(sym));
            return Err(HalError::Step(format!("{} = {got} exceeds the {max} that the plan was made for", sym.name())));
        }
        if step.slots.len() != self.slots.len() {
            return Err(HalError::Step(format!(
                "{} slots are given, the plan has {}",
                step.slots.len(),
                self.slots.len()
            )));
        }
        let mut at = HashMap::new();
        for (slot, value) in self.slots.iter_mut().zip(&step.slots) {
            at.insert(slot.id, slot.fill(&self.account, &self.arena, value, &step.dims)?);
        }
        Ok(at)
    }

    /// Submits the launches of a step one by one.
    fn launch(&self, dims: &Dims, slots: HashMap<ValueId, Address>) -> Result<(), HalError> {
        let places = At { program: self, slots };
        for n in 0..self.plan.steps.len() {
            for launch in self.library.launches(&self.plan, self.code.module, n, dims, &places)? {
                self.account.driver.launch(launch)?;
            }
        }
        Ok(())
    }

    /// Submits the launches of a step as one recording.
    fn play(&mut self, dims: &Dims, slots: HashMap<ValueId, Address>) -> Result<(), HalError> {
        let mut recordings = std::mem::replace(&mut self.recordings, Recordings::new());
        let key =
            Key { dims: *dims, slots: self.slots.iter().filter_map(|slot| slots.get(&slot.id).copied()).collect() };
        let places = At { program: self, slots };
        let launches = || {
            let of = |n| self.library.launches(&self.plan, self.code.module, n, dims, &places);
            Ok((0..self.plan.steps.len()).map(of).collect::<Result<Vec<_>, HalError>>()?.concat())
        };
        let played = recordings.play(&self.account, key, launches);
        self.recordings = recordings;
        played
    }

    /// An output's place in the arena and its type.
    fn output(&self, index: usize) -> Result<(Address, &Type), HalError> {
        let place = self.plan.graph.outputs.get(index).and_then(|&id| self.plan.place(id));
        let place = place.ok_or_else(|| HalError::Step(format!("output {index} is not there, or is a cache state")))?;
        Ok((self.arena.buffer.at().offset(place.offset), self.plan.graph.ty(place.value)))
    }
}

impl<D: Driver> Slot<D> {
    /// Where the slot lies in a step of the program with this arena; what the host gives is on its way there.
    fn fill(
        &mut self,
        account: &Arc<Account<D>>,
        arena: &Arc<Arena<D>>,
        value: &SlotValue,
        dims: &Dims,
    ) -> Result<Address, HalError> {
        let bytes = self.ty.held_bytes(dims);
        match value {
            SlotValue::Host(memory) => {
                let got = memory.bytes().len();
                if got != bytes {
                    let Slot { name, ty, .. } = self;
                    return Err(HalError::Step(format!("slot `{name}` has {got} bytes, {ty} needs {bytes}")));
                }
                let at = self.room(account, bytes as u64)?;
                account.driver.upload(memory.clone(), at)?;
                Ok(at)
            }
            SlotValue::Resident(resident) => {
                let foreign = || HalError::Step(format!("slot `{}` lies on a device of another backend", self.name));
                let left = resident.0.downcast_ref::<Left<D>>().ok_or_else(foreign)?;
                left.check_current(&self.name)?;
                if !left.arena.buffer.is_of(account) {
                    let at = self.room(account, bytes as u64)?;
                    account.driver.copy_from(left.arena.buffer.driver(), left.at, at, bytes as u64)?;
                    return Ok(at);
                }
                if !Arc::ptr_eq(&left.arena, arena) {
                    return Ok(left.at);
                }
                // The step writes where it would read.
                let at = self.room(account, bytes as u64)?;
                account.driver.copy(left.at, at, bytes as u64)?;
                Ok(at)
            }
        }
    }

    /// Memory of so many bytes. The memory of steps before is given back behind them.
    fn room(&mut self, account: &Arc<Account<D>>, bytes: u64) -> Result<Address, HalError> {
        match &self.buffer {
            Some(buffer) if buffer.bytes() >= bytes => Ok(buffer.at()),
            _ => {
                let room = bytes.checked_next_power_of_two().unwrap_or(bytes);
                Ok(self.buffer.insert(Buffer::new(account, Pool::Arena, room)?).at())
            }
        }
    }
}

impl<D: Driver> Left<D> {
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
    fn submit(&mut self, step: Step) -> Result<Fence, HalError> {
        let slots = self.slots(&step)?;
        self.last = self.arena.steps.fetch_add(1, Ordering::Relaxed) + 1;
        match step.kind {
            ExecutorKind::Steps => self.launch(&step.dims, slots)?,
            ExecutorKind::Replay => self.play(&step.dims, slots)?,
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
        let given = step.slots.into_iter().filter_map(SlotValue::into_host).collect();
        Ok(Fence::Pending(Box::new(InQueue { account: self.account.clone(), value, downloads, _given: given })))
    }

    fn resident(&self, index: usize) -> Result<Resident, HalError> {
        let (at, _) = self.output(index)?;
        Ok(Resident(Arc::new(Left { arena: self.arena.clone(), at, step: self.last })))
    }
}

/// Where values lie in a step.
struct At<'a, D: Driver, L: Library> {
    program: &'a DriverProgram<D, L>,
    slots: HashMap<ValueId, Address>,
}

impl<D: Driver, L: Library> Places for At<'_, D, L> {
    fn address(&self, value: ValueId) -> Result<Address, HalError> {
        let DriverProgram { plan, bound, arena, .. } = self.program;
        let value = plan.graph.state_of(value).unwrap_or(value);
        let given = self.slots.get(&value).copied().or_else(|| bound.get(&value).map(Bound::at));
        let placed = || plan.place(value).map(|place| arena.buffer.at().offset(place.offset));
        let missing = || HalError::Load(format!("`{}` has no place in memory", plan.graph.value(value).name));
        given.or_else(placed).ok_or_else(missing)
    }

    fn blocks(&self, state: ValueId) -> Result<u32, HalError> {
        let DriverProgram { plan, bound, .. } = self.program;
        let id = plan.graph.state_of(state).and_then(|id| bound.get(&id));
        match id {
            Some(Bound::State(state)) => Ok(state.blocks),
            _ => Err(HalError::Load(format!("`{}` is no cache state", plan.graph.value(state).name))),
        }
    }
}

impl<D: Driver> Bound<D> {
    fn fits(&self, account: &Arc<Account<D>>, ty: &Type) -> bool {
        match self {
            Bound::Weight(weight) => weight.buffer.is_of(account) && weight.ty == ty.dense(),
            Bound::State(state) => state.buffer.is_of(account) && state.block == *ty,
        }
    }

    fn at(&self) -> Address {
        match self {
            Bound::Weight(weight) => weight.buffer.at(),
            Bound::State(state) => state.buffer.at(),
        }
    }
}

impl<D: Driver> Drop for Code<D> {
    fn drop(&mut self) {
        self.account.driver.unload(self.module);
    }
}

/// A step on the queue.
struct InQueue<D: Driver> {
    account: Arc<Account<D>>,
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

    fn wait(self: Box<Self>) -> Result<Finished, HalError> {
        self.account.driver.wait(self.value, HANG_AFTER)?;
        Ok(Finished { outputs: self.downloads.into_iter().map(Download::take).collect() })
    }
}
