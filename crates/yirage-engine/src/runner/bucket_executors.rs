//! The executors of steps of up to some sizes: one for each stage of a model.
//!
//! A step of several stages goes through them in parts (microbatches), so that stages on devices of their own compute at the
//! same time: in each tick every stage has the part behind the one that its successor has. Rows go from stage to stage through
//! the host.

use super::microbatches::microbatches;
use super::{RunnerInputs, RunnerStage, StepContext, dims_of, set_inputs};
use crate::scheduler::Batch;
use std::sync::Arc;
use yirage_hal::{Executor, Flight, HalError, HostMemory};
use yirage_ir::Dims;
use yirage_plan::ExecutorKind;

/// The output of a stage before the last that is the rows for the next one.
const ROWS: usize = 0;

/// The executors, first stage first.
pub(super) struct BucketExecutors {
    first: StageExecutor,
    others: Vec<StageExecutor>,
}

struct StageExecutor {
    executor: Executor,
    /// The step input for the rows of the stage before; none of the first.
    reads: Option<String>,
}

impl BucketExecutors {
    /// Loads the plans of one bucket.
    pub(super) fn new(
        stages: &[RunnerStage<'_>],
        bucket: usize,
        forced: Option<ExecutorKind>,
    ) -> Result<BucketExecutors, HalError> {
        let load = |stage: &RunnerStage<'_>| {
            let none = || HalError::Load(format!("a stage of {} plans, number {bucket} is wanted", stage.plans.len()));
            let plan = stage.plans.get(bucket).ok_or_else(none)?;
            let mut executor = Executor::new(stage.device, plan, stage.bindings)?;
            forced.map_or(Ok(()), |kind| executor.force(kind))?;
            Ok(StageExecutor { executor, reads: stage.reads.map(str::to_owned) })
        };
        let (first, others) = stages.split_first().ok_or_else(|| HalError::Load("a model without a stage".into()))?;
        Ok(BucketExecutors { first: load(first)?, others: others.iter().map(load).collect::<Result<_, HalError>>()? })
    }

    /// The largest sizes of a step.
    pub(super) fn bucket(&self) -> Dims {
        self.first.executor.bucket()
    }

    /// All of them, in order.
    pub(super) fn stages(&self) -> impl Iterator<Item = &Executor> {
        std::iter::once(&self.first).chain(&self.others).map(|stage| &stage.executor)
    }

    /// All of them, in order.
    pub(super) fn stages_mut(&mut self) -> impl Iterator<Item = &mut Executor> {
        std::iter::once(&mut self.first).chain(&mut self.others).map(|stage| &mut stage.executor)
    }

    /// The one that has the model's outputs.
    pub(super) fn last(&self) -> &Executor {
        &self.others.last().unwrap_or(&self.first).executor
    }

    /// Submits a batch to all stages. The host gets the outputs `reads` of the last one.
    pub(super) fn submit(
        &mut self,
        batch: &Batch,
        inputs: &RunnerInputs,
        context: &StepContext<'_, '_>,
        reads: &[usize],
    ) -> Result<Flight, HalError> {
        if self.others.is_empty() {
            return self.first.submit(batch, inputs, context, reads);
        }
        if context.ids.is_some() {
            return Err(HalError::Step("tokens that the last stage of a pipeline has, and not the first".into()));
        }
        let last = self.others.len();
        let parts = microbatches(batch, last + 1);
        let mut handed: Vec<Option<Arc<dyn HostMemory>>> = vec![None; parts.len()];
        let mut result = None;
        for tick in 0..parts.len() + last {
            let mut flights = Vec::new();
            // From the last stage on, as the first may compute while it takes a step, and the others beside it.
            for at in (0..=last).rev() {
                let Some(part) = tick.checked_sub(at).filter(|part| *part < parts.len()) else { continue };
                let stage = if at == 0 { &mut self.first } else { &mut self.others[at - 1] };
                stage.give(handed[part].take())?;
                let is_result = at == last && part + 1 == parts.len();
                let read = match (at < last, is_result) {
                    (true, _) => &[ROWS][..],
                    (false, true) => reads,
                    (false, false) => &[],
                };
                let flight = stage.submit(&parts[part], inputs, context, read)?;
                match is_result {
                    true => result = Some(flight),
                    false => flights.push((at, part, flight)),
                }
            }
            for (at, part, flight) in flights {
                let mut outputs = flight.wait()?;
                if at < last {
                    handed[part] = Some(Arc::new(outputs.take(ROWS)?));
                }
            }
        }
        result.ok_or_else(|| HalError::Step("a batch of no part".into()))
    }
}

impl StageExecutor {
    /// Takes the rows of the stage before this one.
    fn give(&mut self, rows: Option<Arc<dyn HostMemory>>) -> Result<(), HalError> {
        match (&self.reads, rows) {
            (Some(name), Some(rows)) => self.executor.set_memory(name, rows),
            (None, None) => {}
            (reads, rows) => {
                let (wanted, given) = (reads.is_some(), rows.is_some());
                return Err(HalError::Step(format!("rows of a stage before: wanted {wanted}, given {given}")));
            }
        }
        Ok(())
    }

    fn submit(
        &mut self,
        batch: &Batch,
        inputs: &RunnerInputs,
        context: &StepContext<'_, '_>,
        reads: &[usize],
    ) -> Result<Flight, HalError> {
        let dims = dims_of(batch, inputs.block);
        set_inputs(&mut self.executor, (batch, &dims), inputs, context);
        let given = context.ids.clone().map(|ids| ("ids", ids));
        self.executor.submit(&dims, given.as_slice(), reads)
    }
}
