//! The step inputs of a program in a step.

use super::resident::CpuResident;
use super::run::ProgramMemory;
use crate::shared::{CpuContext, RunPermit};
use std::sync::Arc;
use yirage_cpu_kernels::memory::{HugeBuf, Supply};
use yirage_hal::{HalError, HostMemory, StepInputValue};
use yirage_ir::{Dims, Type};

/// A program's step inputs.
pub(crate) struct CpuStepInputs {
    /// The largest sizes of a step.
    bucket: Dims,
    /// By name, in the plan's order.
    types: Vec<(String, Type)>,
    shared: Arc<CpuContext>,
}

/// A step input's memory in a step.
pub(crate) enum StepInputMemory {
    /// The host's, where it lies.
    Host(Arc<dyn HostMemory>),
    /// A program's, where it lies.
    Resident(Arc<CpuResident>),
    /// A copy: kernels may not read it where it lies.
    Copy(HugeBuf),
}

impl CpuStepInputs {
    /// Of a plan with this bucket.
    pub(crate) fn new(bucket: Dims, types: Vec<(String, Type)>, shared: &Arc<CpuContext>) -> CpuStepInputs {
        CpuStepInputs { bucket, types, shared: shared.clone() }
    }

    /// The memory of each step input in a step of the program that has `own` memory, as many bytes as its type says at an
    /// address that is a multiple of an element's bytes. On a guarded device each lies in memory of its own.
    ///
    /// # Errors
    /// [`HalError::Step`] for another number of step inputs or of bytes, outputs that are gone or of another device, and sizes
    /// that the plan was not made for; a device without memory for a copy.
    pub(crate) fn resolve(
        &self,
        dims: &Dims,
        given: &[StepInputValue],
        own: &Arc<ProgramMemory>,
        turn: &RunPermit<'_>,
    ) -> Result<Vec<StepInputMemory>, HalError> {
        if let Some(sym) = dims.exceeds(&self.bucket) {
            let (got, max) = (dims.get(sym), self.bucket.get(sym));
            return Err(HalError::Step(format!("{} = {got} exceeds the {max} that the plan was made for", sym.name())));
        }
        if given.len() != self.types.len() {
            return Err(HalError::Step(format!(
                "{} step inputs are given, the plan has {}",
                given.len(),
                self.types.len()
            )));
        }
        let supply = self.shared.supply;
        let held = |((name, ty), slot): (&(String, Type), &StepInputValue)| {
            let held = StepInputMemory::of(&self.shared, name, slot)?;
            let bytes = held.bytes(turn);
            if bytes.len() != ty.storage_bytes(dims) {
                let (got, want) = (bytes.len(), ty.storage_bytes(dims));
                return Err(HalError::Step(format!("step input `{name}` has {got} bytes, {ty} needs {want}")));
            }
            let align = ty.dtype.row_bytes(1);
            let written = matches!(&held, StepInputMemory::Resident(resident) if resident.is_of(own));
            if supply == Supply::Plain && bytes.as_ptr().addr().is_multiple_of(align) && !written {
                return Ok(held);
            }
            let mut copy = supply.zeroed(bytes.len(), align).map_err(|e| HalError::OutOfMemory {
                pool: "arena",
                wanted: bytes.len() as u64,
                detail: e.to_string(),
            })?;
            copy.as_mut_slice().copy_from_slice(bytes);
            Ok(StepInputMemory::Copy(copy))
        };
        self.types.iter().zip(given).map(held).collect()
    }
}

impl StepInputMemory {
    fn of(shared: &Arc<CpuContext>, name: &str, slot: &StepInputValue) -> Result<StepInputMemory, HalError> {
        match slot {
            StepInputValue::Host(memory) => Ok(StepInputMemory::Host(memory.clone())),
            StepInputValue::Resident(resident) => {
                let of_cpu = resident.0.clone().downcast::<CpuResident>();
                let resident =
                    of_cpu.map_err(|_| HalError::Step(format!("step input `{name}` lies on another device")))?;
                resident.check(shared, name)?;
                Ok(StepInputMemory::Resident(resident))
            }
        }
    }

    /// The bytes. Those of a program's own stay as they are while the turn is held.
    pub(crate) fn bytes<'a>(&'a self, turn: &'a RunPermit<'_>) -> &'a [u8] {
        match self {
            StepInputMemory::Host(memory) => memory.bytes(),
            StepInputMemory::Resident(resident) => resident.bytes(turn),
            StepInputMemory::Copy(copy) => copy.as_slice(),
        }
    }
}
