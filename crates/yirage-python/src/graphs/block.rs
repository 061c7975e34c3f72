//! `TBGraph`: the graph of a thread block, by the names and arguments of Mirage.

use super::content::{PyBlockGraph, SharedGraph};
use super::values::{DTensor, STensor};
use crate::failure::{Class, PyFailure, PyOutcome};
use crate::numbers::{three, whole};
use pyo3::prelude::*;
use yirage_graph::{BlockGraph, BlockValue, ForloopAccum, GraphError, NORM_EPS};

/// The graph of a thread block, for ``KNGraph.customized``.
#[pyclass(frozen, module = "yirage")]
pub(crate) struct TBGraph(SharedGraph<PyBlockGraph>);

/// A new graph of a thread block: blocks along each axis, threads of a block, iterations of its loop, and the width that
/// ``forloop_accum(.., 'sum_todimx')`` leaves.
#[pyfunction]
#[pyo3(signature = (grid_dim, block_dim, forloop_range, reduction_dimx = 64))]
pub(crate) fn new_threadblock_graph(
    #[pyo3(from_py_with = three)] grid_dim: [u32; 3],
    #[pyo3(from_py_with = three)] block_dim: [u32; 3],
    #[pyo3(from_py_with = whole)] forloop_range: u32,
    #[pyo3(from_py_with = whole)] reduction_dimx: u32,
) -> PyOutcome<TBGraph> {
    let graph = BlockGraph::new(grid_dim, block_dim, forloop_range, reduction_dimx)?;
    Ok(TBGraph(SharedGraph::new(PyBlockGraph { graph, operators: Vec::new() })))
}

impl TBGraph {
    /// The graph, by which it is known again.
    pub(super) fn shared(&self) -> &SharedGraph<PyBlockGraph> {
        &self.0
    }

    /// The graph as it is.
    pub(super) fn block(&self) -> BlockGraph {
        self.with(|block| block.graph.clone())
    }

    fn with<R>(&self, f: impl FnOnce(&mut PyBlockGraph) -> R) -> R {
        f(&mut self.0.lock())
    }

    fn add_op(
        slf: &Bound<'_, Self>,
        what: &str,
        ins: &[&Bound<'_, STensor>],
        op: impl FnOnce(&mut BlockGraph, &[BlockValue]) -> Result<BlockValue, GraphError>,
    ) -> PyOutcome<STensor> {
        let values = ins.iter().map(|value| value.get().of(&slf.get().0, what)).collect::<PyOutcome<Vec<_>>>()?;
        let value = slf.get().with(|block| {
            let made = op(&mut block.graph, &values)?;
            block.operators.push(what.to_owned());
            Ok::<_, GraphError>(made)
        })?;
        STensor::shown(&slf.get().0, value)
    }
}

fn accum(acc: Option<&str>) -> PyOutcome<Option<ForloopAccum>> {
    match acc {
        None => Ok(None),
        Some("sum") => Ok(Some(ForloopAccum::Sum)),
        Some("mean") => Ok(Some(ForloopAccum::Mean)),
        Some("rms") => Ok(Some(ForloopAccum::Rms)),
        Some("sum_todimx") => Ok(Some(ForloopAccum::SumToDimx)),
        Some(other) => {
            let text = format!("acc={other:?}: None, 'sum', 'mean', 'rms' or 'sum_todimx' is wanted");
            Err(PyFailure::Ours(Class::Graph, text))
        }
    }
}

#[pymethods]
impl TBGraph {
    /// Blocks along each axis.
    #[getter]
    fn grid_dim(&self) -> (u32, u32, u32) {
        self.with(|block| block.graph.grid_dim().into())
    }

    /// Threads of a block along each axis, as they were given.
    #[getter]
    fn block_dim(&self) -> (u32, u32, u32) {
        self.with(|block| block.graph.block_dim().into())
    }

    /// Iterations of a block's loop.
    #[getter]
    fn forloop_range(&self) -> u32 {
        self.with(|block| block.graph.forloop_range())
    }

    /// The width that ``forloop_accum(.., 'sum_todimx')`` leaves.
    #[getter]
    fn reduction_dimx(&self) -> u32 {
        self.with(|block| block.graph.reduction_dimx())
    }

    /// The names of its operations, in the order in which they were made.
    #[getter]
    fn operators(&self) -> Vec<String> {
        self.with(|block| block.operators.clone())
    }

    /// A tile of a value of a kernel graph: ``input_map`` names the dimension that each axis of the grid cuts and
    /// ``forloop_dim`` the one that the loop cuts, each -1 for none: then each iteration reads the same.
    #[pyo3(signature = (dtensor, input_map, forloop_dim, store_in_dmem = false))]
    fn new_input(
        slf: &Bound<'_, Self>,
        dtensor: &Bound<'_, DTensor>,
        input_map: [i32; 3],
        forloop_dim: i32,
        store_in_dmem: bool,
    ) -> PyOutcome<STensor> {
        let dtensor = dtensor.get();
        let mut content = dtensor.graph.lock();
        let graph = content.builder("new_input")?;
        let value = slf.get().with(|block| {
            let made = block.graph.new_input(graph, dtensor.id, input_map, forloop_dim, store_in_dmem)?;
            block.operators.push("new_input".to_owned());
            Ok::<_, GraphError>(made)
        })?;
        STensor::shown(&slf.get().0, value)
    }

