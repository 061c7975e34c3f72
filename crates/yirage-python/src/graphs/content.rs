//! What a graph of Python holds: one that is built, or one that came from a file or a search and is finished.

use crate::failure::{PyFailure, PyOutcome};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use yirage_graph::{BlockGraph, KernelGraph};
use yirage_ir::{Graph, ValueId, ValueSource};
use yirage_plancache::HostArray;

/// The graph itself.
pub(super) enum PyGraphBody {
    Building(Box<KernelGraph>),
    Finished(Graph),
}

/// A graph with what belongs to it.
pub(super) struct PyGraphContent {
    pub(super) form: PyGraphBody,
    /// Arrays that inputs have for all calls.
    pub(super) attached: Vec<(ValueId, HostArray)>,
    /// Counts changes: what was compiled of an earlier one is of no use.
    pub(super) version: u64,
    /// What was said of the way here.
    pub(super) notes: Vec<String>,
    /// The graphs of thread blocks in it, in order.
    pub(super) customized: Vec<Customized>,
    /// Arguments without a meaning here that were reported.
    pub(super) reported: Vec<String>,
    /// Why it cannot be called, once that is known.
    pub(super) problem: Option<String>,
}

impl PyGraphContent {
    pub(super) fn new(form: PyGraphBody, notes: Vec<String>) -> PyGraphContent {
        let (attached, customized, reported) = (Vec::new(), Vec::new(), Vec::new());
        PyGraphContent { form, attached, version: 0, notes, customized, reported, problem: None }
    }

    /// The builder.
    ///
    /// # Errors
    /// `Unsupported` for a finished graph.
    pub(super) fn builder(&mut self, what: &str) -> PyOutcome<&mut KernelGraph> {
        self.version += 1;
        match &mut self.form {
            PyGraphBody::Building(builder) => Ok(builder),
            PyGraphBody::Finished(graph) => Err(PyFailure::unsupported(
                format!("{what} on the graph `{}`", graph.name),
                "it came from a file or a search and is finished; build a new one",
            )),
        }
    }

    /// The graph so far.
    ///
    /// # Errors
    /// A graph without outputs.
    pub(super) fn graph(&self) -> PyOutcome<Graph> {
        match &self.form {
            PyGraphBody::Building(builder) => Ok(builder.as_ref().clone().finish()?),
            PyGraphBody::Finished(graph) => Ok(graph.clone()),
        }
    }

    /// Which inputs a call gives: those that nothing is attached to.
    pub(super) fn open(&self, graph: &Graph) -> Vec<ValueId> {
        let attached = |id: &ValueId| self.attached.iter().any(|(own, _)| own == id);
        graph.inputs_of(ValueSource::StepInput).filter(|id| !attached(id)).collect()
    }
}

/// A graph of a thread block that is part of a kernel graph.
#[derive(Clone)]
pub(super) struct Customized {
    pub(super) block: SharedGraph<PyBlockGraph>,
    /// Its results.
    pub(super) values: Vec<ValueId>,
    /// What was registered for it.
    pub(super) task: Option<TaskAnnotation>,
}

/// What a task is called, and numbers for a generator of code.
#[derive(Clone)]
pub(super) struct TaskAnnotation {
    pub(super) name: String,
    pub(super) params: Vec<i64>,
}

/// The graph of a thread block, and the names of its operations.
pub(super) struct PyBlockGraph {
    pub(super) graph: BlockGraph,
    pub(super) operators: Vec<String>,
}

/// What a graph of Python and its values have together: by it a value knows its graph.
pub(super) struct SharedGraph<T>(Arc<Mutex<T>>);

impl<T> SharedGraph<T> {
    pub(super) fn new(of: T) -> SharedGraph<T> {
        SharedGraph(Arc::new(Mutex::new(of)))
    }

    pub(super) fn lock(&self) -> MutexGuard<'_, T> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn is(&self, other: &SharedGraph<T>) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

impl<T> Clone for SharedGraph<T> {
    fn clone(&self) -> SharedGraph<T> {
        SharedGraph(self.0.clone())
    }
}
