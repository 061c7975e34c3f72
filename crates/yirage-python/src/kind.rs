//! What results are in Python: the kind of array that was given.

use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyList, PyType};
use yirage_dlpack::PyTensor;

/// What results become: what the first input is.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum ArrayKind {
    Ours,
    Numpy,
    Torch,
}

impl ArrayKind {
    /// Of an object, without importing anybody's library.
    pub(crate) fn of(object: &Bound<'_, PyAny>) -> PyResult<ArrayKind> {
        static TORCH: PyOnceLock<Py<PyType>> = PyOnceLock::new();
        static NUMPY: PyOnceLock<Py<PyType>> = PyOnceLock::new();
        let py = object.py();
        let is = |known: &PyOnceLock<Py<PyType>>, module: &str, class: &str| -> PyResult<bool> {
            if known.get(py).is_none() {
                let modules = py.import("sys")?.getattr("modules")?;
                let module = modules.call_method1("get", (module,))?;
                // A library that is being imported may not have its class yet.
                let Ok(class) = module.getattr(class) else { return Ok(false) };
                let _ = known.set(py, class.cast_into::<PyType>()?.unbind());
            }
            known.get(py).map_or(Ok(false), |class| object.is_instance(class.bind(py)))
        };
        if is(&TORCH, "torch", "Tensor")? {
            return Ok(ArrayKind::Torch);
        }
        Ok(if is(&NUMPY, "numpy", "ndarray")? { ArrayKind::Numpy } else { ArrayKind::Ours })
    }

    /// A result as this, where it lies.
    pub(crate) fn convert_tensor<'py>(self, py: Python<'py>, tensor: PyTensor) -> PyResult<Bound<'py, PyAny>> {
        static FROM_DLPACK: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
        static AS_ARRAY: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
        let import = |module, name| Ok::<_, PyErr>(py.import(module)?.getattr(name)?.unbind());
        match self {
            ArrayKind::Ours => Ok(Bound::new(py, tensor)?.into_any()),
            ArrayKind::Torch => {
                let from = FROM_DLPACK.get_or_try_init(py, || import("torch.utils.dlpack", "from_dlpack"))?;
                // Of the tensor itself it would ask twice, which takes longer than a small graph.
                from.bind(py).call1((tensor.capsule(py)?,))
            }
            ArrayKind::Numpy => {
                let array = AS_ARRAY.get_or_try_init(py, || import("numpy", "asarray"))?;
                array.bind(py).call1((Bound::new(py, tensor)?,))
            }
        }
    }

    /// Results as a list of this.
    pub(crate) fn list<'py>(self, py: Python<'py>, tensors: Vec<PyTensor>) -> PyResult<Bound<'py, PyList>> {
        let made = tensors.into_iter().map(|tensor| self.convert_tensor(py, tensor)).collect::<PyResult<Vec<_>>>()?;
        PyList::new(py, made)
    }
}
