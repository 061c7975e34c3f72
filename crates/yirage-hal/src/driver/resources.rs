//! What the commands of a program touch: memory, code and operations, kept for as long as anything may run them.

use super::arena::Arena;
use super::buffer::{Buffer, DriverAccount, MemoryPool};
use super::command::{CollectiveCall, MemoryCommand, ModuleId, OperationCall, OperationId, StepCommand};
use super::contract::{Driver, OperationLibrary};
use super::kernel_call::{GridExtent, KernelCall, KernelLaunch, LibraryOperation};
use super::kv_cache::DeviceKvCache;
use super::library::Library;
use super::memory::BufferSlice;
use super::operands::ValueSlices;
use super::step_inputs::DeviceStepInputs;
use super::weight::DeviceWeight;
use crate::device::Bindings;
use crate::error::HalError;
use std::collections::HashMap;
use std::sync::Arc;
use yirage_ir::{Dims, Type, ValueId, ValueSource};
use yirage_plan::{Plan, ValueLocation, WeightEntry};

/// Memory that a program is bound to, and its own.
pub(super) struct BoundMemory<D: Driver> {
    /// Weights and KV caches.
    bound: HashMap<ValueId, BoundBuffer<D>>,
    pub(super) arena: Arc<Arena<D>>,
}

/// Memory of a weight or a KV cache, kept for as long as the program is.
enum BoundBuffer<D: Driver> {
    Weight(Arc<DeviceWeight<D>>),
    KvCache(Arc<DeviceKvCache<D>>),
}

/// A program's commands, and all that they touch: whoever may still run them holds this.
pub(super) struct ProgramCommands<D: Driver> {
    calls: Vec<PreparedCall>,
    /// Of each step of the plan, how many calls there are up to its end.
    ends: Vec<usize>,
    // What runs is forgotten before the memory that it touches.
    _operations: Vec<OperationGuard<D>>,
    code: Arc<LoadedModule<D>>,
    workspace: Option<Buffer<D>>,
    _inputs: Vec<Arc<Buffer<D>>>,
    _memory: Arc<BoundMemory<D>>,
}

enum PreparedCall {
    Kernel(KernelLaunch),
    Operation { id: OperationId, workspace: u64, call: LibraryOperation },
    Collective(CollectiveCall<GridExtent>),
    Memory(MemoryCommand),
}

/// Code, forgotten with its program.
pub(super) struct LoadedModule<D: Driver> {
    account: Arc<DriverAccount<D>>,
    module: ModuleId,
}

/// A prepared operation, forgotten with its program.
struct OperationGuard<D: Driver> {
    account: Arc<DriverAccount<D>>,
    id: OperationId,
}

impl<D: Driver> BoundMemory<D> {
    pub(super) fn new(
        account: &Arc<DriverAccount<D>>,
        plan: &Plan,
        bindings: &Bindings,
    ) -> Result<BoundMemory<D>, HalError> {
        // Steps read weights, so all of them have to be there.
        account.transfers.finish(&account.driver)?;
        let arena = bindings.arena.memory(
            |arena: &Arena<D>| arena.fits(account, plan.arena),
            || Ok::<_, HalError>(Arena::new(Buffer::new(account, MemoryPool::Arena, plan.arena)?)),
        )?;
        Ok(BoundMemory { bound: bound_buffers(account, plan, bindings)?, arena })
    }
}

/// The weights and KV caches of a plan, each of its type on this device.
fn bound_buffers<D: Driver>(
    account: &Arc<DriverAccount<D>>,
    plan: &Plan,
    bindings: &Bindings,
) -> Result<HashMap<ValueId, BoundBuffer<D>>, HalError> {
    let graph = &plan.graph;
    let mut bound = HashMap::new();
    for &id in &graph.inputs {
        let value = graph.value(id);
        let found = match value.source {
            ValueSource::Weight => {
                bindings.weights.get(&value.name).and_then(|w| w.0.clone().downcast().ok()).map(BoundBuffer::Weight)
            }
            ValueSource::KvCache => {
                bindings.kv_caches.get(&value.name).and_then(|s| s.0.clone().downcast().ok()).map(BoundBuffer::KvCache)
            }
            _ => continue,
        };
        let fits = found.filter(|found| found.fits(account, &value.ty, plan.weights.get(&value.name)));
        let missing = || format!("`{}` is not bound to memory of this device of type {}", value.name, value.ty);
        bound.insert(id, fits.ok_or_else(|| HalError::Load(missing()))?);
    }
    Ok(bound)
}

