//! The class.

use super::config::{FusionConfig, counts, tell};
use super::group::{CompiledGroup, FusionGroup, ResultSource, fusion_groups};
use super::subgraph::{Registered, SubGraph, SubgraphStep, SubgraphWork};
use crate::backends;
use crate::failure::{Class, PyFailure, PyOutcome};
use crate::graphs::KNGraph;
use crate::kind::ArrayKind;
use crate::lock::lock_detached;
use crate::log::{Level, say};
use crate::process;
use pyo3::prelude::*;
use pyo3::types::{IntoPyDict, PyDict, PyTuple};
use std::collections::{HashMap, VecDeque};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use yirage_dlpack::{PyTensor, taken};
use yirage_graph::KernelGraph;
use yirage_plancache::{BoundGraph, HostArray, Mode, PlanCache};

/// Graphs of pieces that are remembered; those used longest ago go first.
const GRAPHS: usize = 256;

/// Dispatches sub-graphs to kept plans.
#[pyclass(frozen, module = "yirage")]
pub(crate) struct FusionScheduler {
    plans: PlanCache,
    fallback: bool,
    debug: bool,
    ops: Mutex<HashMap<String, Registered>>,
    graphs: Mutex<VecDeque<(String, Arc<CompiledGroup>)>>,
    /// Operations that callables of Python computed.
    python_ops: AtomicU64,
    /// Pieces that callables computed because no plan could.
    op_fallbacks: AtomicU64,
}

/// A value of a dispatch, as whoever made it has it.
struct DispatchValue {
    object: Option<Py<PyAny>>,
    array: Option<HostArray>,
}

/// The values of a dispatch by their names.
struct DispatchValues {
    kind: ArrayKind,
    of: HashMap<String, DispatchValue>,
}

impl DispatchValues {
    fn object<'py>(&mut self, py: Python<'py>, name: &str) -> PyOutcome<Bound<'py, PyAny>> {
        let kind = self.kind;
        let value = self.get(name)?;
        if let Some(object) = &value.object {
            return Ok(object.bind(py).clone());
        }
        let array = value.array.as_ref().ok_or_else(|| missing(name))?;
        let object = kind.convert_tensor(py, PyTensor::of(array.ty(), array.bytes())?)?;
        value.object = Some(object.clone().unbind());
        Ok(object)
    }

    fn array(&mut self, py: Python<'_>, name: &str) -> PyOutcome<HostArray> {
        let value = self.get(name)?;
        if let Some(array) = &value.array {
            return Ok(array.clone());
        }
        let object = value.object.as_ref().ok_or_else(|| missing(name))?;
        let array = taken(object.bind(py), &format!("the value `{name}`"))?;
        value.array = Some(array.clone());
        Ok(array)
    }

    fn get(&mut self, name: &str) -> PyOutcome<&mut DispatchValue> {
        self.of.get_mut(name).ok_or_else(|| missing(name))
    }

    fn put_array(&mut self, name: &str, array: HostArray) {
        self.of.insert(name.to_owned(), DispatchValue { object: None, array: Some(array) });
    }

    /// The value `of` under another name.
    fn put_again(&mut self, py: Python<'_>, name: &str, of: &str) -> PyOutcome<()> {
        let DispatchValue { object, array } = self.get(of)?;
        let again = DispatchValue { object: object.as_ref().map(|object| object.clone_ref(py)), array: array.clone() };
        self.of.insert(name.to_owned(), again);
        Ok(())
    }

    fn put_object(&mut self, name: &str, object: &Bound<'_, PyAny>) {
        self.of.insert(name.to_owned(), DispatchValue { object: Some(object.clone().unbind()), array: None });
    }
}

fn missing(name: &str) -> PyFailure {
    PyFailure::Ours(Class::Graph, format!("nothing has made `{name}`; please report this"))
}

impl FusionScheduler {
    /// Runs a piece, whose results become values.
    fn run(&self, py: Python<'_>, piece: &FusionGroup<'_>, values: &mut DispatchValues) -> PyOutcome<()> {
        match (&piece.steps[0].work, piece.steps) {
            (SubgraphWork::Callable(callable), [step]) => self.call(py, step, callable, values),
            (SubgraphWork::Graph(graph), [step]) => {
                let arrays = step.inputs.iter().map(|name| values.array(py, name)).collect::<PyOutcome<Vec<_>>>()?;
                let made = self.planned(py, graph, &arrays)?;
                step.check_count(made.len())?;
                step.outputs.iter().zip(made).for_each(|(name, array)| values.put_array(name, array));
                Ok(())
            }
            _ => self.operations(py, piece, values),
        }
    }

