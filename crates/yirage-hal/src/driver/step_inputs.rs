//! What a step is given: its sizes and its inputs, each at a place that stays the same from step to step.

use super::arena::{Arena, DeviceOutput};
use super::buffer::{Buffer, DriverAccount, MemoryPool};
use super::command::{MemoryCommand, StepCommand};
use super::contract::Driver;
use super::memory::BufferSlice;
use super::step_sizes::{STEP_SIZES_BYTES, step_sizes};
use crate::error::HalError;
use crate::record::Record;
use crate::step::{StepInputValue, StepRequest};
use std::sync::Arc;
use yirage_ir::{Dims, Type, ValueSource};
use yirage_plan::Plan;

/// Up to so many bytes an input has memory for the plan's largest step from the beginning, and what is captured once stays
/// right. The largest step of some plans is far larger than any that comes: more is taken when it is wanted.
const WHOLE: u64 = 4 << 20;

/// Memory for the sizes and the inputs of a program's steps.
pub(super) struct DeviceStepInputs<D: Driver> {
    bucket: Dims,
    sizes: Arc<Buffer<D>>,
    inputs: Vec<DriverStepInput<D>>,
}

struct DriverStepInput<D: Driver> {
    name: String,
    ty: Type,
    /// Memory for the largest step so far, or for the largest that there is. None before the first one.
    buffer: Option<Arc<Buffer<D>>>,
}

impl<D: Driver> DeviceStepInputs<D> {
    pub(super) fn new(account: &Arc<DriverAccount<D>>, plan: &Plan) -> Result<DeviceStepInputs<D>, HalError> {
        let sizes = Arc::new(Buffer::new(account, MemoryPool::Workspace, STEP_SIZES_BYTES)?);
        let input = |id| {
            let value = plan.graph.value(id);
            let most = value.ty.storage_bytes(&plan.bucket) as u64;
            let whole = || Ok::<_, HalError>(Arc::new(Buffer::new(account, MemoryPool::Workspace, most)?));
            let buffer = if most <= WHOLE { Some(whole()?) } else { None };
            Ok(DriverStepInput { name: value.name.clone(), ty: value.ty.clone(), buffer })
        };
        let inputs = plan.graph.inputs_of(ValueSource::StepInput).map(input).collect::<Result<_, HalError>>()?;
        Ok(DeviceStepInputs { bucket: plan.bucket, sizes, inputs })
    }

    /// Where the sizes lie.
    pub(super) fn sizes(&self) -> BufferSlice {
        self.sizes.slice()
    }

    /// Where an input lies, by its number; none of one that has no memory yet.
    pub(super) fn slice(&self, index: usize) -> Option<BufferSlice> {
        self.inputs.get(index)?.buffer.as_ref().map(|buffer| buffer.slice())
    }

    /// All of its memory.
    pub(super) fn buffers(&self) -> impl Iterator<Item = &Arc<Buffer<D>>> {
        self.inputs.iter().filter_map(|input| input.buffer.as_ref()).chain([&self.sizes])
    }

    /// Whether each input has memory.
    pub(super) fn are_placed(&self) -> bool {
        self.inputs.iter().all(|input| input.buffer.is_some())
    }

    /// Takes the memory that a step wants. Whether an input lies elsewhere from now on.
    pub(super) fn reserve(&mut self, account: &Arc<DriverAccount<D>>, step: &StepRequest) -> Result<bool, HalError> {
        if let Some(sym) = step.dims.exceeds(&self.bucket) {
            let (got, max) = (step.dims.get(sym), self.bucket.get(sym));
            return Err(HalError::Step(format!("{} = {got} exceeds the {max} that the plan was made for", sym.name())));
        }
        if step.inputs.len() != self.inputs.len() {
            let (got, wanted) = (step.inputs.len(), self.inputs.len());
            return Err(HalError::Step(format!("{got} step inputs are given, the plan has {wanted}")));
        }
        let mut moved = false;
        for input in &mut self.inputs {
            moved |= input.reserve(account, &step.dims)?;
        }
        Ok(moved)
    }

    /// Submits what a step is given, for which memory was reserved.
    pub(super) fn submit(&self, account: &Arc<DriverAccount<D>>, step: &StepRequest) -> Result<(), HalError> {
        account.driver.upload(Arc::new(Record::of(&step_sizes(&step.dims))), self.sizes())?;
        self.inputs.iter().zip(&step.inputs).try_for_each(|(input, value)| input.submit(account, value, &step.dims))
    }
}

impl<D: Driver> DriverStepInput<D> {
    fn reserve(&mut self, account: &Arc<DriverAccount<D>>, dims: &Dims) -> Result<bool, HalError> {
        let bytes = self.ty.storage_bytes(dims) as u64;
        if self.buffer.as_ref().is_some_and(|buffer| buffer.bytes() >= bytes) {
            return Ok(false);
        }
        let capacity = bytes.checked_next_power_of_two().unwrap_or(bytes);
        // What was there before is given back behind the steps that read it.
        self.buffer = Some(Arc::new(Buffer::new(account, MemoryPool::Workspace, capacity)?));
        Ok(true)
    }

    fn submit(&self, account: &Arc<DriverAccount<D>>, value: &StepInputValue, dims: &Dims) -> Result<(), HalError> {
        let bytes = self.ty.storage_bytes(dims) as u64;
        match value {
            StepInputValue::Host(memory) => {
                let to = self.part(memory.bytes().len() as u64, bytes)?;
                Ok(account.driver.upload(memory.clone(), to)?)
            }
            StepInputValue::Resident(resident) => {
                let name = &self.name;
                let foreign = || HalError::Step(format!("step input `{name}` lies on a device of another backend"));
                let output = resident.0.downcast_ref::<DeviceOutput<D>>().ok_or_else(foreign)?;
                output.check_current(name)?;
                let has = output.slice.bytes;
                let shorter =
                    || HalError::Step(format!("step input `{name}` is given {has} bytes, {} needs {bytes}", self.ty));
                let from = output.slice.part(0, bytes).ok_or_else(shorter)?;
                copy(account, &output.arena, from, self.part(bytes, bytes)?)
            }
        }
    }

    /// Where so many bytes of the input go, of which a step needs `wanted`.
    fn part(&self, bytes: u64, wanted: u64) -> Result<BufferSlice, HalError> {
        let DriverStepInput { name, ty, .. } = self;
        let wrong = || HalError::Step(format!("step input `{name}` has {bytes} bytes, {ty} needs {wanted}"));
        let place = self.buffer.as_ref().and_then(|buffer| buffer.slice().part(0, bytes));
        place.filter(|_| bytes == wanted).ok_or_else(wrong)
    }
}

/// Submits a copy of what another program has left.
fn copy<D: Driver>(
    account: &Arc<DriverAccount<D>>,
    arena: &Arena<D>,
    from: BufferSlice,
    to: BufferSlice,
) -> Result<(), HalError> {
    if arena.buffer.is_of(account) {
        return Ok(account.driver.submit(StepCommand::Memory(MemoryCommand::Copy { from, to }))?);
    }
    Ok(account.driver.copy_from(arena.buffer.driver(), from, to)?)
}
