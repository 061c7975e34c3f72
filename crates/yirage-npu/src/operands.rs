//! Where the operands of an operation lie.

use crate::operators::{TensorMemory, TensorView};
use crate::range::NpuRange;
use crate::status::refused;
use yirage_hal::driver::DriverError;

/// Where the operands of an operation lie.
pub(crate) struct OperandMemory<'a> {
    /// Its bindings.
    pub(crate) bindings: &'a [NpuRange],
    /// Temporaries, and behind them what operators work in; none where there is no such memory yet, and none is touched.
    pub(crate) workspace: Option<NpuRange>,
}

impl OperandMemory<'_> {
    /// Where a tensor's memory begins, and how many bytes it has: enough for all that the tensor reaches.
    pub(crate) fn range(&self, tensor: &TensorView) -> Result<NpuRange, DriverError> {
        let wanted = tensor.reach() * tensor.element.bytes();
        let found = match (tensor.memory, self.workspace) {
            (TensorMemory::Binding(number), _) => self.bindings.get(number).copied(),
            (TensorMemory::Temporary(at), Some(workspace)) => workspace.behind(at),
            // An operator that is only asked reads nothing of its tensors.
            (TensorMemory::Temporary(_), None) => return self.bindings.first().copied().ok_or_else(no_memory),
        };
        found.filter(|range| range.bytes() as u64 >= wanted).ok_or_else(no_memory)
    }

    /// Where a tensor's first element lies.
    pub(crate) fn first(&self, tensor: &TensorView) -> Result<NpuRange, DriverError> {
        let range = self.range(tensor)?;
        match (tensor.memory, self.workspace) {
            (TensorMemory::Temporary(_), None) => Ok(range),
            _ => range.behind(tensor.offset * tensor.element.bytes()).ok_or_else(no_memory),
        }
    }
}

fn no_memory() -> DriverError {
    refused("operator", "a tensor is longer than the memory that it is bound to")
}
