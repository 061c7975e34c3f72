//! What a step is given: its sizes and its inputs, each at a place that is the same in every step.

use super::arena::{Arena, DeviceOutput};
use super::buffer::{Buffer, DriverAccount, MemoryPool};
use super::command::StepCommand;
use super::contract::Driver;
use super::memory::BufferSlice;
use super::step_sizes::{STEP_SIZES_BYTES, step_sizes};
use crate::error::HalError;
use crate::record::Record;
use crate::step::{StepInputValue, StepRequest};
use std::sync::Arc;
use yirage_ir::{Dims, Type, ValueId, ValueSource};
use yirage_plan::{Plan, Target};

/// Memory for the sizes and the inputs of a program's steps, as large as the plan's largest step wants it. Commands that
/// are captured once find them there.
pub(super) struct StepInputs<D: Driver> {
    buffer: Buffer<D>,
    bucket: Dims,
    inputs: Vec<DriverStepInput>,
}

struct DriverStepInput {
    id: ValueId,
    name: String,
    ty: Type,
    slice: BufferSlice,
}

impl<D: Driver> StepInputs<D> {
    pub(super) fn new(
        account: &Arc<DriverAccount<D>>,
        plan: &Plan,
        target: &Target,
    ) -> Result<StepInputs<D>, HalError> {
        let too_large = || HalError::Load("its step inputs take more bytes than there are".into());
        let align = u64::from(target.align.max(1));
        let mut end = STEP_SIZES_BYTES;
        let mut places = Vec::new();
        for id in plan.graph.inputs_of(ValueSource::StepInput) {
            let bytes = plan.graph.ty(id).storage_bytes(&plan.bucket) as u64;
            let offset = end.checked_next_multiple_of(align).ok_or_else(too_large)?;
            end = offset.checked_add(bytes).ok_or_else(too_large)?;
            places.push((id, offset, bytes));
        }
        let buffer = Buffer::new(account, MemoryPool::Arena, end)?;
        let input = |(id, offset, bytes)| {
            let value = plan.graph.value(id);
            let slice = buffer.slice().part(offset, bytes).ok_or_else(too_large)?;
            Ok(DriverStepInput { id, name: value.name.clone(), ty: value.ty.clone(), slice })
        };
        let inputs = places.into_iter().map(input).collect::<Result<_, HalError>>()?;
        Ok(StepInputs { bucket: plan.bucket, inputs, buffer })
    }

    /// Where the sizes lie.
    pub(super) fn sizes(&self) -> BufferSlice {
        BufferSlice { bytes: STEP_SIZES_BYTES, ..self.buffer.slice() }
    }

    /// Where an input lies; none of another value.
    pub(super) fn slice(&self, value: ValueId) -> Option<BufferSlice> {
        self.inputs.iter().find(|input| input.id == value).map(|input| input.slice)
    }

    /// Submits what a step is given.
    pub(super) fn submit(&self, account: &Arc<DriverAccount<D>>, step: &StepRequest) -> Result<(), HalError> {
        if let Some(sym) = step.dims.exceeds(&self.bucket) {
            let (got, max) = (step.dims.get(sym), self.bucket.get(sym));
            return Err(HalError::Step(format!("{} = {got} exceeds the {max} that the plan was made for", sym.name())));
        }
        if step.inputs.len() != self.inputs.len() {
            let (got, wanted) = (step.inputs.len(), self.inputs.len());
            return Err(HalError::Step(format!("{got} slots are given, the plan has {wanted}")));
        }
        account.driver.upload(Arc::new(Record::of(&step_sizes(&step.dims))), self.sizes())?;
        self.inputs.iter().zip(&step.inputs).try_for_each(|(input, value)| input.submit(account, value, &step.dims))
    }
}

impl DriverStepInput {
    fn submit<D: Driver>(
        &self,
        account: &Arc<DriverAccount<D>>,
        value: &StepInputValue,
        dims: &Dims,
    ) -> Result<(), HalError> {
        let bytes = self.ty.storage_bytes(dims) as u64;
        match value {
            StepInputValue::Host(memory) => {
                let to = self.part(memory.bytes().len() as u64, bytes)?;
                Ok(account.driver.upload(memory.clone(), to)?)
            }
            StepInputValue::Resident(resident) => {
                let foreign = || HalError::Step(format!("slot `{}` lies on a device of another backend", self.name));
                let output = resident.0.downcast_ref::<DeviceOutput<D>>().ok_or_else(foreign)?;
                output.check_current(&self.name)?;
                let shorter = || HalError::Step(format!("slot `{}` is given {} bytes, {} wanted", self.name, output.slice.bytes, bytes));
                let from = output.slice.part(0, bytes).ok_or_else(shorter)?;
                self.copy(account, &output.arena, from, self.part(bytes, bytes)?)
            }
        }
    }

    /// Where so many bytes of the input go, of which a step needs `wanted`.
    fn part(&self, bytes: u64, wanted: u64) -> Result<BufferSlice, HalError> {
        let DriverStepInput { name, ty, .. } = self;
        let wrong = || HalError::Step(format!("slot `{name}` has {bytes} bytes, {ty} needs {wanted}"));
        self.slice.part(0, bytes).filter(|_| bytes == wanted).ok_or_else(wrong)
    }

    fn copy<D: Driver>(
        &self,
        account: &Arc<DriverAccount<D>>,
        arena: &Arena<D>,
        from: BufferSlice,
        to: BufferSlice,
    ) -> Result<(), HalError> {
        if arena.buffer.is_of(account) {
            return Ok(account.driver.submit(StepCommand::Copy { from, to })?);
        }
        Ok(account.driver.copy_from(arena.buffer.driver(), from, to)?)
    }
}
