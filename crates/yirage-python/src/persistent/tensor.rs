//! Tensors of kernels, which Python holds.

use super::shared::SharedKernel;
use crate::failure::{Class, PyFailure, PyOutcome};
use crate::numbers::size_along;
use pyo3::prelude::*;
use pyo3::types::PyTuple;
use std::sync::Arc;
use yirage_persistent::{KernelBuilder, TensorId};

/// A tensor of a persistent kernel: one that was attached, or one that a layer writes.
#[pyclass(name = "KernelTensor", frozen, module = "yirage")]
pub(crate) struct PyKernelTensor {
    pub(super) kernel: Arc<SharedKernel>,
    pub(super) id: TensorId,
    pub(super) name: String,
    pub(super) dims: Vec<u32>,
    pub(super) dtype: String,
}

#[pymethods]
impl PyKernelTensor {
    /// Its name in the kernel.
    #[getter]
    fn name(&self) -> &str {
        &self.name
    }

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

    /// The type of its elements, such as ``'bfloat16'``.
    #[getter]
    fn dtype(&self) -> &str {
        &self.dtype
    }

    /// How many dimensions it has.
    #[getter]
    fn num_dims(&self) -> usize {
        self.dims.len()
    }

    /// The size along a dimension; below 0 they are counted from the last one.
    fn dim(&self, dim: i64) -> PyOutcome<u32> {
        size_along(&self.dims, dim, Class::Kernel)
    }

    fn __repr__(&self) -> String {
        format!("yirage.KernelTensor(name={:?}, dims={:?}, dtype={})", self.name, self.dims, self.dtype)
    }
}

impl PyKernelTensor {
    /// A tensor of a kernel, for Python.
    pub(super) fn shown(
        kernel: &Arc<SharedKernel>,
        builder: &KernelBuilder,
        id: TensorId,
        name: &str,
    ) -> PyOutcome<PyKernelTensor> {
        let of = builder.tensor(id)?;
        let (dims, dtype) = (of.dims.clone(), of.elements.to_string());
        Ok(PyKernelTensor { kernel: kernel.clone(), id, name: name.to_owned(), dims, dtype })
    }

    /// Its number, if it is a tensor of this kernel.
    pub(super) fn of(&self, kernel: &Arc<SharedKernel>, what: &str) -> PyOutcome<TensorId> {
        if Arc::ptr_eq(&self.kernel, kernel) {
            return Ok(self.id);
        }
        let text = format!("{what}: {} is a tensor of another kernel; kernels share no tensors", self.__repr__());
        Err(PyFailure::Ours(Class::Kernel, text))
    }
}
