//! A kernel as its Python objects share it: what it is now, and how it is worked on without Python's lock.

use super::buffers::MetaBuffers;
use crate::failure::{Class, PyFailure, PyOutcome};
use crate::lock::lock_detached;
use crate::log::{Level, say};
use crate::process;
use crate::ranks::RankMembership;
use pyo3::prelude::*;
use std::collections::{BTreeSet, HashMap};
use std::path::PathBuf;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use yirage_dlpack::InPlace;
use yirage_hal::Device;
use yirage_persistent::{KernelBuilder, KernelNotice, PersistentKernel, TensorId};

/// What a kernel is now.
pub(super) enum KernelState {
    /// Layers are recorded.
    Building(Box<KernelBuilder>),
    /// It runs.
    Ready(Box<PersistentKernel>),
    /// It was finalized.
    Gone,
}

/// A kernel.
pub(super) struct SharedKernel {
    state: Mutex<KernelState>,
    pub(super) device: Arc<dyn Device>,
    pub(super) buffers: Arc<MetaBuffers>,
    /// Arrays of the program that were attached, which a layer may write in test mode.
    pub(super) attached: Mutex<HashMap<TensorId, Arc<InPlace>>>,
    /// Whether it can be called, for those who do not wait.
    pub(super) compiled: AtomicBool,
    /// Says to a running call that it ends behind its step.
    pub(super) cancelled: AtomicBool,
    pub(super) profiled: Option<Arc<Profiled>>,
    pub(super) test_mode: bool,
    /// Its place among ranks that are processes.
    pub(super) membership: Option<RankMembership>,
    /// What was said of arguments that change nothing.
    notices: Mutex<BTreeSet<&'static str>>,
}

/// Where times go.
pub(super) struct Profiled {
    /// An array, which has four numbers for each task.
    pub(super) tensor: Option<InPlace>,
    /// A file's name before its ending.
    pub(super) trace_name: Option<String>,
}

impl SharedKernel {
    pub(super) fn new(
        builder: KernelBuilder,
        device: Arc<dyn Device>,
        buffers: Arc<MetaBuffers>,
        profiled: Option<Arc<Profiled>>,
        test_mode: bool,
    ) -> SharedKernel {
        SharedKernel {
            state: Mutex::new(KernelState::Building(Box::new(builder))),
            device,
            buffers,
            attached: Mutex::new(HashMap::new()),
            compiled: AtomicBool::new(false),
            cancelled: AtomicBool::new(false),
            profiled,
            test_mode,
            membership: None,
            notices: Mutex::default(),
        }
    }

    /// The same as one rank of those that processes are, where it is one.
    pub(super) fn of_processes(self, membership: Option<RankMembership>) -> SharedKernel {
        SharedKernel { membership, ..self }
    }

    /// Compares it with the kernels of the other ranks, where those are processes.
    pub(super) fn meet(&self, builder: &KernelBuilder) -> PyOutcome<()> {
        self.membership.as_ref().map_or(Ok(()), |membership| membership.meet(builder))
    }

    /// Where it is saved: each rank that is a process has a folder of its own.
    pub(super) fn own_folder(&self, folder: PathBuf) -> PathBuf {
        match &self.membership {
            Some(membership) => folder.join(format!("rank{}", membership.rank())),
            None => folder,
        }
    }

    /// Says something of arguments once, however many layers have them.
    pub(super) fn tell_once(&self, py: Python<'_>, text: &'static str) -> PyResult<()> {
        let is_new = self.notices.lock().unwrap_or_else(PoisonError::into_inner).insert(text);
        if is_new { say(py, Level::Info, text) } else { Ok(()) }
    }

    /// What it is, once nobody else works on it.
    pub(super) fn state(&self, py: Python<'_>) -> MutexGuard<'_, KernelState> {
        lock_detached(py, &self.state)
    }

    /// What it is, for who holds no lock of Python's.
    pub(super) fn alone(&self) -> MutexGuard<'_, KernelState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Works on the layers.
    ///
    /// # Errors
    /// A `KernelError` where they are compiled already.
    pub(super) fn building<R>(
        &self,
        py: Python<'_>,
        what: &str,
        work: impl FnOnce(&mut KernelBuilder) -> PyOutcome<R>,
    ) -> PyOutcome<R> {
        process::check()?;
        let (made, notices) = match &mut *self.state(py) {
            KernelState::Building(builder) => {
                let made = work(builder);
                (made, builder.notices())
            }
            KernelState::Ready(_) => return Err(wrong(format!("{what}: the kernel is compiled; make another one"))),
            KernelState::Gone => return Err(finalized(what)),
        };
        tell(py, notices)?;
        made
    }
}

/// Says what means something else here.
pub(super) fn tell(py: Python<'_>, notices: Vec<KernelNotice>) -> PyResult<()> {
    notices.into_iter().try_for_each(|notice| {
        let level = match notice {
            KernelNotice::NotValidated(_) | KernelNotice::Plan(_) | KernelNotice::Caches => Level::Warning,
            _ => Level::Info,
        };
        say(py, level, &format!("PersistentKernel: {notice}"))
    })
}

pub(super) fn wrong(text: String) -> PyFailure {
    PyFailure::Ours(Class::Kernel, text)
}

pub(super) fn finalized(what: &str) -> PyFailure {
    wrong(format!("{what}: the kernel was finalized; make another one"))
}
