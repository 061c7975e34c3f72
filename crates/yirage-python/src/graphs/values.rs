//! Values of graphs, which Python holds.

use super::content::{PyBlockGraph, PyGraphContent, SharedGraph};
use crate::dtype;
use crate::failure::{Class, PyFailure, PyOutcome};
use crate::numbers::size_along;
use pyo3::prelude::*;
use pyo3::types::PyTuple;
use yirage_graph::BlockValue;
use yirage_ir::{DType, ValueId};

/// A value of a kernel graph.
#[pyclass(frozen, module = "yirage")]
pub(crate) struct DTensor {
    pub(super) graph: SharedGraph<PyGraphContent>,
    pub(super) id: ValueId,
    pub(super) dims: Vec<u32>,
    pub(super) strides: Vec<u32>,
    pub(super) dtype: DType,
}

#[pymethods]
impl DTensor {
    /// Sizes, outermost first.
    #[getter]
    fn dims<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        PyTuple::new(py, &self.dims)
    }

    /// Sizes, outermost first.
    #[getter]
    fn shape<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        PyTuple::new(py, &self.dims)
    }

    /// Elements between neighbours along each dimension.
    #[getter]
    fn strides<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        PyTuple::new(py, &self.strides)
    }

    /// The type of its elements, such as ``'float16'``.
    #[getter]
    fn dtype(&self) -> String {
        dtype::name(self.dtype)
    }

    /// How many dimensions it has.
    #[getter]
    fn num_dims(&self) -> usize {
        self.dims.len()
    }

    /// The size along a dimension; below 0 they are counted from the last one.
    fn dim(&self, dim: i64) -> PyOutcome<u32> {
        size_along(&self.dims, dim, Class::Graph)
    }

    fn __repr__(&self) -> String {
        format!("yirage.DTensor(dims={:?}, dtype={})", self.dims, self.dtype())
    }
}

impl DTensor {
    /// Its number, if it is a value of this graph.
    pub(super) fn of(&self, graph: &SharedGraph<PyGraphContent>, what: &str) -> PyOutcome<ValueId> {
        if self.graph.is(graph) {
            return Ok(self.id);
        }
        let text = format!("{what}: {} is a value of another graph; graphs share no values", self.__repr__());
        Err(PyFailure::Ours(Class::Graph, text))
    }
}

/// A tile of a thread block's graph.
#[pyclass(frozen, module = "yirage")]
pub(crate) struct STensor {
    pub(super) graph: SharedGraph<PyBlockGraph>,
    pub(super) value: BlockValue,
    dims: Vec<u32>,
    strides: Vec<u32>,
    dtype: DType,
}

#[pymethods]
impl STensor {
    /// Sizes of a block's tile, outermost first.
    #[getter]
    fn dims<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        PyTuple::new(py, &self.dims)
    }

    /// Sizes of a block's tile, outermost first.
    #[getter]
    fn shape<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        PyTuple::new(py, &self.dims)
    }

    /// Elements between neighbours along each dimension of the tile.
    #[getter]
    fn strides<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        PyTuple::new(py, &self.strides)
    }

    /// The type of its elements, such as ``'float16'``.
    #[getter]
    fn dtype(&self) -> String {
        dtype::name(self.dtype)
    }

    /// How many dimensions it has.
    #[getter]
    fn num_dims(&self) -> usize {
        self.dims.len()
    }

    /// The size along a dimension; below 0 they are counted from the last one.
    fn dim(&self, dim: i64) -> PyOutcome<u32> {
        size_along(&self.dims, dim, Class::Graph)
    }

    fn __repr__(&self) -> String {
        format!("yirage.STensor(dims={:?}, dtype={})", self.dims, self.dtype())
    }
}

impl STensor {
    /// A value of a graph, for Python.
    pub(super) fn shown(graph: &SharedGraph<PyBlockGraph>, value: BlockValue) -> PyOutcome<STensor> {
        let (dims, strides, dtype) = {
            let block = graph.lock();
            (block.graph.dims(value)?, block.graph.strides(value)?, block.graph.dtype(value)?)
        };
        Ok(STensor { graph: graph.clone(), value, dims, strides, dtype })
    }
}

impl STensor {
    /// The value, if it is one of this graph.
    pub(super) fn of(&self, graph: &SharedGraph<PyBlockGraph>, what: &str) -> PyOutcome<BlockValue> {
        if self.graph.is(graph) {
            return Ok(self.value);
        }
        let text = format!("{what}: {} is a tile of another graph; graphs share no values", self.__repr__());
        Err(PyFailure::Ours(Class::Graph, text))
    }
}