impl<D: Driver> BoundBuffer<D> {
    fn fits(&self, account: &Arc<DriverAccount<D>>, ty: &Type, entry: Option<&WeightEntry>) -> bool {
        match self {
            BoundBuffer::Weight(weight) => {
                let laid = entry.is_some_and(|entry| entry.layout == weight.layout);
                laid && weight.buffer.is_of(account) && weight.ty == ty.dense()
            }
            BoundBuffer::KvCache(cache) => cache.buffer.is_of(account) && cache.form.block == *ty,
        }
    }

    fn slice(&self) -> BufferSlice {
        match self {
            BoundBuffer::Weight(weight) => weight.buffer.slice(),
            BoundBuffer::KvCache(cache) => cache.buffer.slice(),
        }
    }
}

/// Where the values of a plan lie in a program's memory.
struct PlanSlices<'a, D: Driver> {
    plan: &'a Plan,
    memory: &'a BoundMemory<D>,
    inputs: &'a DeviceStepInputs<D>,
}

impl<D: Driver> ValueSlices for PlanSlices<'_, D> {
    fn slice(&self, value: ValueId) -> Result<BufferSlice, HalError> {
        let PlanSlices { plan, memory, inputs } = *self;
        let bound = |value| memory.bound.get(&value).map(BoundBuffer::slice);
        let slice = plan.location(value).and_then(|location| match location {
            ValueLocation::StepInput(index) => inputs.slice(index),
            ValueLocation::Weight => bound(value),
            ValueLocation::KvCache(cache) => bound(cache),
            ValueLocation::Arena(at) => memory.arena.buffer.slice().part(at.offset, at.bytes),
        });
        slice.ok_or_else(|| HalError::Load(format!("`{}` has no place in memory", plan.graph.value(value).name)))
    }

    fn blocks(&self, cache: ValueId) -> Result<u32, HalError> {
        let found = match self.plan.location(cache) {
            Some(ValueLocation::KvCache(cache)) => self.memory.bound.get(&cache),
            _ => None,
        };
        match found {
            Some(BoundBuffer::KvCache(cache)) => Ok(cache.blocks),
            _ => Err(HalError::Load(format!("`{}` is no cache state", self.plan.graph.value(cache).name))),
        }
    }

    fn sizes(&self) -> BufferSlice {
        self.inputs.sizes()
    }
}

impl<D: Driver> ProgramCommands<D> {
    /// The commands of a plan whose inputs have memory, with their operations prepared and the workspace that the largest
    /// of them wants.
    pub(super) fn new<L: Library>(
        library: &L,
        plan: &Plan,
        code: &Arc<LoadedModule<D>>,
        memory: &Arc<BoundMemory<D>>,
        inputs: &DeviceStepInputs<D>,
    ) -> Result<ProgramCommands<D>, HalError> {
        let account = &code.account;
        let (mut calls, mut operations) = (Vec::new(), Vec::new());
        let (values, limits) = (PlanSlices { plan, memory, inputs }, library.target().limits);
        let mut ends = Vec::with_capacity(plan.steps.len());
        for step in 0..plan.steps.len() {
            for call in library.calls(plan, step, &values)? {
                if let KernelCall::Launch(launch) = &call {
                    launch.check(&limits, &plan.bucket)?;
                }
                calls.push(prepare(account, call, &mut operations)?);
            }
            ends.push(calls.len());
        }
        let wanted = calls.iter().map(PreparedCall::workspace).max().filter(|&bytes| bytes > 0);
        Ok(ProgramCommands {
            calls,
            ends,
            _operations: operations,
            code: code.clone(),
            workspace: wanted.map(|bytes| Buffer::new(account, MemoryPool::Workspace, bytes)).transpose()?,
            _inputs: inputs.buffers().cloned().collect(),
            _memory: memory.clone(),
        })
    }

    /// The commands of a step of these sizes, in their order.
    pub(super) fn at(&self, dims: &Dims) -> impl Iterator<Item = Result<StepCommand, HalError>> {
        let workspace = self.workspace.as_ref().map(Buffer::slice);
        self.calls.iter().filter_map(move |call| call.at(self.code.module, dims, workspace).transpose())
    }
}

