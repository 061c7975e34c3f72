//! The executor: checks a step against its plan and submits it.

use crate::device::{Bindings, Device, Program};
use crate::error::HalError;
use crate::executor_selector::{ExecutorSelector, SelectionReason};
use crate::kernel_variants::no_variants;
use crate::outputs::Outputs;
use crate::record::{HostMemory, Record};
use crate::step::{Fence, OutputHandle, StepInputValue, StepRequest};
use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};
use yirage_ir::{Dims, Type, ValueSource};
use yirage_plan::{ExecutorKind, VerifiedPlan};

/// A plan loaded on a device, with its step inputs.
///
/// Every value that can change between steps reaches the plan through a step input that must be set anew for each step:
/// submitting one consumes the step inputs.
pub struct Executor {
    bucket: Dims,
    names: HashMap<String, usize>,
    inputs: Vec<ExecutorInput>,
    /// None for a cache state.
    outputs: Vec<Option<Type>>,
    program: Box<dyn Program>,
    selector: ExecutorSelector,
    /// The executor that is ready to run.
    ready: Option<ExecutorKind>,
    left_out: Vec<(ExecutorKind, String)>,
    times: Arc<StepTimes>,
    last: Dims,
    done: Outputs,
}

struct ExecutorInput {
    name: String,
    ty: Type,
    /// Memory of the executor's own, which it uses again once no step has it.
    own: Arc<Record>,
    source: ExecutorInputSource,
}

/// What the next step finds in a step input.
enum ExecutorInputSource {
    Nothing,
    Own,
    Foreign(Arc<dyn HostMemory>),
}

/// An output of another executor's last step, for a step input.
#[derive(Clone)]
pub struct ResidentOutput {
    ty: Type,
    dims: Dims,
    value: OutputHandle,
}

/// What steps that ran beside the host took by their device's clock, until the next step is submitted.
type StepTimes = Mutex<Vec<(ExecutorKind, Dims, Duration)>>;

/// A step that was submitted.
#[derive(Debug)]
pub struct Flight {
    fence: Fence,
    kind: ExecutorKind,
    times: Arc<StepTimes>,
    dims: Dims,
    reads: Vec<usize>,
    types: Vec<Type>,
    outputs: usize,
}

impl Executor {
    /// Loads `plan` on `device`, whose target it was proved for.
    ///
    /// # Errors
    /// What the device says of it.
    pub fn new(device: &dyn Device, plan: &VerifiedPlan, bindings: &Bindings) -> Result<Executor, HalError> {
        if let (Some(variant), None) = (&bindings.kernel_variant, device.kernel_variants()) {
            return Err(no_variants(device.info().backend, variant));
        }
        let workers = plan.programs.first().map_or(1, |p| p.queues.len());
        let graph = &plan.graph;
        let input = |id| {
            let value = graph.value(id);
            ExecutorInput {
                name: value.name.clone(),
                ty: value.ty.clone(),
                own: Arc::default(),
                source: ExecutorInputSource::Nothing,
            }
        };
        let step_inputs: Vec<ExecutorInput> = graph.inputs_of(ValueSource::StepInput).map(input).collect();
        let output = |&id| graph.kv_cache_of(id).is_none().then(|| graph.ty(id).clone());
        let program = device.load(plan, bindings)?;
        let selector = ExecutorSelector::new(plan.target().executors.clone(), workers, program.has_device_times());
        Ok(Executor {
            bucket: plan.bucket,
            names: step_inputs.iter().enumerate().map(|(i, input)| (input.name.clone(), i)).collect(),
            inputs: step_inputs,
            outputs: graph.outputs.iter().map(output).collect(),
            program,
            selector,
            ready: None,
            left_out: Vec::new(),
            times: Arc::default(),
            last: Dims::default(),
            done: Outputs::default(),
        })
    }

    /// Runs every further step by this executor, instead of the one that measurement chooses.
    ///
    /// # Errors
    /// When the device has no such executor.
    pub fn force(&mut self, kind: ExecutorKind) -> Result<(), HalError> {
        if self.selector.force(kind) {
            return Ok(());
        }
        let why = match kind {
            ExecutorKind::Replay => "the device captures no commands that it could replay",
            _ => "the device has no executor of that name",
        };
        Err(HalError::Unsupported { what: format!("the executor `{kind}`"), why: why.into() })
    }

    /// The executors it has.
    pub fn executors(&self) -> &[ExecutorKind] {
        self.selector.kinds()
    }

