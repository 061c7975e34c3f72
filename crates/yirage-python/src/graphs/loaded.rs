//! A graph on its device: compiled at the first call, and called with arrays of Python.

use crate::failure::{Class, Failure, Outcome};
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyList, PyType};
use std::sync::{Arc, Mutex, PoisonError};
use yirage_call::{Array, CallOptions, Callable};
use yirage_dlpack::Tensor;
use yirage_hal::{Device, Profiler};
use yirage_ir::Graph;

/// Tasks whose times are kept, of all workers together.
const SPANS: usize = 1 << 18;

/// A graph that can be called.
pub(super) struct Loaded {
    pub(super) version: u64,
    callable: Mutex<Callable>,
    pub(super) profiler: Option<Arc<Profiler>>,
}

impl Loaded {
    pub(super) fn new(device: &dyn Device, graph: &Graph, version: u64, profiled: bool) -> Outcome<Loaded> {
        let room = SPANS / device.target().queues().max(1) as usize;
        let profiler = profiled.then(|| device.profile(room)).transpose()?;
        let callable = Callable::new(device, graph, &[], &CallOptions::default())?;
        Ok(Loaded { version, callable: Mutex::new(callable), profiler })
    }

    /// Runs the graph without Python's lock: calls of other threads wait here.
    pub(super) fn call(&self, py: Python<'_>, inputs: &[Array]) -> Outcome<Vec<Tensor>> {
        py.detach(|| {
            let mut callable = self.callable.lock().unwrap_or_else(PoisonError::into_inner);
            let mut made = Vec::with_capacity(callable.outputs().len());
            callable.call_with(inputs, &mut |ty, bytes| made.push(Tensor::of(ty, bytes)))?;
            made.into_iter().map(|tensor| Ok(tensor?)).collect()
        })
    }
}

/// What results become: what the first input is.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Ours,
    Numpy,
    Torch,
}

impl Kind {
    /// Of an object, without importing anybody's library.
    pub(super) fn of(object: &Bound<'_, PyAny>) -> PyResult<Kind> {
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
            return Ok(Kind::Torch);
        }
        Ok(if is(&NUMPY, "numpy", "ndarray")? { Kind::Numpy } else { Kind::Ours })
    }

    /// A result as this, where it lies.
    fn made<'py>(self, py: Python<'py>, tensor: Tensor) -> PyResult<Bound<'py, PyAny>> {
        static FROM_DLPACK: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
        static AS_ARRAY: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
        let tensor = Bound::new(py, tensor)?.into_any();
        let import = |module, name| Ok::<_, PyErr>(py.import(module)?.getattr(name)?.unbind());
        match self {
            Kind::Ours => Ok(tensor),
            Kind::Torch => {
                let from = FROM_DLPACK.get_or_try_init(py, || import("torch.utils.dlpack", "from_dlpack"))?;
                from.bind(py).call1((tensor,))
            }
            Kind::Numpy => {
                let array = AS_ARRAY.get_or_try_init(py, || import("numpy", "asarray"))?;
                array.bind(py).call1((tensor,))
            }
        }
    }

    /// Results as a list of this.
    pub(super) fn list<'py>(self, py: Python<'py>, tensors: Vec<Tensor>) -> PyResult<Bound<'py, PyList>> {
        let made = tensors.into_iter().map(|tensor| self.made(py, tensor)).collect::<PyResult<Vec<_>>>()?;
        PyList::new(py, made)
    }
}

/// What ``compile(async_=True)`` gives.
#[pyclass(frozen, module = "yirage")]
pub(crate) struct Handle(Mutex<Option<std::thread::JoinHandle<Outcome<()>>>>);

impl Handle {
    pub(super) fn of(thread: std::thread::JoinHandle<Outcome<()>>) -> Handle {
        Handle(Mutex::new(Some(thread)))
    }
}

#[pymethods]
impl Handle {
    /// Returns when the graph is compiled, and raises what kept it from that.
    fn wait(&self, py: Python<'_>) -> Outcome<()> {
        let Some(thread) = self.0.lock().unwrap_or_else(PoisonError::into_inner).take() else { return Ok(()) };
        py.detach(|| thread.join()).unwrap_or_else(|_| {
            Err(Failure::Ours(
                Class::Device,
                "the thread that compiled the graph ended by a panic; please report this".into(),
            ))
        })
    }
}
