//! `KNGraph`: a kernel graph, by the names and arguments of Mirage.

use super::block::TBGraph;
use super::content::{Customized, PyGraphBody, PyGraphContent, SharedGraph, TaskAnnotation};
use super::explain::explain;
use super::loaded::{CallableKernelGraph, CompileHandle};
use super::search::{SuperoptimizeArgs, superoptimize};
use super::values::DTensor;
use crate::backends::{self, Chosen, wanted};
use crate::dtype;
use crate::failure::{Class, PyFailure, PyOutcome};
use crate::files;
use crate::kind::ArrayKind;
use crate::log::{Level, say};
use crate::numbers::{
    items, maybe, maybe_dimensions, maybe_maps, maybe_strides, maybe_threes, maybe_whole, maybe_wholes, whole, wholes,
};
use crate::process;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use yirage_dlpack::taken;
use yirage_graph::{GraphError, KernelGraph, NORM_EPS, SplitBy};
use yirage_ir::{DType, Format, Graph, ValueId};

/// Arguments of Mirage's calls that only mean something on CUDA: they are taken, and reported once.
const OF_CUDA: [&str; 7] =
    ["target_cc", "num_warp_groups", "pipeline_stages", "enable_online_softmax", "file_id", "stream", "output_dir"];

/// The arrays of a call, or none.
fn arrays<'py>(given: &Bound<'py, PyAny>) -> PyResult<Option<Vec<Bound<'py, PyAny>>>> {
    maybe(given, |given| items(given, "arrays, one for each input of the graph,"))
}

/// A kernel graph: built by its methods, called with arrays.
///
/// Elements are float32, float16 or bfloat16, and all operands of an operation have the same. Values belong to the graph
/// whose method gave them. A method that raises leaves the graph as it was.
#[pyclass(frozen, module = "yirage")]
pub(crate) struct KNGraph {
    content: SharedGraph<PyGraphContent>,
    pub(super) chosen: Chosen,
    loaded: Mutex<Option<Arc<CallableKernelGraph>>>,
}

/// A new kernel graph for a backend; for the current one where none is named.
///
/// Raises:
///     UnknownBackendError, BackendUnavailableError
#[pyfunction]
#[pyo3(signature = (backend = None))]
pub(crate) fn new_kernel_graph(py: Python<'_>, backend: Option<Bound<'_, PyAny>>) -> PyOutcome<KNGraph> {
    let chosen = match backend {
        Some(object) => backends::select(py, &wanted(&object)?)?,
        None => backends::current(py)?,
    };
    Ok(KNGraph::of(PyGraphBody::Building(Box::new(KernelGraph::new("graph"))), chosen, Vec::new()))
}

impl KNGraph {
    pub(super) fn of(form: PyGraphBody, chosen: Chosen, notes: Vec<String>) -> KNGraph {
        KNGraph { content: SharedGraph::new(PyGraphContent::new(form, notes)), chosen, loaded: Mutex::new(None) }
    }