    /// Declares that each block gives a tile, laid out along the dimensions that ``output_map`` names, -1 for none.
    #[pyo3(signature = (stensor, output_map, forloop_dim = -1, epilogue = None))]
    fn new_output(
        slf: &Bound<'_, Self>,
        stensor: &Bound<'_, STensor>,
        output_map: [i32; 3],
        forloop_dim: i32,
        epilogue: Option<&str>,
    ) -> PyOutcome<()> {
        if let Some(epilogue) = epilogue {
            let why = "no backend of this build has several devices that compute one graph";
            return Err(PyFailure::unsupported(format!("new_output with epilogue {epilogue:?}"), why));
        }
        let value = stensor.get().of(&slf.get().0, "new_output")?;
        slf.get().with(|block| {
            block.graph.new_output(value, output_map, forloop_dim)?;
            block.operators.push("new_output".to_owned());
            Ok(())
        })
    }

    /// ``A [..., m, k]`` times ``B [..., k, n]``.
    #[expect(non_snake_case, reason = "Mirage's names of the arguments")]
    fn matmul(slf: &Bound<'_, Self>, A: &Bound<'_, STensor>, B: &Bound<'_, STensor>) -> PyOutcome<STensor> {
        TBGraph::add_op(slf, "matmul", &[A, B], |g, v| g.matmul(v[0], v[1]))
    }

    /// ``e**A``.
    #[expect(non_snake_case, reason = "Mirage's name of the argument")]
    fn exp(slf: &Bound<'_, Self>, A: &Bound<'_, STensor>) -> PyOutcome<STensor> {
        TBGraph::add_op(slf, "exp", &[A], |g, v| g.exp(v[0]))
    }

    /// ``A / (1 + e**-A)``.
    #[expect(non_snake_case, reason = "Mirage's name of the argument")]
    fn silu(slf: &Bound<'_, Self>, A: &Bound<'_, STensor>) -> PyOutcome<STensor> {
        TBGraph::add_op(slf, "silu", &[A], |g, v| g.silu(v[0]))
    }

    /// ``A / 2 * (1 + erf(A / sqrt(2)))``.
    #[expect(non_snake_case, reason = "Mirage's name of the argument")]
    fn gelu(slf: &Bound<'_, Self>, A: &Bound<'_, STensor>) -> PyOutcome<STensor> {
        TBGraph::add_op(slf, "gelu", &[A], |g, v| g.gelu(v[0]))
    }

    /// The larger of ``A`` and 0.
    #[expect(non_snake_case, reason = "Mirage's name of the argument")]
    fn relu(slf: &Bound<'_, Self>, A: &Bound<'_, STensor>) -> PyOutcome<STensor> {
        TBGraph::add_op(slf, "relu", &[A], |g, v| g.relu(v[0]))
    }

    /// ``min(max(A, min_val), max_val)``.
    #[expect(non_snake_case, reason = "Mirage's name of the argument")]
    fn clamp(slf: &Bound<'_, Self>, A: &Bound<'_, STensor>, min_val: f32, max_val: f32) -> PyOutcome<STensor> {
        TBGraph::add_op(slf, "clamp", &[A], |g, v| g.clamp(v[0], min_val, max_val))
    }

    /// ``A * A``.
    #[expect(non_snake_case, reason = "Mirage's name of the argument")]
    fn square(slf: &Bound<'_, Self>, A: &Bound<'_, STensor>) -> PyOutcome<STensor> {
        TBGraph::add_op(slf, "square", &[A], |g, v| g.square(v[0]))
    }

    /// The square root.
    #[expect(non_snake_case, reason = "Mirage's name of the argument")]
    fn sqrt(slf: &Bound<'_, Self>, A: &Bound<'_, STensor>) -> PyOutcome<STensor> {
        TBGraph::add_op(slf, "sqrt", &[A], |g, v| g.sqrt(v[0]))
    }

    /// ``A * scalar``.
    #[expect(non_snake_case, reason = "Mirage's name of the argument")]
    fn mul_scalar(slf: &Bound<'_, Self>, A: &Bound<'_, STensor>, scalar: f32) -> PyOutcome<STensor> {
        TBGraph::add_op(slf, "mul_scalar", &[A], |g, v| g.mul_scalar(v[0], scalar))
    }

    /// ``A + B``.
    #[expect(non_snake_case, reason = "Mirage's names of the arguments")]
    fn add(slf: &Bound<'_, Self>, A: &Bound<'_, STensor>, B: &Bound<'_, STensor>) -> PyOutcome<STensor> {
        TBGraph::add_op(slf, "add", &[A, B], |g, v| g.add(v[0], v[1]))
    }

    /// ``A * B``.
    #[expect(non_snake_case, reason = "Mirage's names of the arguments")]
    fn mul(slf: &Bound<'_, Self>, A: &Bound<'_, STensor>, B: &Bound<'_, STensor>) -> PyOutcome<STensor> {
        TBGraph::add_op(slf, "mul", &[A, B], |g, v| g.mul(v[0], v[1]))
    }

