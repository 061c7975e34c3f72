//! Compiling, loading and calling.

use crate::array::HostArray;
use crate::call_error::CallError;
use crate::interface::{Interface, check};
use std::collections::HashMap;
use yirage_compile::{CompileOptions, compile, plan_weights};
use yirage_hal::{Bindings, Device, Executor, KvCacheHandle, Record, WeightHandle, write_view};
use yirage_ir::{Dim, Dims, Graph, Type};
use yirage_plan::{Plan, Precision, Target, VerifiedPlan, WeightEntry};

/// What a graph is compiled for.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct CallOptions {
    /// The values of symbolic sizes, in all calls.
    pub dims: Dims,
    /// How products with weights are computed.
    pub precision: Precision,
    /// Whether ops are fused; without it each op is a step of its own.
    pub fuse: bool,
}

impl Default for CallOptions {
    /// No symbolic size, exact, and fused.
    fn default() -> CallOptions {
        CallOptions { dims: Dims::default(), precision: Precision::Exact, fuse: true }
    }
}

impl CallOptions {
    /// The largest sizes of a plan for such calls. A plan is made for some of each size; a step may have none.
    pub fn bucket(&self) -> Dims {
        let Dims { tokens, seqs, blocks, rows } = self.dims;
        Dims { tokens: tokens.max(1), seqs: seqs.max(1), blocks: blocks.max(1), rows: rows.max(1) }
    }

    /// What the compiler is told.
    pub fn compiling(&self) -> CompileOptions {
        CompileOptions { fuse: self.fuse, ..CompileOptions::new(self.precision) }
    }
}

/// A graph that is loaded on a device.
pub struct Callable {
    interface: Interface,
    executor: Executor,
    dims: Dims,
    kernels: Vec<String>,
}

/// Weights on a device, by their entries in the plans that were loaded with them. Another plan of the same weights uses
/// those that lie as it wants them.
#[derive(Clone, Default)]
pub struct ResidentWeights(Vec<(WeightEntry, WeightHandle)>);

impl ResidentWeights {
    /// Weights that somebody has put on the device, each with what it is.
    pub fn of(entries: Vec<(WeightEntry, WeightHandle)>) -> ResidentWeights {
        ResidentWeights(entries)
    }

    /// Each weight with what it is.
    pub fn all(&self) -> impl Iterator<Item = (&WeightEntry, &WeightHandle)> {
        self.0.iter().map(|(entry, handle)| (entry, handle))
    }

    /// The weights that a plan reads and are not here.
    pub fn missing<'a>(&self, plan: &'a Plan) -> Vec<&'a WeightEntry> {
        plan.weights.entries.iter().filter(|entry| self.find(entry).is_none()).collect()
    }

    /// A weight as a plan reads it. Of one that was divided among ranks the device holds its part, which a plan reads as a weight
    /// of its own.
    fn find(&self, wanted: &WeightEntry) -> Option<&WeightHandle> {
        self.0.iter().find(|(held, _)| held == wanted || is_part(wanted, held)).map(|(_, handle)| handle)
    }

    /// Puts those on the device that a plan reads and are not here; `arrays` are the graph's weights by name.
    ///
    /// # Errors
    /// What the device says; [`CallError::Weight`] for one that is not among `arrays`.
    pub fn load(&mut self, device: &dyn Device, plan: &Plan, arrays: &[(String, HostArray)]) -> Result<(), CallError> {
        for entry in self.missing(plan) {
            let given = arrays.iter().find(|(name, _)| *name == entry.name).map(|(_, array)| array);
            let array = given.ok_or_else(|| CallError::Weight { name: entry.name.clone(), why: "it is not given" })?;
            check("the weight", &entry.name, &entry.ty, array)?;
            let mut sink = device.weight(entry)?;
            write_view(&mut *sink, &entry.name, &entry.ty, array.bytes())?;
            self.0.push((entry.clone(), sink.finish()?));
        }
        Ok(())
    }
}

/// Whether a weight of a rank's plan is the part of a whole that is divided: all but one dimension are its own, and that one
/// divides into such parts.
fn is_part(part: &WeightEntry, whole: &WeightEntry) -> bool {
    let Some(axis) = whole.shard_axis.filter(|_| part.shard_axis.is_none()) else { return false };
    let Some(Dim::Const(rows)) = part.ty.shape.get(axis as usize) else { return false };
    let Some(Dim::Const(all)) = whole.ty.shape.get(axis as usize) else { return false };
    if *rows == 0 || !all.is_multiple_of(*rows) {
        return false;
    }
    let mut ty = whole.ty.clone();
    ty.shape[axis as usize] = Dim::Const(*rows);
    *part == WeightEntry { ty, shard_axis: None, ..whole.clone() }
}

/// The plan of a graph on a target.
///
/// # Errors
/// [`CallError::Compile`], and [`CallError::Unsupported`] for a graph with cache states.
pub fn planned(graph: &Graph, target: &Target, options: &CallOptions) -> Result<VerifiedPlan, CallError> {
    Interface::of(graph).check_callable()?;
    planned_with_kv_caches(graph, target, options)
}

/// [`planned`] of a graph that may have cache states, which [`Callable::load_with_kv_caches`] is given.
///
/// # Errors
/// [`CallError::Compile`].
pub fn planned_with_kv_caches(
    graph: &Graph,
    target: &Target,
    options: &CallOptions,
) -> Result<VerifiedPlan, CallError> {
    let weights = plan_weights(graph, target)?;
    Ok(compile(graph, options.bucket(), target, &weights, &options.compiling())?)
}

