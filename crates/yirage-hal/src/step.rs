//! One step of a program: what it is given, and when it has ended.

use crate::error::HalError;
use crate::record::{HostMemory, Record};
use std::any::Any;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;
use yirage_ir::Dims;
use yirage_plan::ExecutorKind;

/// An output of a step where it lies in the device's memory. The next step of the same program writes over it: what reads
/// it must be submitted before.
#[derive(Clone)]
pub struct OutputHandle(pub Arc<dyn Any + Send + Sync>);

/// What a step input holds in a step.
#[derive(Clone)]
pub enum StepInputValue {
    /// Elements in the host's memory, row-major; of a strided step input everything from the first element to the last. The
    /// device keeps the handle until the fence.
    Host(Arc<dyn HostMemory>),
    /// Elements that a step before has left on the device.
    Resident(OutputHandle),
}

impl StepInputValue {
    /// The host's memory, where that is what it holds.
    pub(crate) fn into_host(self) -> Option<Arc<dyn HostMemory>> {
        match self {
            StepInputValue::Host(memory) => Some(memory),
            StepInputValue::Resident(_) => None,
        }
    }
}

/// One step.
#[derive(Debug)]
pub struct StepRequest {
    /// Which of the plan's programs runs it.
    pub kind: ExecutorKind,
    /// Its sizes.
    pub dims: Dims,
    /// In the order of the plan's step inputs.
    pub inputs: Vec<StepInputValue>,
    /// Outputs that the host gets with the fence.
    pub reads: Vec<usize>,
}

/// What a step has left for the host.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct StepOutputs {
    /// The outputs that it was to read, in the order of [`StepRequest::reads`].
    pub outputs: Vec<Record>,
    /// How long its commands took by the device's clock; none where there is no such clock.
    pub device_time: Option<Duration>,
}

/// A step that a device has taken and not ended yet. Dropped, it ends all the same, and nobody is told how.
pub trait Pending: Send {
    /// Whether it has ended.
    fn is_done(&self) -> bool;
    /// Waits for its end.
    ///
    /// # Errors
    /// What the step met.
    fn wait(self: Box<Self>) -> Result<StepOutputs, HalError>;
}

/// The end of a step that was submitted.
pub enum Fence {
    /// It is over.
    Signalled(StepOutputs),
    /// It may be over or not.
    Pending(Box<dyn Pending>),
}

impl Fence {
    /// Whether the step is over.
    pub fn is_done(&self) -> bool {
        match self {
            Fence::Signalled(_) => true,
            Fence::Pending(pending) => pending.is_done(),
        }
    }

    /// Waits for the step's end.
    ///
    /// # Errors
    /// What the step met.
    pub fn wait(self) -> Result<StepOutputs, HalError> {
        match self {
            Fence::Signalled(finished) => Ok(finished),
            Fence::Pending(pending) => pending.wait(),
        }
    }
}

impl fmt::Debug for Fence {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.is_done() { "a step that is over" } else { "a step that runs" })
    }
}

impl fmt::Debug for StepInputValue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            StepInputValue::Host(memory) => memory.fmt(f),
            StepInputValue::Resident(_) => f.write_str("an output on the device"),
        }
    }
}