    /// Runs operations by their plan; by callables where there can be none and each has one.
    fn operations(&self, py: Python<'_>, piece: &FusionGroup<'_>, values: &mut DispatchValues) -> PyOutcome<()> {
        let (class, why) = match self.compiled(py, piece, values) {
            Err(PyFailure::Ours(class @ (Class::Graph | Class::Array | Class::Unsupported), why)) if self.fallback => {
                (class, why)
            }
            done => return done,
        };
        let instead = |step: &SubgraphStep| match &step.work {
            SubgraphWork::Operation { instead } => instead.as_ref().map(|callable| callable.clone_ref(py)),
            _ => None,
        };
        let Some(callables) = piece.steps.iter().map(instead).collect::<Option<Vec<_>>>() else {
            let without = piece.steps.iter().filter(|step| instead(step).is_none()).map(|step| step.op.as_str());
            let without = without.collect::<Vec<_>>().join(", ");
            let text = format!("{why}; nothing falls back, as no callable is registered for {without}");
            return Err(PyFailure::Ours(class, text));
        };
        say(py, Level::Warning, &format!("no plan can be made and callables run operation by operation: {why}"))?;
        self.op_fallbacks.fetch_add(1, Ordering::Relaxed);
        let mut all = piece.steps.iter().zip(&callables);
        all.try_for_each(|(step, callable)| self.call(py, step, callable, values))
    }

    /// Runs operations by their plan.
    fn compiled(&self, py: Python<'_>, piece: &FusionGroup<'_>, values: &mut DispatchValues) -> PyOutcome<()> {
        let arrays = piece.reads.iter().map(|name| values.array(py, name)).collect::<PyOutcome<Vec<_>>>()?;
        let types: Vec<_> = arrays.iter().map(HostArray::ty).collect();
        let key = piece.key(py, &types)?;
        let compiled = match self.remembered(py, &key) {
            Some(compiled) => compiled,
            None => self.remember(py, key, Arc::new(piece.compiled(py, &types)?)),
        };
        let made = match &compiled.graph {
            Some(graph) => self.planned(py, graph, &arrays)?,
            None => Vec::new(),
        };
        for (name, place) in piece.gives.iter().zip(&compiled.sources) {
            match *place {
                ResultSource::Read(at) => values.put_again(py, name, piece.reads[at])?,
                ResultSource::Result(at) => values.put_array(name, made[at].clone()),
            }
        }
        Ok(())
    }

    /// Runs a graph by the plan cache, without Python's lock.
    fn planned(&self, py: Python<'_>, graph: &BoundGraph, arrays: &[HostArray]) -> PyOutcome<Vec<HostArray>> {
        let called = py.detach(|| self.plans.call(graph, arrays, Mode::Fusion))?;
        tell(py, &called.notices, self.debug)?;
        Ok(called.outputs)
    }

    /// Runs a callable of Python.
    fn call(
        &self,
        py: Python<'_>,
        step: &SubgraphStep,
        callable: &Py<PyAny>,
        values: &mut DispatchValues,
    ) -> PyOutcome<()> {
        let given = step.inputs.iter().map(|name| values.object(py, name)).collect::<PyOutcome<Vec<_>>>()?;
        let attrs = step.attrs.iter().map(|(name, value)| (name, value.bind(py))).into_py_dict(py)?;
        let made = callable.bind(py).call(PyTuple::new(py, given)?, Some(&attrs))?;
        self.python_ops.fetch_add(1, Ordering::Relaxed);
        match &step.outputs[..] {
            [name] => values.put_object(name, &made),
            names => {
                let made = made.try_iter()?.collect::<PyResult<Vec<_>>>()?;
                step.check_count(made.len())?;
                names.iter().zip(&made).for_each(|(name, object)| values.put_object(name, object));
            }
        }
        Ok(())
    }

    /// The graph of a piece, if it is remembered; it is now the one used last.
    fn remembered(&self, py: Python<'_>, key: &str) -> Option<Arc<CompiledGroup>> {
        let mut graphs = lock_detached(py, &self.graphs);
        let at = graphs.iter().position(|(known, _)| known == key)?;
        let used = graphs.remove(at)?;
        let compiled = used.1.clone();
        graphs.push_back(used);
        Some(compiled)
    }

    /// Remembers the graph of a piece as the one used last, in the place of one that another thread made meanwhile.
    fn remember(&self, py: Python<'_>, key: String, compiled: Arc<CompiledGroup>) -> Arc<CompiledGroup> {
        let mut graphs = lock_detached(py, &self.graphs);
        graphs.retain(|(known, _)| *known != key);
        graphs.push_back((key, compiled.clone()));
        if graphs.len() > GRAPHS {
            graphs.pop_front();
        }
        compiled
    }
}