    /// ``A / B``.
    #[expect(non_snake_case, reason = "Mirage's names of the arguments")]
    fn div(slf: &Bound<'_, Self>, A: &Bound<'_, STensor>, B: &Bound<'_, STensor>) -> PyOutcome<STensor> {
        TBGraph::add_op(slf, "div", &[A, B], |g, v| g.div(v[0], v[1]))
    }

    /// ``A - B``.
    #[expect(non_snake_case, reason = "Mirage's names of the arguments")]
    fn sub(slf: &Bound<'_, Self>, A: &Bound<'_, STensor>, B: &Bound<'_, STensor>) -> PyOutcome<STensor> {
        TBGraph::add_op(slf, "sub", &[A, B], |g, v| g.sub(v[0], v[1]))
    }

    /// The sum along ``dim``, which stays, of size 1.
    #[expect(non_snake_case, reason = "Mirage's name of the argument")]
    fn reduction(slf: &Bound<'_, Self>, A: &Bound<'_, STensor>, dim: i64) -> PyOutcome<STensor> {
        TBGraph::add_op(slf, "reduction", &[A], |g, v| g.reduction(v[0], dim))
    }

    /// The largest along ``dim`` so far, and how much it has grown in this iteration.
    #[expect(non_snake_case, reason = "Mirage's name of the argument")]
    fn reduction_max(slf: &Bound<'_, Self>, A: &Bound<'_, STensor>, dim: i64) -> PyOutcome<(STensor, STensor)> {
        let mut grown = None;
        let largest = TBGraph::add_op(slf, "reduction_max", &[A], |g, v| {
            let (largest, difference) = g.reduction_max(v[0], dim)?;
            grown = Some(difference);
            Ok(largest)
        })?;
        let missing = || PyFailure::Ours(Class::Graph, "reduction_max gave one value; please report this".into());
        let value = grown.ok_or_else(missing)?;
        Ok((largest, STensor::shown(&slf.get().0, value)?))
    }

    /// ``A / sqrt(mean(A**2))`` along the last dimension.
    #[expect(non_snake_case, reason = "Mirage's name of the argument")]
    fn rms_norm(slf: &Bound<'_, Self>, A: &Bound<'_, STensor>) -> PyOutcome<STensor> {
        TBGraph::add_op(slf, "rms_norm", &[A], |g, v| g.rms_norm(v[0]))
    }

    /// ``(A - mean) / sqrt(variance + eps)`` along the last dimension.
    #[pyo3(signature = (A, eps = NORM_EPS))]
    #[expect(non_snake_case, reason = "as with the other operations")]
    fn layer_norm(slf: &Bound<'_, Self>, A: &Bound<'_, STensor>, eps: f32) -> PyOutcome<STensor> {
        TBGraph::add_op(slf, "layer_norm", &[A], |g, v| g.layer_norm(v[0], eps))
    }

    /// ``A`` and ``B`` one after the other along ``dim``.
    #[expect(non_snake_case, reason = "Mirage's names of the arguments")]
    fn concat(slf: &Bound<'_, Self>, A: &Bound<'_, STensor>, B: &Bound<'_, STensor>, dim: i64) -> PyOutcome<STensor> {
        TBGraph::add_op(slf, "concat", &[A, B], |g, v| g.concat(v[0], v[1], dim))
    }

    /// ``A`` over all iterations: summed up, or reduced along its last dimension as well by ``acc``: ``'sum'``,
    /// ``'mean'``, ``'rms'`` or ``'sum_todimx'``.
    #[pyo3(signature = (A, acc = None))]
    #[expect(non_snake_case, reason = "Mirage's name of the argument")]
    fn forloop_accum(slf: &Bound<'_, Self>, A: &Bound<'_, STensor>, acc: Option<&str>) -> PyOutcome<STensor> {
        let acc = accum(acc)?;
        TBGraph::add_op(slf, "forloop_accum", &[A], |g, v| g.forloop_accum(v[0], acc))
    }

    /// What there is times ``B`` plus ``A``, in each iteration but the first.
    #[pyo3(signature = (A, B, acc = None))]
    #[expect(non_snake_case, reason = "Mirage's names of the arguments")]
    fn forloop_accum_rescale(
        slf: &Bound<'_, Self>,
        A: &Bound<'_, STensor>,
        B: &Bound<'_, STensor>,
        acc: Option<&str>,
    ) -> PyOutcome<STensor> {
        let acc = accum(acc)?;
        TBGraph::add_op(slf, "forloop_accum_rescale", &[A, B], |g, v| g.forloop_accum_rescale(v[0], v[1], acc))
    }

    /// The largest ``A`` of all iterations.
    #[expect(non_snake_case, reason = "Mirage's name of the argument")]
    fn forloop_accum_max(slf: &Bound<'_, Self>, A: &Bound<'_, STensor>) -> PyOutcome<STensor> {
        TBGraph::add_op(slf, "forloop_accum_max", &[A], |g, v| g.forloop_accum_max(v[0]))
    }
}
