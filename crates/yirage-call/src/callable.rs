//! Compiling, loading and calling.

use crate::array::Array;
use crate::error::CallError;
use yirage_compile::{Options, compile, plan_weights};
use yirage_hal::{Bindings, Device, Executor, Record, write_view};
use yirage_ir::{Dim, Dims, Graph, Source, Type, ValueId};
use yirage_plan::{Precision, Target, VerifiedPlan, WeightPlan};

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

/// A graph that is loaded on a device.
pub struct Callable {
    graph: String,
    executor: Executor,
    dims: Dims,
    inputs: Vec<(String, Type)>,
    outputs: Vec<(String, Type)>,
    kernels: Vec<String>,
}

/// The plan of a graph on a target.
///
/// # Errors
/// [`CallError::Compile`], and [`CallError::Unsupported`] for a graph with cache states.
pub fn planned(graph: &Graph, target: &Target, options: &CallOptions) -> Result<VerifiedPlan, CallError> {
    let weights = weight_plan(graph, target)?;
    plan(graph, target, &weights, options)
}

fn weight_plan(graph: &Graph, target: &Target) -> Result<WeightPlan, CallError> {
    if let Some(state) = graph.inputs_of(Source::State).next() {
        return Err(CallError::Unsupported {
            what: format!("calling the graph `{}` with its state `{}`", graph.name, graph.value(state).name),
            why: "caches are the engine's; a graph that is called has slots and weights alone",
        });
    }
    Ok(plan_weights(graph, target)?)
}

fn plan(
    graph: &Graph,
    target: &Target,
    weights: &WeightPlan,
    options: &CallOptions,
) -> Result<VerifiedPlan, CallError> {
    // A plan is made for some of each size; a step may have none.
    let Dims { tokens, seqs, blocks, rows } = options.dims;
    let bucket = Dims { tokens: tokens.max(1), seqs: seqs.max(1), blocks: blocks.max(1), rows: rows.max(1) };
    let how = Options { fuse: options.fuse, ..Options::new(options.precision) };
    Ok(compile(graph, bucket, target, weights, &how)?)
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
        weights: &[(String, Array)],
        options: &CallOptions,
    ) -> Result<Callable, CallError> {
        let target = device.target();
        let places = weight_plan(graph, &target)?;
        let of_graph = |name: &str| graph.inputs_of(Source::Weight).any(|id| graph.value(id).name == name);
        if let Some((name, _)) = weights.iter().find(|(name, _)| !of_graph(name)) {
            return Err(CallError::Weight { name: name.clone(), why: "the graph has none of that name" });
        }
        let plan = plan(graph, &target, &places, options)?;
        let mut bindings = Bindings::default();
        for entry in &places.entries {
            let given = weights.iter().find(|(name, _)| *name == entry.name).map(|(_, array)| array);
            let array = given.ok_or_else(|| CallError::Weight { name: entry.name.clone(), why: "it is not given" })?;
            check("the weight", &entry.name, &entry.ty, array)?;
            let mut sink = device.weight(entry)?;
            write_view(&mut *sink, &entry.name, &entry.ty, array.bytes())?;
            bindings.weights.insert(entry.name.clone(), sink.finish()?);
        }
        let named = |id: ValueId| (graph.value(id).name.clone(), fixed(graph.ty(id), &options.dims));
        Ok(Callable {
            graph: graph.name.clone(),
            executor: Executor::new(device, &plan, &bindings)?,
            dims: options.dims,
            inputs: graph.inputs_of(Source::Slot).map(named).collect(),
            outputs: graph.outputs.iter().map(|&id| named(id)).collect(),
            kernels: plan.steps.iter().map(|step| plan.kernels[step.kernel as usize].name.clone()).collect(),
        })
    }

    /// Names and types of what a call takes, in order.
    pub fn inputs(&self) -> &[(String, Type)] {
        &self.inputs
    }

    /// Names and types of what a call gives, in order.
    pub fn outputs(&self) -> &[(String, Type)] {
        &self.outputs
    }

    /// The kernel of each step, in the order of the plan.
    pub fn kernels(&self) -> &[String] {
        &self.kernels
    }

    /// Runs the graph once. The results are in memory of their own, dense and in row-major order.
    ///
    /// # Errors
    /// Another number of inputs, or one that is not of its type; what the device says.
    pub fn call(&mut self, inputs: &[Array]) -> Result<Vec<Array>, CallError> {
        let mut made = Vec::with_capacity(self.outputs.len());
        self.call_with(inputs, &mut |ty, bytes| {
            let mut memory = Record::zeroed(bytes.len());
            memory.bytes_mut().copy_from_slice(bytes);
            made.push(Array::new(ty.clone(), memory));
        })?;
        made.into_iter().collect()
    }

    /// Runs the graph once and gives `each` the type and elements of every result, in order: dense and row-major, and
    /// there until it returns.
    ///
    /// # Errors
    /// As those of [`Callable::call`].
    pub fn call_with(&mut self, inputs: &[Array], each: &mut dyn FnMut(&Type, &[u8])) -> Result<(), CallError> {
        self.set(inputs)?;
        let outputs = self.executor.run(&self.dims)?;
        for (index, (_, ty)) in self.outputs.iter().enumerate() {
            let (_, bytes) = outputs.bytes(index)?;
            each(ty, bytes);
        }
        Ok(())
    }

    /// Runs the graph once to its end, and leaves the results where the next run overwrites them: what is timed.
    ///
    /// # Errors
    /// As those of [`Callable::call`].
    pub fn run(&mut self, inputs: &[Array]) -> Result<(), CallError> {
        self.set(inputs)?;
        self.executor.run(&self.dims)?;
        Ok(())
    }

    /// Makes the inputs those of the next run.
    fn set(&mut self, inputs: &[Array]) -> Result<(), CallError> {
        if inputs.len() != self.inputs.len() {
            let names: Vec<String> = self.inputs.iter().map(|(name, ty)| format!("{name} {ty}")).collect();
            return Err(CallError::Count {
                graph: self.graph.clone(),
                given: inputs.len(),
                wanted: self.inputs.len(),
                names: names.join(", "),
            });
        }
        for ((name, ty), array) in self.inputs.iter().zip(inputs) {
            check("input", name, ty, array)?;
        }
        for ((name, _), array) in self.inputs.iter().zip(inputs) {
            self.executor.set_memory(name, array.shared());
        }
        Ok(())
    }
}

fn check(what: &'static str, name: &str, wanted: &Type, array: &Array) -> Result<(), CallError> {
    if array.fits(wanted) {
        return Ok(());
    }
    let (wanted, given) = (wanted.to_string(), array.ty().to_string());
    Err(CallError::Type { what, name: name.to_owned(), wanted, given })
}

/// The type with numbers for its symbols.
fn fixed(ty: &Type, dims: &Dims) -> Type {
    let size = |dim: &Dim| match dim {
        Dim::Const(n) => Dim::Const(*n),
        Dim::Sym(sym) => Dim::Const(dims.get(*sym)),
    };
    Type { shape: ty.shape.iter().map(size).collect(), ..ty.clone() }
}
