//! A graph on its device: compiled at the first call, and called with arrays of Python.

use crate::failure::{Class, PyFailure, PyOutcome};
use pyo3::prelude::*;
use std::sync::{Arc, Mutex, PoisonError};
use yirage_dlpack::PyTensor;
use yirage_hal::{Device, Profiler};
use yirage_ir::Graph;
use yirage_plancache::{CallOptions, Callable, HostArray};

/// Tasks whose times are kept, of all workers together.
const SPANS: usize = 1 << 18;

/// A graph that can be called.
pub(super) struct CallableKernelGraph {
    pub(super) version: u64,
    callable: Mutex<Callable>,
    pub(super) profiler: Option<Arc<Profiler>>,
}

impl CallableKernelGraph {
    pub(super) fn new(
        device: &dyn Device,
        graph: &Graph,
        version: u64,
        profiled: bool,
    ) -> PyOutcome<CallableKernelGraph> {
        let room = SPANS / device.target().queues().max(1) as usize;
        let profiler = profiled.then(|| device.profile(room)).transpose()?;
        let callable = Callable::new(device, graph, &[], &CallOptions::default())?;
        Ok(CallableKernelGraph { version, callable: Mutex::new(callable), profiler })
    }

    /// Runs the graph without Python's lock: calls of other threads wait here.
    pub(super) fn call(&self, py: Python<'_>, inputs: &[HostArray]) -> PyOutcome<Vec<PyTensor>> {
        py.detach(|| {
            let mut callable = self.callable.lock().unwrap_or_else(PoisonError::into_inner);
            let mut made = Vec::with_capacity(callable.outputs().len());
            callable.call_with(inputs, &mut |ty, bytes| made.push(PyTensor::of(ty, bytes)))?;
            made.into_iter().map(|tensor| Ok(tensor?)).collect()
        })
    }
}

/// What ``compile(async_=True)`` gives.
#[pyclass(name = "Handle", frozen, module = "yirage")]
pub(crate) struct CompileHandle(Mutex<Option<std::thread::JoinHandle<PyOutcome<()>>>>);

impl CompileHandle {
    pub(super) fn of(thread: std::thread::JoinHandle<PyOutcome<()>>) -> CompileHandle {
        CompileHandle(Mutex::new(Some(thread)))
    }
}

#[pymethods]
impl CompileHandle {
    /// Returns when the graph is compiled, and raises what kept it from that.
    fn wait(&self, py: Python<'_>) -> PyOutcome<()> {
        let Some(thread) = self.0.lock().unwrap_or_else(PoisonError::into_inner).take() else { return Ok(()) };
        py.detach(|| thread.join()).unwrap_or_else(|_| {
            Err(PyFailure::Ours(
                Class::Device,
                "the thread that compiled the graph ended by a panic; please report this".into(),
            ))
        })
    }
}