    pub(super) fn content(&self) -> MutexGuard<'_, PyGraphContent> {
        self.content.lock()
    }

    /// The graph so far.
    pub(super) fn graph(&self) -> PyOutcome<Graph> {
        self.content().graph()
    }

    /// The graph so far, of which a call gives every input.
    ///
    /// # Errors
    /// `Unsupported` where arrays are attached.
    pub(crate) fn callable_graph(&self) -> PyOutcome<Graph> {
        let content = self.content();
        if content.attached.is_empty() {
            return content.graph();
        }
        let why = "give each input in the call";
        Err(PyFailure::unsupported(
            format!("a graph with {} attached arrays as an operation", content.attached.len()),
            why,
        ))
    }

    /// Values for Python.
    fn values(slf: &Bound<'_, Self>, what: &str, ids: Vec<ValueId>) -> PyOutcome<Vec<DTensor>> {
        let mut content = slf.get().content();
        let builder = content.builder(what)?;
        let value = |id| {
            let (dims, strides, dtype) = (builder.dims(id)?, builder.strides(id)?, builder.dtype(id)?);
            Ok(DTensor { graph: slf.get().content.clone(), id, dims, strides, dtype })
        };
        ids.into_iter().map(value).collect()
    }

    /// An operation with one result.
    fn add_op(
        slf: &Bound<'_, Self>,
        what: &str,
        ins: &[&Bound<'_, DTensor>],
        op: impl FnOnce(&mut KernelGraph, &[ValueId]) -> Result<ValueId, GraphError>,
    ) -> PyOutcome<DTensor> {
        let mut made = KNGraph::several(slf, what, ins, |builder, ids| Ok(vec![op(builder, ids)?]))?;
        made.pop().ok_or_else(|| PyFailure::Ours(Class::Graph, format!("{what} gave nothing; please report this")))
    }

    fn several(
        slf: &Bound<'_, Self>,
        what: &str,
        ins: &[&Bound<'_, DTensor>],
        op: impl FnOnce(&mut KernelGraph, &[ValueId]) -> Result<Vec<ValueId>, GraphError>,
    ) -> PyOutcome<Vec<DTensor>> {
        let ids = ins.iter().map(|value| value.get().of(&slf.get().content, what)).collect::<PyOutcome<Vec<_>>>()?;
        let made = op(slf.get().content().builder(what)?, &ids)?;
        KNGraph::values(slf, what, made)
    }

    /// Says once of each argument that it changes nothing here, and refuses unknown ones.
    fn report(&self, py: Python<'_>, what: &str, options: Option<&Bound<'_, PyDict>>) -> PyOutcome<()> {
        for (key, value) in options.into_iter().flat_map(|options| options.iter()) {
            let name: String = key.extract()?;
            if !OF_CUDA.contains(&name.as_str()) {
                let text = format!("{what}() got an unexpected keyword argument '{name}'");
                return Err(PyFailure::Raised(pyo3::exceptions::PyTypeError::new_err(text)));
            }
            if value.is_none() {
                continue;
            }
            let new = {
                let mut content = self.content();
                let new = !content.reported.contains(&name);
                content.reported.extend(new.then(|| name.clone()));
                new
            };
            if new {
                let on = self.chosen.name();
                say(py, Level::Info, &format!("{what}: {name} is of CUDA and changes nothing on {on}"))?;
            }
        }
        Ok(())
    }

    /// The graph on its device, compiled where it is not yet.
    fn load(&self, py: Python<'_>, profiled: bool) -> PyOutcome<Arc<CallableKernelGraph>> {
        let (graph, version) = {
            let content = self.content();
            let loaded = self.loaded.lock().unwrap_or_else(PoisonError::into_inner);
            if let Some(loaded) = loaded.as_ref()
                && loaded.version == content.version
                && (loaded.profiler.is_some() || !profiled)
            {
                return Ok(loaded.clone());
            }
            (content.graph()?, content.version)
        };
        let device = backends::device(py, &self.chosen, 0)?;
        let made = py.detach(|| CallableKernelGraph::new(&*device, &graph, version, profiled));
        if let Err(PyFailure::Ours(_, why)) = &made {
            self.content().problem = Some(why.clone());
        }
        let loaded = Arc::new(made?);
        *self.loaded.lock().unwrap_or_else(PoisonError::into_inner) = Some(loaded.clone());
        Ok(loaded)
    }
}

#[pymethods]
impl KNGraph {
    /// The name of the backend that it runs on.
    #[getter]
    fn backend(&self) -> &str {
        self.chosen.name()
    }

    /// Declares an input of these sizes, at most four. ``strides``, in elements, are those of row-major order, which
    /// ``None`` is as well, or of column-major order. ``dtype`` is float16 where it is not given.
    ///
    /// Raises:
    ///     GraphError: more dimensions, other strides, another type of elements.
    #[pyo3(signature = (dims, strides = None, dtype = None))]
    fn new_input(
        slf: &Bound<'_, Self>,
        #[pyo3(from_py_with = wholes)] dims: Vec<u32>,
        #[pyo3(from_py_with = maybe_strides)] strides: Option<Vec<u32>>,
        dtype: Option<Bound<'_, PyAny>>,
    ) -> PyOutcome<DTensor> {
        let dtype = dtype.map_or(Ok(DType::Stored(Format::F16)), |dtype| dtype::of(&dtype))?;
        KNGraph::add_op(slf, "new_input", &[], |g, _| g.new_input(&dims, strides.as_deref(), dtype))
    }

    /// Declares that the graph gives ``A`` back. Results come in the order in which they are marked. ``strides``, in elements,
    /// are those of row-major order, in which results lie.
    ///
    /// Raises:
    ///     OptionError: strides out of range.
    ///     Unsupported: other strides, which a copy of the result or ``permute`` has.
    #[pyo3(signature = (A, strides = None))]
    #[expect(non_snake_case, reason = "Mirage's name of the argument")]
    fn mark_output(
        slf: &Bound<'_, Self>,
        A: &Bound<'_, DTensor>,
        #[pyo3(from_py_with = maybe_strides)] strides: Option<Vec<u32>>,
    ) -> PyOutcome<()> {
        let id = A.get().of(&slf.get().content, "mark_output")?;
        Ok(slf.get().content().builder("mark_output")?.mark_output(id, strides.as_deref())?)
    }

    /// ``A [..., m, k]`` times ``B [..., k, n]``: ranks and leading sizes are equal.
    #[expect(non_snake_case, reason = "Mirage's names of the arguments")]
    fn matmul(slf: &Bound<'_, Self>, A: &Bound<'_, DTensor>, B: &Bound<'_, DTensor>) -> PyOutcome<DTensor> {
        KNGraph::add_op(slf, "matmul", &[A, B], |g, i| g.matmul(i[0], i[1]))
    }

    /// The sum along ``dim``, which stays, of size 1. Below 0 dimensions are counted from the last one, here and in the
    /// other operations.
    #[expect(non_snake_case, reason = "Mirage's name of the argument")]
    fn reduction(slf: &Bound<'_, Self>, A: &Bound<'_, DTensor>, dim: i64) -> PyOutcome<DTensor> {
        KNGraph::add_op(slf, "reduction", &[A], |g, i| g.reduction(i[0], dim))
    }

    /// The largest along ``dim``, which stays, of size 1.
    #[expect(non_snake_case, reason = "as with the other operations")]
    fn max(slf: &Bound<'_, Self>, A: &Bound<'_, DTensor>, dim: i64) -> PyOutcome<DTensor> {
        KNGraph::add_op(slf, "max", &[A], |g, i| g.max(i[0], dim))
    }

    /// ``e**A``.
    #[expect(non_snake_case, reason = "Mirage's name of the argument")]
    fn exp(slf: &Bound<'_, Self>, A: &Bound<'_, DTensor>) -> PyOutcome<DTensor> {
        KNGraph::add_op(slf, "exp", &[A], |g, i| g.exp(i[0]))
    }

    /// ``A / (1 + e**-A)``.
    #[expect(non_snake_case, reason = "Mirage's name of the argument")]
    fn silu(slf: &Bound<'_, Self>, A: &Bound<'_, DTensor>) -> PyOutcome<DTensor> {
        KNGraph::add_op(slf, "silu", &[A], |g, i| g.silu(i[0]))
    }

    /// ``A / 2 * (1 + erf(A / sqrt(2)))``.
    #[expect(non_snake_case, reason = "Mirage's name of the argument")]
    fn gelu(slf: &Bound<'_, Self>, A: &Bound<'_, DTensor>) -> PyOutcome<DTensor> {
        KNGraph::add_op(slf, "gelu", &[A], |g, i| g.gelu(i[0]))
    }

    /// The larger of ``A`` and 0; NaN stays.
    #[expect(non_snake_case, reason = "Mirage's name of the argument")]
    fn relu(slf: &Bound<'_, Self>, A: &Bound<'_, DTensor>) -> PyOutcome<DTensor> {
        KNGraph::add_op(slf, "relu", &[A], |g, i| g.relu(i[0]))
    }

    /// The square root; NaN below 0.
    #[expect(non_snake_case, reason = "Mirage's name of the argument")]
    fn sqrt(slf: &Bound<'_, Self>, A: &Bound<'_, DTensor>) -> PyOutcome<DTensor> {
        KNGraph::add_op(slf, "sqrt", &[A], |g, i| g.sqrt(i[0]))
    }

    /// ``A * A``.
    #[expect(non_snake_case, reason = "Mirage's name of the argument")]
    fn square(slf: &Bound<'_, Self>, A: &Bound<'_, DTensor>) -> PyOutcome<DTensor> {
        KNGraph::add_op(slf, "square", &[A], |g, i| g.square(i[0]))
    }

    /// ``1 / (1 + e**-A)``.
    #[expect(non_snake_case, reason = "as with the other operations")]
    fn sigmoid(slf: &Bound<'_, Self>, A: &Bound<'_, DTensor>) -> PyOutcome<DTensor> {
        KNGraph::add_op(slf, "sigmoid", &[A], |g, i| g.sigmoid(i[0]))
    }

    /// The natural logarithm.
    #[expect(non_snake_case, reason = "as with the other operations")]
    fn log(slf: &Bound<'_, Self>, A: &Bound<'_, DTensor>) -> PyOutcome<DTensor> {
        KNGraph::add_op(slf, "log", &[A], |g, i| g.log(i[0]))
    }

    /// ``min(max(A, min_val), max_val)``.
    #[expect(non_snake_case, reason = "Mirage's name of the argument")]
    fn clamp(slf: &Bound<'_, Self>, A: &Bound<'_, DTensor>, min_val: f32, max_val: f32) -> PyOutcome<DTensor> {
        KNGraph::add_op(slf, "clamp", &[A], |g, i| g.clamp(i[0], min_val, max_val))
    }

    /// ``A * scalar``.
    #[expect(non_snake_case, reason = "as with the other operations")]
    fn mul_scalar(slf: &Bound<'_, Self>, A: &Bound<'_, DTensor>, scalar: f32) -> PyOutcome<DTensor> {
        KNGraph::add_op(slf, "mul_scalar", &[A], |g, i| g.mul_scalar(i[0], scalar))
    }

    /// ``A + B``; a size of 1 meets any other, and ranks are equal.
    #[expect(non_snake_case, reason = "Mirage's names of the arguments")]
    fn add(slf: &Bound<'_, Self>, A: &Bound<'_, DTensor>, B: &Bound<'_, DTensor>) -> PyOutcome<DTensor> {
        KNGraph::add_op(slf, "add", &[A, B], |g, i| g.add(i[0], i[1]))
    }

    /// ``A - B``; a size of 1 meets any other, and ranks are equal.
    #[expect(non_snake_case, reason = "as with the other operations")]
    fn sub(slf: &Bound<'_, Self>, A: &Bound<'_, DTensor>, B: &Bound<'_, DTensor>) -> PyOutcome<DTensor> {
        KNGraph::add_op(slf, "sub", &[A, B], |g, i| g.sub(i[0], i[1]))
    }

    /// ``A * B``; a size of 1 meets any other, and ranks are equal.
    #[expect(non_snake_case, reason = "Mirage's names of the arguments")]
    fn mul(slf: &Bound<'_, Self>, A: &Bound<'_, DTensor>, B: &Bound<'_, DTensor>) -> PyOutcome<DTensor> {
        KNGraph::add_op(slf, "mul", &[A, B], |g, i| g.mul(i[0], i[1]))
    }

    /// ``A / B``; a size of 1 meets any other, and ranks are equal.
    #[expect(non_snake_case, reason = "Mirage's names of the arguments")]
    fn div(slf: &Bound<'_, Self>, A: &Bound<'_, DTensor>, B: &Bound<'_, DTensor>) -> PyOutcome<DTensor> {
        KNGraph::add_op(slf, "div", &[A, B], |g, i| g.div(i[0], i[1]))
    }

    /// ``A ** B``; a size of 1 meets any other, and ranks are equal.
    #[expect(non_snake_case, reason = "Mirage's names of the arguments")]
    fn pow(slf: &Bound<'_, Self>, A: &Bound<'_, DTensor>, B: &Bound<'_, DTensor>) -> PyOutcome<DTensor> {
        KNGraph::add_op(slf, "pow", &[A, B], |g, i| g.pow(i[0], i[1]))
    }

    /// ``A / sqrt(mean(A**2))`` over the trailing dimensions ``normalized_shape``, without weight and epsilon.
    #[expect(non_snake_case, reason = "Mirage's name of the argument")]
    fn rms_norm(
        slf: &Bound<'_, Self>,
        A: &Bound<'_, DTensor>,
        #[pyo3(from_py_with = wholes)] normalized_shape: Vec<u32>,
    ) -> PyOutcome<DTensor> {
        KNGraph::add_op(slf, "rms_norm", &[A], |g, i| g.rms_norm(i[0], &normalized_shape))
    }

    /// ``(A - mean) / sqrt(variance + eps) * weight + bias`` over the trailing dimensions ``normalized_shape``, which
    /// ``weight`` and ``bias`` have; without them 1 and 0.
    #[pyo3(signature = (A, normalized_shape, weight = None, bias = None, eps = NORM_EPS))]
    #[expect(non_snake_case, reason = "as with the other operations")]
    fn layer_norm(
        slf: &Bound<'_, Self>,
        A: &Bound<'_, DTensor>,
        #[pyo3(from_py_with = wholes)] normalized_shape: Vec<u32>,
        weight: Option<&Bound<'_, DTensor>>,
        bias: Option<&Bound<'_, DTensor>>,
        eps: f32,
    ) -> PyOutcome<DTensor> {
        let ins: Vec<_> = [Some(A), weight, bias].into_iter().flatten().collect();
        KNGraph::add_op(slf, "layer_norm", &ins, |g, i| {
            let mut vectors = i[1..].iter().copied();
            let weight = weight.and_then(|_| vectors.next());
            g.layer_norm(i[0], &normalized_shape, weight, vectors.next(), eps)
        })
    }

    /// ``exp(A - max) / sum(exp(A - max))`` along ``dim``.
    #[expect(non_snake_case, reason = "as with the other operations")]
    fn softmax(slf: &Bound<'_, Self>, A: &Bound<'_, DTensor>, dim: i64) -> PyOutcome<DTensor> {
        KNGraph::add_op(slf, "softmax", &[A], |g, i| g.softmax(i[0], dim))
    }

    /// ``softmax(scale q k**T) v`` of ``q [.., heads, len, dim]``, ``k [.., kv_heads, keys, dim]`` and
    /// ``v [.., kv_heads, keys, width]``. ``scale`` is ``1 / sqrt(dim)`` where none is given.
    #[pyo3(signature = (q, k, v, causal = false, scale = None))]
    fn attention(
        slf: &Bound<'_, Self>,
        q: &Bound<'_, DTensor>,
        k: &Bound<'_, DTensor>,
        v: &Bound<'_, DTensor>,
        causal: bool,
        scale: Option<f32>,
    ) -> PyOutcome<DTensor> {
        KNGraph::add_op(slf, "attention", &[q, k, v], |g, i| g.attention(i[0], i[1], i[2], causal, scale))
    }

    /// Values one after the other along ``dim``.
    fn concat(slf: &Bound<'_, Self>, tensors: Vec<Bound<'_, DTensor>>, dim: i64) -> PyOutcome<DTensor> {
        KNGraph::add_op(slf, "concat", &tensors.iter().collect::<Vec<_>>(), |g, i| g.concat(i, dim))
    }

    /// The parts of ``A`` along ``dim``, of these sizes.
    #[expect(non_snake_case, reason = "as with the other operations")]
    fn split(
        slf: &Bound<'_, Self>,
        A: &Bound<'_, DTensor>,
        #[pyo3(from_py_with = wholes)] sizes: Vec<u32>,
        dim: i64,
    ) -> PyOutcome<Vec<DTensor>> {
        KNGraph::several(slf, "split", &[A], |g, i| g.split(i[0], SplitBy::Sizes(&sizes), dim))
    }

    /// So many parts of ``A`` of one size along ``dim``.
    #[expect(non_snake_case, reason = "as with the other operations")]
    fn chunk(
        slf: &Bound<'_, Self>,
        A: &Bound<'_, DTensor>,
        #[pyo3(from_py_with = whole)] chunks: u32,
        dim: i64,
    ) -> PyOutcome<Vec<DTensor>> {
        KNGraph::several(slf, "chunk", &[A], |g, i| g.chunk(i[0], chunks, dim))
    }

    /// The elements of ``A`` in row-major order in another shape; one size may be -1, which is what the others leave.
    #[expect(non_snake_case, reason = "as with the other operations")]
    fn reshape(slf: &Bound<'_, Self>, A: &Bound<'_, DTensor>, dims: Vec<i64>) -> PyOutcome<DTensor> {
        KNGraph::add_op(slf, "reshape", &[A], |g, i| g.reshape(i[0], &dims))
    }

    /// Dimension i of the result is dimension ``dims[i]`` of ``A``.
    #[expect(non_snake_case, reason = "as with the other operations")]
    fn permute(slf: &Bound<'_, Self>, A: &Bound<'_, DTensor>, dims: Vec<i64>) -> PyOutcome<DTensor> {
        KNGraph::add_op(slf, "permute", &[A], |g, i| g.permute(i[0], &dims))
    }

    /// A node that runs the graph of a thread block on these values; gives its results in the order of ``new_output``.
    fn customized(
        slf: &Bound<'_, Self>,
        inputs: Vec<Bound<'_, DTensor>>,
        bgraph: &Bound<'_, TBGraph>,
    ) -> PyOutcome<Vec<DTensor>> {
        let block = bgraph.get().block();
        for note in block.notes() {
            let new = !slf.get().content().reported.contains(&note);
            if new {
                say(slf.py(), Level::Debug, &format!("customized: {note}"))?;
                slf.get().content().reported.push(note);
            }
        }
        let ins: Vec<_> = inputs.iter().collect();
        let made = KNGraph::several(slf, "customized", &ins, |g, i| g.customized(i, &block))?;
        let values = made.iter().map(|value| value.id).collect();
        let block = bgraph.get().shared().clone();
        slf.get().content().customized.push(Customized { block, values, task: None });
        Ok(made)
    }

    /// Gives an input an array for all calls, which then leave it out. The array is read where it lies, at each call.
    #[pyo3(signature = (t, torch_tensor, name = None))]
    fn attach_torch_tensor(
        slf: &Bound<'_, Self>,
        t: &Bound<'_, DTensor>,
        torch_tensor: &Bound<'_, PyAny>,
        name: Option<String>,
    ) -> PyOutcome<()> {
        let what = name.unwrap_or_else(|| "torch_tensor".into());
        let id = t.get().of(&slf.get().content, "attach_torch_tensor")?;
        let array = taken(torch_tensor, &what)?;
        let mut content = slf.get().content();
        let graph = content.builder("attach_torch_tensor")?.dims(id)?;
        let given: Vec<u32> = array.ty().shape.iter().filter_map(|d| d.as_const()).map(|n| n as u32).collect();
        if graph != given {
            let text = format!("attach_torch_tensor: `{what}` has shape {given:?}, the input {graph:?}");
            return Err(PyFailure::Ours(Class::Array, text));
        }
        content.attached.retain(|(own, _)| *own != id);
        content.attached.push((id, array));
        Ok(())
    }

    /// Tensors joined along ``fuse_dim`` group by group: each is cut into ``num_groups`` parts, and the parts of a group
    /// stand together. ``name`` is nobody's here: names belong to inputs and outputs.
    #[pyo3(signature = (input, fuse_dim, num_groups, name = None))]
    fn fuse_tensors(
        slf: &Bound<'_, Self>,
        input: Vec<Bound<'_, DTensor>>,
        fuse_dim: i64,
        #[pyo3(from_py_with = whole)] num_groups: u32,
        name: Option<String>,
    ) -> PyOutcome<DTensor> {
        let _ = name;
        let interleave = |g: &mut KernelGraph, ids: &[ValueId]| g.interleave(ids, num_groups, fuse_dim);
        KNGraph::add_op(slf, "fuse_tensors", &input.iter().collect::<Vec<_>>(), interleave)
    }

    /// Tensors whose parts take turns along ``shuffled_dim``: part i of each, in the order of the list, then part i + 1. So
    /// a task that has neighbouring rows has those of a gate and of its product.
    #[pyo3(signature = (input, shuffled_dim, num_groups, name = None))]
    fn shuffle_tensors(
        slf: &Bound<'_, Self>,
        input: Vec<Bound<'_, DTensor>>,
        shuffled_dim: i64,
        #[pyo3(from_py_with = whole)] num_groups: u32,
        name: Option<String>,
    ) -> PyOutcome<DTensor> {
        let _ = name;
        let interleave = |g: &mut KernelGraph, ids: &[ValueId]| g.interleave(ids, num_groups, shuffled_dim);
        KNGraph::add_op(slf, "shuffle_tensors", &input.iter().collect::<Vec<_>>(), interleave)
    }

    /// Says which task the thread block's graph that was last given to ``customized`` is, for ``generate_task_graph``.
    /// ``params`` are numbers for a code generator; they stand in the task graph and change nothing.
    #[pyo3(signature = (bgraph, task_type, params = None))]
    fn register_task(
        slf: &Bound<'_, Self>,
        bgraph: &Bound<'_, TBGraph>,
        task_type: String,
        params: Option<Vec<i64>>,
    ) -> PyOutcome<()> {
        let mut content = slf.get().content();
        let last = content.customized.last_mut().filter(|last| last.block.is(bgraph.get().shared()));
        let wrong = || {
            let text = format!(
                "register_task({task_type:?}): give the graph to customized first; the last one there is meant"
            );
            PyFailure::Ours(Class::Graph, text)
        };
        last.ok_or_else(wrong)?.task =
            Some(TaskAnnotation { name: task_type.clone(), params: params.unwrap_or_default() });
        Ok(())
    }

    /// The tasks that the graph is cut into for its backend, of which each says what it waits for.
    ///
    /// Returns:
    ///     a ``dict``: ``json_file`` is JSON with ``all_tasks``, ``all_events`` and the tasks of each worker;
    ///     ``cuda_code`` is empty, as backends take plans and no source.
    #[pyo3(signature = (num_gpus = 1, my_gpu_id = 0))]
    fn generate_task_graph<'py>(
        &self,
        py: Python<'py>,
        #[pyo3(from_py_with = whole)] num_gpus: u32,
        #[pyo3(from_py_with = whole)] my_gpu_id: u32,
    ) -> PyOutcome<Bound<'py, PyDict>> {
        let (graph, tasks) = {
            let content = self.content();
            (content.graph()?, content.customized.clone())
        };
        let device = backends::device(py, &self.chosen, 0)?;
        let json = py.detach(|| super::tasks::json(&graph, &*device, &tasks, num_gpus, my_gpu_id))?;
        let found = PyDict::new(py);
        found.set_item("json_file", json)?;
        found.set_item("cuda_code", "")?;
        Ok(found)
    }

    /// Memory of CUDA devices.
    #[pyo3(signature = (t, name = None))]
    fn attach_cuda_tensor(&self, t: &Bound<'_, DTensor>, name: Option<String>) -> PyOutcome<()> {
        let _ = (t, name);
        let why = "no backend of this build allocates by name; give the array with attach_torch_tensor or in the call";
        Err(PyFailure::unsupported("attach_cuda_tensor", why))
    }

    /// Memory of NVSHMEM.
    #[pyo3(signature = (t, name = None))]
    fn attach_nvshmem_tensor(&self, t: &Bound<'_, DTensor>, name: Option<String>) -> PyOutcome<()> {
        let _ = (t, name);
        Err(PyFailure::unsupported("attach_nvshmem_tensor", "no backend of this build shares memory between devices"))
    }

    /// Compiles the graph for its backend, which the first call does otherwise. With ``async_`` on a thread of its own;
    /// the result's ``wait()`` returns when it is done. With ``profiling`` the times of calls are kept for
    /// ``write_trace``. ``inputs`` are looked at by no one.
    #[pyo3(signature = (async_ = false, *, inputs = None, profiling = false, **options))]
    fn compile<'py>(
        slf: &Bound<'py, Self>,
        async_: bool,
        inputs: Option<Bound<'py, PyAny>>,
        profiling: bool,
        options: Option<Bound<'py, PyDict>>,
    ) -> PyOutcome<Option<CompileHandle>> {
        let py = slf.py();
        let _ = inputs;
        slf.get().report(py, "compile", options.as_ref())?;
        if !async_ {
            slf.get().load(py, profiling)?;
            return Ok(None);
        }
        let graph = slf.clone().unbind();
        let work = move || Python::attach(|py| graph.get().load(py, profiling).map(drop));
        let thread = std::thread::Builder::new().name("yirage-compile".into()).spawn(work);
        let failed = |e: std::io::Error| PyFailure::Ours(Class::Device, format!("no thread to compile on: {e}"));
        Ok(Some(CompileHandle::of(thread.map_err(failed)?)))
    }

    /// Runs the graph on arrays, in the order of its inputs, and gives its results in the order in which they were
    /// marked: what the first input is, a tensor of PyTorch or an array of NumPy, or a ``Tensor``. Results are in memory of
    /// their own. Arrays are read where they lie; shape, strides and type of elements are those of the input.
    ///
    /// Raises:
    ///     InputNotFoundError: another number of arrays.
    ///     ArrayError: an array of another shape, order or type.
    #[pyo3(signature = (inputs = None, *, stream = None, profiling = false, **options))]
    fn __call__<'py>(
        slf: &Bound<'py, Self>,
        #[pyo3(from_py_with = arrays)] inputs: Option<Vec<Bound<'py, PyAny>>>,
        stream: Option<Bound<'py, PyAny>>,
        profiling: bool,
        options: Option<Bound<'py, PyDict>>,
    ) -> PyOutcome<Bound<'py, PyList>> {
        let (py, this) = (slf.py(), slf.get());
        process::check()?;
        this.report(py, "__call__", options.as_ref())?;
        if let Some(stream) = stream {
            let given = PyDict::new(py);
            given.set_item("stream", stream)?;
            this.report(py, "__call__", Some(&given))?;
        }
        let inputs = inputs.unwrap_or_default();
        let kind = inputs.first().map_or(Ok(ArrayKind::Ours), ArrayKind::of)?;
        let loaded = this.load(py, profiling)?;
        let mut arrays = Vec::with_capacity(inputs.len());
        for (number, object) in inputs.iter().enumerate() {
            arrays.push(taken(object, &format!("input {number}"))?);
        }
        let arrays = this.with_attached(arrays)?;
        let made = loaded.call(py, &arrays)?;
        Ok(kind.list(py, made)?)
    }

    /// The fastest graph that computes the same, found by search and measured on the backend; the graph itself where
    /// nothing is faster. ``imaps``, ``omaps``, ``griddims``, ``fmaps`` and ``franges`` restrict the tilings that are
    /// tried; ``config`` is ``'attention'``, ``'lora'`` or ``'mlp'``. ``time_limit`` is in seconds, ``budget`` in nodes of
    /// graphs. A candidate is taken where it was the faster one in two looks, which ``why`` tells of. Ctrl-C ends the search.
    ///
    /// Raises:
    ///     OptionError: a limit that no search can follow, with its name, its value and what is wanted.
    #[pyo3(signature = (imaps = None, omaps = None, griddims = None, blockdims = None, fmaps = None, franges = None,
        verbose = false, config = None, backend = None, warmup_iters = 16, profile_iters = 1000,
        use_graph_dataset = true, use_cached_graphs = true, save_codes = false, is_formal_verified = false,
        *, time_limit = None, budget = None))]
    #[expect(clippy::too_many_arguments, reason = "Mirage's")]
    fn superoptimize(
        slf: &Bound<'_, Self>,
        #[pyo3(from_py_with = maybe_maps)] imaps: Option<Vec<[i32; 3]>>,
        #[pyo3(from_py_with = maybe_maps)] omaps: Option<Vec<[i32; 3]>>,
        #[pyo3(from_py_with = maybe_threes)] griddims: Option<Vec<[u32; 3]>>,
        #[pyo3(from_py_with = maybe_threes)] blockdims: Option<Vec<[u32; 3]>>,
        #[pyo3(from_py_with = maybe_dimensions)] fmaps: Option<Vec<i32>>,
        #[pyo3(from_py_with = maybe_wholes)] franges: Option<Vec<u32>>,
        verbose: bool,
        config: Option<String>,
        backend: Option<Bound<'_, PyAny>>,
        #[pyo3(from_py_with = whole)] warmup_iters: u32,
        #[pyo3(from_py_with = whole)] profile_iters: u32,
        use_graph_dataset: bool,
        use_cached_graphs: bool,
        save_codes: bool,
        is_formal_verified: bool,
        time_limit: Option<f64>,
        #[pyo3(from_py_with = maybe_whole)] budget: Option<u64>,
    ) -> PyOutcome<KNGraph> {
        let py = slf.py();
        let chosen = match backend {
            Some(object) => backends::select(py, &wanted(&object)?)?,
            None => slf.get().chosen.clone(),
        };
        let arguments = SuperoptimizeArgs {
            imaps,
            omaps,
            griddims,
            blockdims,
            fmaps,
            franges,
            verbose,
            config,
            warmup_iters,
            profile_iters,
            use_graph_dataset,
            use_cached_graphs,
            save_codes,
            is_formal_verified,
            time_limit,
            budget,
        };
        let (graph, notes) = superoptimize(py, &slf.get().graph()?, &chosen, arguments)?;
        Ok(KNGraph::of(PyGraphBody::Finished(graph), chosen, notes))
    }

    /// Why it runs as it does: what each pass of the compiler did and refused, the kernels, the memory, and what came of a
    /// search. With ``decisions``, every decision stands by itself.
    #[pyo3(signature = (decisions = false))]
    fn why(&self, py: Python<'_>, decisions: bool) -> PyOutcome<String> {
        let (graph, notes) = {
            let content = self.content();
            (content.graph()?, content.notes.clone())
        };
        explain(py, &graph, &self.chosen, &notes, decisions)
    }

    /// Writes the graph as JSON; gives the text where no file is named.
    #[pyo3(signature = (filename = None))]
    fn to_json(&self, filename: Option<PathBuf>) -> PyOutcome<Option<String>> {
        let text = yirage_graph::to_json(&self.graph()?);
        let Some(path) = filename else { return Ok(Some(text)) };
        std::fs::write(&path, text).map_err(|e| PyFailure::io("write", &path, &e))?;
        Ok(None)
    }

    /// Becomes the graph of a file that ``to_json`` wrote. It is finished then: it can be called, not built on.
    fn from_json(slf: &Bound<'_, Self>, filename: PathBuf) -> PyOutcome<()> {
        let text = yirage_mmap::read_text(&filename, yirage_graph::json::MAX_BYTES as u64);
        let text = text.map_err(|e| PyFailure::Ours(Class::Graph, e.to_string()))?;
        let wrong = |e: &dyn std::fmt::Display| PyFailure::Ours(Class::Graph, format!("{}: {e}", filename.display()));
        let graph = yirage_graph::from_json(&text).map_err(|e| wrong(&e))?;
        yirage_ir::verify(&graph).map_err(|e| wrong(&e))?;
        let mut content = slf.get().content();
        let version = content.version + 1;
        *content = PyGraphContent { version, ..PyGraphContent::new(PyGraphBody::Finished(graph), Vec::new()) };
        Ok(())
    }

    /// Writes pictures of the graph, ``file_name.dot`` for graphviz and ``file_name.svg``; neither needs graphviz.
    fn visualize(&self, file_name: PathBuf) -> PyOutcome<()> {
        files::stem(&file_name, "file_name")?;
        let graph = self.graph()?;
        let svg = picture(&graph)?;
        for (ending, text) in [("dot", yirage_graph::dot(&graph)), ("svg", svg)] {
            let mut name = file_name.clone().into_os_string();
            name.push(format!(".{ending}"));
            let path = PathBuf::from(name);
            std::fs::write(&path, text).map_err(|e| PyFailure::io("write", &path, &e))?;
        }
        Ok(())
    }

    /// A picture, for notebooks.
    fn _repr_svg_(&self) -> PyOutcome<String> {
        picture(&self.graph()?)
    }

    /// The graph as text.
    fn __str__(&self) -> PyOutcome<String> {
        Ok(yirage_ir::text::print(&self.graph()?))
    }

    fn __repr__(&self) -> String {
        format!("<yirage kernel graph on {}>", self.chosen.name())
    }

    /// A number that graphs which compute the same by the same operations have in common.
    fn get_owner_independent_hash(&self) -> PyOutcome<u128> {
        Ok(self.graph()?.structural_hash())
    }

    /// Whether the backend has kernels for the graph.
    fn valid_kernels(&self, py: Python<'_>) -> PyOutcome<bool> {
        match self.load(py, false) {
            Ok(_) => Ok(true),
            Err(PyFailure::Ours(Class::Unsupported | Class::Device, _)) => Ok(false),
            Err(failure) => Err(failure),
        }
    }

    /// Why the graph could not be compiled; empty where nothing kept it from that.
    fn get_error_message(&self) -> String {
        self.content().problem.clone().unwrap_or_default()
    }

    /// Writes the times of all calls since ``compile(profiling=True)`` as a trace for Perfetto: a span a task, on a track
    /// a worker.
    fn write_trace(&self, file_name: PathBuf) -> PyOutcome<()> {
        let loaded = self.loaded.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let profiler = loaded.as_ref().and_then(|loaded| loaded.profiler.as_ref()).ok_or_else(|| {
            PyFailure::Ours(
                Class::Graph,
                "write_trace: nothing was kept; compile(profiling=True) before the calls".into(),
            )
        })?;
        let failed = |e: std::io::Error| PyFailure::io("write", &file_name, &e);
        let mut file = std::io::BufWriter::new(std::fs::File::create(&file_name).map_err(failed)?);
        yirage_explain::write_trace(&profiler.profile(), &mut file).map_err(failed)?;
        std::io::Write::flush(&mut file).map_err(failed)
    }
}