#[pymethods]
impl FusionScheduler {
    #[new]
    #[pyo3(signature = (config, device = None))]
    fn new(py: Python<'_>, config: FusionConfig, device: Option<Bound<'_, PyAny>>) -> PyOutcome<FusionScheduler> {
        let device = backends::device_argument(py, device.as_ref())?;
        Ok(FusionScheduler {
            plans: PlanCache::new(device, config.options()),
            fallback: config.fallback_on_error,
            debug: config.debug_mode,
            ops: Mutex::default(),
            graphs: Mutex::default(),
            python_ops: AtomicU64::new(0),
            op_fallbacks: AtomicU64::new(0),
        })
    }

    /// Runs a sub-graph on arrays by their names; its outputs by theirs.
    fn dispatch<'py>(
        &self,
        py: Python<'py>,
        graph: SubGraph,
        inputs: &Bound<'py, PyDict>,
    ) -> PyOutcome<Bound<'py, PyDict>> {
        process::check()?;
        let steps = graph.steps(py, &lock_detached(py, &self.ops))?;
        let mut values = DispatchValues { kind: ArrayKind::Ours, of: HashMap::new() };
        for (number, name) in graph.input_names.iter().enumerate() {
            let object = inputs.get_item(name)?.ok_or_else(|| {
                let text = format!("the input `{name}` is missing; inputs are {}", graph.input_names.join(", "));
                PyFailure::Ours(Class::Inputs, text)
            })?;
            if number == 0 {
                values.kind = ArrayKind::of(&object)?;
            }
            values.put_object(name, &object);
        }
        let names: Vec<String> = inputs.keys().extract()?;
        if let Some(other) = names.iter().find(|name| !graph.input_names.contains(name)) {
            let text = format!("the sub-graph has no input `{other}`; inputs are {}", graph.input_names.join(", "));
            return Err(PyFailure::Ours(Class::Inputs, text));
        }
        fusion_groups(&steps, &graph.output_names).iter().try_for_each(|piece| self.run(py, piece, &mut values))?;
        let outputs = PyDict::new(py);
        for name in &graph.output_names {
            outputs.set_item(name, values.object(py, name)?)?;
        }
        Ok(outputs)
    }

    /// Gives a name a meaning: a kernel graph, a sub-graph or a callable.
    fn register_op(&self, py: Python<'_>, op_type: String, op: &Bound<'_, PyAny>) -> PyOutcome<()> {
        let operation = KernelGraph::operations().any(|known| known == op_type);
        let registered = if let Ok(graph) = op.cast::<KNGraph>() {
            let graph = graph.get().callable_graph()?;
            Registered::Graph(Arc::new(BoundGraph::new(graph, Vec::new())?))
        } else if let Ok(graph) = op.extract::<SubGraph>() {
            graph.check_operation()?;
            Registered::SubGraph(Arc::new(graph))
        } else if op.is_callable() {
            Registered::Callable(op.clone().unbind())
        } else {
            let text =
                format!("register_op({op_type:?}): a callable, a SubGraph or a KNGraph is wanted, {op} is given");
            return Err(PyFailure::option(text));
        };
        match (&registered, operation) {
            (Registered::Callable(_), true) => {
                let text =
                    format!("`{op_type}` is an operation of graphs: the callable runs where no plan can be made");
                say(py, Level::Info, &text)?;
            }
            (_, true) => {
                let text = format!("register_op({op_type:?}): it is an operation of graphs; take another name");
                return Err(PyFailure::option(text));
            }
            _ => {}
        }
        lock_detached(py, &self.ops).insert(op_type, registered);
        Ok(())
    }

    /// Drops all plans and what they hold on the device.
    fn clear_cache(&self, py: Python<'_>) {
        lock_detached(py, &self.graphs).clear();
        py.detach(|| self.plans.clear());
    }

    /// What was done so far, by InfiniLM's and InfiniCore's keys.
    fn get_cache_stats<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let found = counts(py, &self.plans.stats())?;
        for (name, same) in [("size", "cache_size"), ("keys", "cached_shapes")] {
            found.set_item(name, found.get_item(same)?)?;
        }
        found.set_item("python_ops", self.python_ops.load(Ordering::Relaxed))?;
        found.set_item("op_fallbacks", self.op_fallbacks.load(Ordering::Relaxed))?;
        Ok(found)
    }
}