    /// The executor of the next step, and why it is that one.
    pub fn chosen(&self) -> (ExecutorKind, SelectionReason) {
        (self.selector.current(), self.selector.why())
    }

    /// The executors that the device has and that were found unable to run this plan since the last call, each with the reason:
    /// nothing is measured of them.
    pub fn take_left_out(&mut self) -> Vec<(ExecutorKind, String)> {
        std::mem::take(&mut self.left_out)
    }

    /// The executor of the next step, ready for it.
    fn ready_executor(&mut self) -> Result<ExecutorKind, HalError> {
        loop {
            let kind = self.selector.current();
            if self.ready == Some(kind) {
                return Ok(kind);
            }
            match self.program.prepare(kind) {
                Err(HalError::Unsupported { why, .. }) if self.selector.leave_out(kind) => {
                    self.left_out.push((kind, why));
                }
                done => {
                    done?;
                    self.ready = Some(kind);
                }
            }
        }
    }

    /// The largest sizes of a step.
    pub fn bucket(&self) -> Dims {
        self.bucket
    }

    /// Whether the plan reads a step input of this name.
    pub fn has_step_input(&self, name: &str) -> bool {
        self.names.contains_key(name)
    }

    /// Sets a step input of integers for the next step; of a strided one all words from the first element to the last. A step input
    /// that the plan does not read is ignored: it was compiled away.
    pub fn set(&mut self, name: &str, values: impl IntoIterator<Item = i32>) {
        let Some(&i) = self.names.get(name) else { return };
        let input = &mut self.inputs[i];
        if Arc::get_mut(&mut input.own).is_none() {
            input.own = Arc::default();
        }
        if let Some(own) = Arc::get_mut(&mut input.own) {
            own.refill(values.into_iter().map(|x| x as u32));
        }
        input.source = ExecutorInputSource::Own;
    }

    /// Sets a step input of floats for the next step, as [`Executor::set`].
    pub fn set_floats(&mut self, name: &str, values: impl IntoIterator<Item = f32>) {
        self.set(name, values.into_iter().map(|x| x.to_bits() as i32));
    }

    /// Sets a step input of any type for the next step: its elements as they lie, as [`Executor::set`]. The memory is read where
    /// it is, and let go once the step is over.
    pub fn set_memory(&mut self, name: &str, memory: Arc<dyn HostMemory>) {
        if let Some(&i) = self.names.get(name) {
            self.inputs[i].source = ExecutorInputSource::Foreign(memory);
        }
    }

    /// Runs one step of these sizes to its end and reads all outputs.
    ///
    /// # Errors
    /// As [`Executor::submit`] and [`Flight::wait`].
    pub fn run(&mut self, dims: &Dims) -> Result<&Outputs, HalError> {
        self.run_on(dims, &[])
    }

    /// [`Executor::run`] with some step inputs given as in [`Executor::submit`].
    ///
    /// # Errors
    /// As [`Executor::run`].
    pub fn run_on(&mut self, dims: &Dims, given: &[(&str, ResidentOutput)]) -> Result<&Outputs, HalError> {
        let reads: Vec<usize> = (0..self.outputs.len()).filter(|&i| self.outputs[i].is_some()).collect();
        self.done = Outputs::default();
        self.done = self.submit(dims, given, &reads)?.wait()?;
        Ok(&self.done)
    }

    /// Submits a step of these sizes. Some step inputs, by name, may be outputs of other executors of the same device, which are
    /// read where they lie. The host gets the outputs `reads` once the step is over.
    ///
    /// # Errors
    /// A step that does not fit the plan, and what the device says at once.
    pub fn submit(
        &mut self,
        dims: &Dims,
        given: &[(&str, ResidentOutput)],
        reads: &[usize],
    ) -> Result<Flight, HalError> {
        if let Some(sym) = dims.exceeds(&self.bucket) {
            let (got, max) = (dims.get(sym), self.bucket.get(sym));
            return Err(HalError::Step(format!("{} = {got} exceeds the bucket's {max}", sym.name())));
        }
        let types = reads.iter().map(|&index| self.output_type(index).cloned()).collect::<Result<_, _>>()?;
        let mut step_inputs = Vec::with_capacity(self.inputs.len());
        for input in &mut self.inputs {
            let set = std::mem::replace(&mut input.source, ExecutorInputSource::Nothing);
            step_inputs.push(match given.iter().find(|(name, _)| *name == input.name) {
                Some((_, given)) => input.resident_value(given, dims)?,
                None => input.host_value(set, dims)?,
            });
        }
        self.last = *dims;
        for (kind, dims, time) in self.times.lock().unwrap_or_else(PoisonError::into_inner).drain(..) {
            self.selector.record_time(kind, &dims, time);
        }
        let (kind, reads, outputs) = (self.ready_executor()?, reads.to_vec(), self.outputs.len());
        let began = Instant::now();
        let fence =
            self.program.submit(StepRequest { kind, dims: *dims, inputs: step_inputs, reads: reads.clone() })?;
        // A step that runs on beside the host is timed by its device, if at all.
        if matches!(fence, Fence::Signalled(_)) {
            self.selector.record_time(kind, dims, began.elapsed());
        }
        Ok(Flight { fence, kind, times: self.times.clone(), dims: *dims, reads, types, outputs })
    }