impl Callable {
    /// Compiles `graph` and loads it with its weights, by name.
    ///
    /// # Errors
    /// What the compiler or the device says; a graph with cache states; a weight that is missing, of another type or not
    /// of the graph.
    pub fn new(
        device: &dyn Device,
        graph: &Graph,
        weights: &[(String, HostArray)],
        options: &CallOptions,
    ) -> Result<Callable, CallError> {
        let interface = Interface::of(graph);
        interface.check_callable()?;
        interface.check_weights(weights)?;
        let plan = planned(graph, &device.target(), options)?;
        let mut held = ResidentWeights::default();
        held.load(device, &plan, weights)?;
        Callable::load(device, &interface, &plan, &held, options.dims)
    }

    /// Loads a plan that was made before: calls take and give what `interface` says, of these sizes, which the plan's
    /// bucket holds.
    ///
    /// # Errors
    /// [`CallError::Plan`] for a plan of something else or of smaller sizes, [`CallError::Weight`] for a weight that is not
    /// held; what the device says.
    pub fn load(
        device: &dyn Device,
        interface: &Interface,
        plan: &VerifiedPlan,
        weights: &ResidentWeights,
        dims: Dims,
    ) -> Result<Callable, CallError> {
        interface.check_callable()?;
        Callable::load_with_kv_caches(device, interface, plan, weights, &HashMap::new(), dims)
    }

    /// [`Callable::load`] of a graph with cache states, by their names. What a call finds in them an earlier one has left
    /// there: whose turn it is, and which blocks are whose, is the caller's to know.
    ///
    /// # Errors
    /// As [`Callable::load`]; [`CallError::Unsupported`] for a state that is not given.
    pub fn load_with_kv_caches(
        device: &dyn Device,
        interface: &Interface,
        plan: &VerifiedPlan,
        weights: &ResidentWeights,
        states: &HashMap<String, KvCacheHandle>,
        dims: Dims,
    ) -> Result<Callable, CallError> {
        interface.check_kv_caches(|name| states.contains_key(name))?;
        interface.check_as_rank(plan, device.target().ranks)?;
        if let Some(sym) = dims.exceeds(&plan.bucket) {
            let (most, wanted) = (plan.bucket.get(sym), dims.get(sym));
            let what = format!("it is made for {} up to {most}, {wanted} are wanted", sym.name());
            return Err(CallError::Plan { graph: interface.graph.clone(), what });
        }
        let mut bindings = Bindings { kv_caches: states.clone(), ..Bindings::default() };
        for entry in &plan.weights.entries {
            let held = weights.find(entry);
            let missing = || CallError::Weight { name: entry.name.clone(), why: "it is not on the device" };
            bindings.weights.insert(entry.name.clone(), held.ok_or_else(missing)?.clone());
        }
        Ok(Callable {
            interface: interface.fixed(&dims),
            executor: Executor::new(device, plan, &bindings)?,
            dims,
            kernels: plan.steps.iter().map(|step| plan.kernels[step.kernel as usize].name.clone()).collect(),
        })
    }

    /// Names and types of what a call takes, in order.
    pub fn inputs(&self) -> &[(String, Type)] {
        &self.interface.step_inputs
    }

    /// Names and types of what a call gives, in order.
    pub fn outputs(&self) -> &[(String, Type)] {
        &self.interface.outputs
    }

    /// The kernel of each step, in the order of the plan.
    pub fn kernels(&self) -> &[String] {
        &self.kernels
    }

    /// Runs the graph once. The results are in memory of their own, dense and in row-major order.
    ///
    /// # Errors
    /// Another number of inputs, or one that is not of its type; what the device says.
    pub fn call(&mut self, inputs: &[HostArray]) -> Result<Vec<HostArray>, CallError> {
        let mut made = Vec::with_capacity(self.interface.outputs.len());
        self.call_with(inputs, &mut |ty, bytes| {
            let mut memory = Record::zeroed(bytes.len());
            memory.bytes_mut().copy_from_slice(bytes);
            made.push(HostArray::new(ty.clone(), memory));
        })?;
        made.into_iter().collect()
    }

    /// Runs the graph once and gives `each` the type and elements of every result, in order: dense and row-major, and
    /// there until it returns.
    ///
    /// # Errors
    /// As those of [`Callable::call`].
    pub fn call_with(&mut self, inputs: &[HostArray], each: &mut dyn FnMut(&Type, &[u8])) -> Result<(), CallError> {
        self.set(inputs)?;
        let outputs = self.executor.run(&self.dims)?;
        for (index, (_, ty)) in self.interface.outputs.iter().enumerate() {
            let (_, bytes) = outputs.bytes(index)?;
            each(ty, bytes);
        }
        Ok(())
    }

    /// Runs the graph once to its end, and leaves the results where the next run overwrites them: what is timed.
    ///
    /// # Errors
    /// As those of [`Callable::call`].
    pub fn run(&mut self, inputs: &[HostArray]) -> Result<(), CallError> {
        self.set(inputs)?;
        self.executor.run(&self.dims)?;
        Ok(())
    }

    /// Makes the inputs those of the next run.
    fn set(&mut self, inputs: &[HostArray]) -> Result<(), CallError> {
        self.interface.check_count(inputs.len())?;
        for ((name, ty), array) in self.interface.step_inputs.iter().zip(inputs) {
            check("input", name, ty, array)?;
        }
        for ((name, _), array) in self.interface.step_inputs.iter().zip(inputs) {
            self.executor.set_memory(name, array.shared());
        }
        Ok(())
    }
}