impl KNGraph {
    /// The arrays of all inputs: those that a call gives, and those that are attached.
    fn with_attached(&self, given: Vec<yirage_plancache::HostArray>) -> PyOutcome<Vec<yirage_plancache::HostArray>> {
        let content = self.content();
        if content.attached.is_empty() {
            return Ok(given);
        }
        let graph = content.graph()?;
        let open = content.open(&graph);
        if open.len() != given.len() {
            let names: Vec<&str> = open.iter().map(|&id| graph.value(id).name.as_str()).collect();
            let (attached, wanted) = (content.attached.len(), names.len());
            let text = format!(
                "{} inputs are given; {attached} are attached, and {wanted} are wanted: {}",
                given.len(),
                names.join(", ")
            );
            return Err(PyFailure::Ours(Class::Inputs, text));
        }
        let mut rest = given.into_iter();
        let one = |id: ValueId| {
            let attached = content.attached.iter().find(|(own, _)| *own == id).map(|(_, array)| array.clone());
            attached.or_else(|| rest.next())
        };
        Ok(graph.inputs_of(yirage_ir::ValueSource::StepInput).filter_map(one).collect())
    }
}

fn picture(graph: &Graph) -> PyOutcome<String> {
    yirage_graph::svg(graph).map_err(|e| PyFailure::Ours(Class::Graph, e.to_string()))
}