    /// Output `index` of the step submitted last, for a step input of another executor.
    ///
    /// # Errors
    /// An output that is not there, or is a cache state.
    pub fn resident_output(&self, index: usize) -> Result<ResidentOutput, HalError> {
        let ty = self.output_type(index)?.clone();
        Ok(ResidentOutput { ty, dims: self.last, value: self.program.output_handle(index)? })
    }

    fn output_type(&self, index: usize) -> Result<&Type, HalError> {
        let missing = || format!("output {index} of {} is not there, or is a cache state", self.outputs.len());
        self.outputs.get(index).and_then(Option::as_ref).ok_or_else(|| HalError::Step(missing()))
    }

    /// The outputs of the last [`Executor::run`].
    pub fn outputs(&self) -> &Outputs {
        &self.done
    }
}

impl ExecutorInput {
    /// What the host has set.
    fn host_value(&self, set: ExecutorInputSource, dims: &Dims) -> Result<StepInputValue, HalError> {
        let memory: Arc<dyn HostMemory> = match set {
            ExecutorInputSource::Own => self.own.clone(),
            ExecutorInputSource::Foreign(memory) => memory,
            ExecutorInputSource::Nothing => {
                return Err(HalError::Step(format!("step input `{}` was not set", self.name)));
            }
        };
        let (got, want) = (memory.bytes().len(), self.ty.storage_bytes(dims));
        if got != want {
            let (name, ty) = (&self.name, &self.ty);
            return Err(HalError::Step(format!("step input `{name}` has {got} bytes, {ty} needs {want}")));
        }
        Ok(StepInputValue::Host(memory))
    }

    /// What another executor has left on the device.
    fn resident_value(&self, given: &ResidentOutput, dims: &Dims) -> Result<StepInputValue, HalError> {
        let (got, want) = (given.ty.elems(&given.dims), self.ty.elems(dims));
        let sizes = |ty: &Type, dims: &Dims| ty.shape.iter().map(|d| d.get(dims)).collect::<Vec<_>>();
        let alike = given.ty.dtype == self.ty.dtype && sizes(&given.ty, &given.dims) == sizes(&self.ty, dims);
        if !alike || self.ty.strides.is_some() {
            let (name, ty, made) = (&self.name, &self.ty, &given.ty);
            return Err(HalError::Step(format!(
                "step input `{name}` is {ty} with {want} values, the output given for it is {made} with {got}"
            )));
        }
        Ok(StepInputValue::Resident(given.value.clone()))
    }
}

impl Flight {
    /// Whether the step is over.
    pub fn is_done(&self) -> bool {
        self.fence.is_done()
    }

    /// Waits for the step's end and gives the outputs that were to be read.
    ///
    /// # Errors
    /// What the step met.
    pub fn wait(self) -> Result<Outputs, HalError> {
        let finished = self.fence.wait()?;
        if let Some(time) = finished.device_time {
            self.times.lock().unwrap_or_else(PoisonError::into_inner).push((self.kind, self.dims, time));
        }
        if finished.outputs.len() != self.reads.len() {
            let (got, want) = (finished.outputs.len(), self.reads.len());
            return Err(HalError::Device(format!("{want} outputs were to be read, {got} are here")));
        }
        let mut read: Vec<Option<(Type, Record)>> = vec![None; self.outputs];
        for ((index, ty), record) in self.reads.into_iter().zip(self.types).zip(finished.outputs) {
            let (got, want) = (record.bytes().len(), ty.storage_bytes(&self.dims));
            if got != want {
                return Err(HalError::Device(format!("output {index} of {ty} has {got} bytes, not {want}")));
            }
            read[index] = Some((ty, record));
        }
        Ok(Outputs::new(self.dims, read))
    }
}
