//! A graph on its device: compiled at the first call, and called with arrays of Python.

use crate::failure::{Class, Failure, Outcome};
use pyo3::prelude::*;
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