impl<D: Driver> ProgramCommands<D> {
    /// The launches of each step of the plan, with their workspace among their bindings.
    ///
    /// # Errors
    /// Commands that are no launches.
    pub(super) fn launches_of_steps(&self) -> Result<Vec<Vec<KernelLaunch>>, HalError> {
        let workspace = self.workspace.as_ref().map(Buffer::slice);
        let begins = std::iter::once(0).chain(self.ends.iter().copied());
        let of_step = |(begin, &end): (usize, &usize)| {
            self.calls[begin..end].iter().map(|call| call.launch(workspace)).collect::<Result<Vec<_>, HalError>>()
        };
        begins.zip(&self.ends).map(of_step).collect()
    }

    /// The code of its kernels.
    pub(super) fn module(&self) -> ModuleId {
        self.code.module
    }
}

fn prepare<D: Driver>(
    account: &Arc<DriverAccount<D>>,
    call: KernelCall,
    operations: &mut Vec<OperationGuard<D>>,
) -> Result<PreparedCall, HalError> {
    Ok(match call {
        KernelCall::Launch(launch) => PreparedCall::Kernel(launch),
        KernelCall::Operation(call) => {
            let prepared = operation_library(&account.driver)?.prepare(&call.descriptor, &call.bindings)?;
            operations.push(OperationGuard { account: account.clone(), id: prepared.id });
            PreparedCall::Operation { id: prepared.id, workspace: prepared.workspace, call }
        }
        KernelCall::Collective(call) => PreparedCall::Collective(call),
        KernelCall::Memory(command) => PreparedCall::Memory(command),
    })
}

fn operation_library<D: Driver>(driver: &D) -> Result<&dyn OperationLibrary, HalError> {
    let unsupported = || HalError::Unsupported {
        what: "an operation of a vendor's library".into(),
        why: "the driver has no such library".into(),
    };
    driver.operations().ok_or_else(unsupported)
}

impl PreparedCall {
    fn workspace(&self) -> u64 {
        match self {
            PreparedCall::Kernel(launch) => launch.workspace,
            PreparedCall::Operation { workspace, .. } => *workspace,
            PreparedCall::Collective(_) | PreparedCall::Memory(_) => 0,
        }
    }

    fn launch(&self, workspace: Option<BufferSlice>) -> Result<KernelLaunch, HalError> {
        match self {
            PreparedCall::Kernel(launch) => Ok(launch.with_workspace(workspace)),
            _ => Err(HalError::Unsupported {
                what: "a step as one kernel".into(),
                why: "some of its commands are no launches of kernels".into(),
            }),
        }
    }

    fn at(
        &self,
        module: ModuleId,
        dims: &Dims,
        workspace: Option<BufferSlice>,
    ) -> Result<Option<StepCommand>, HalError> {
        Ok(match self {
            PreparedCall::Kernel(launch) => launch.at(module, dims, workspace)?.map(StepCommand::Launch),
            PreparedCall::Operation { id, workspace: wanted, call } => Some(StepCommand::Operation(OperationCall {
                operation: *id,
                bindings: call.bindings.clone(),
                workspace: workspace.and_then(|all| all.part(0, *wanted)).filter(|_| *wanted > 0),
            })),
            PreparedCall::Collective(call) => Some(StepCommand::Collective(call.at(dims)?)),
            PreparedCall::Memory(command) => Some(StepCommand::Memory(*command)),
        })
    }
}

impl<D: Driver> LoadedModule<D> {
    /// Gives the device the code of a plan's kernels.
    pub(super) fn new<L: Library>(
        account: &Arc<DriverAccount<D>>,
        library: &L,
        plan: &Plan,
    ) -> Result<LoadedModule<D>, HalError> {
        let module = account.driver.module(&library.code(plan)?)?;
        Ok(LoadedModule { account: account.clone(), module })
    }
}

impl<D: Driver> Drop for LoadedModule<D> {
    fn drop(&mut self) {
        self.account.driver.unload(self.module);
    }
}

impl<D: Driver> Drop for OperationGuard<D> {
    fn drop(&mut self) {
        if let Some(library) = self.account.driver.operations() {
            library.release(self.id);
        }
    }
}
