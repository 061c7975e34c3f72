//! Which backend is meant: what was set, else what the environment says, else the first of the registry that has a device.
//!
//! Backends written in Python stand beside those of the registry. They serve discovery and may become the default; graphs
//! and models do not run on them.

use crate::failure::{Class, PyFailure, PyOutcome};
use crate::log::{Level, all, say};
use crate::process;
use pyo3::prelude::*;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use yirage_hal::{Backend, Device, OpenOptions};
use yirage_registry::{AUTO, ProbeEnvironment, Registry};
use yirage_sim::{Settings, Sim};

/// The variable that names a backend where the program sets none.
const VARIABLE: &str = "YIRAGE_BACKEND";

/// A backend that may run here.
#[derive(Clone)]
pub(crate) enum Chosen {
    /// Of the registry.
    Native(&'static str),
    /// A class of Python that was registered, and its instance.
    Python(String, Arc<Py<PyAny>>),
}

struct BackendTable {
    registry: Registry,
    python: Vec<(String, Arc<Py<PyAny>>)>,
    /// What the program set.
    set: Option<Chosen>,
    /// The value of the variable that was complained about.
    complained: Option<String>,
    options: OpenOptions,
    open: Vec<(&'static str, u32, OpenOptions, Arc<dyn Device>)>,
    /// Simulated accelerators with faults, in the place of the registry's.
    faulty: Option<Arc<Sim>>,
}

static TABLE: Mutex<Option<BackendTable>> = Mutex::new(None);

fn table() -> MutexGuard<'static, Option<BackendTable>> {
    TABLE.lock().unwrap_or_else(PoisonError::into_inner)
}

fn with<R>(f: impl FnOnce(&mut BackendTable) -> R) -> R {
    let mut table = table();
    f(table.get_or_insert_with(|| BackendTable {
        registry: Registry::new(ProbeEnvironment::of_this_process()),
        python: Vec::new(),
        set: None,
        complained: None,
        options: OpenOptions::default(),
        open: Vec::new(),
        faulty: None,
    }))
}

/// The registry as it is: a copy, so that what it asks of drivers holds nobody up.
pub(crate) fn registry() -> Registry {
    with(|table| table.registry.clone())
}

/// The names of the registry, and of the Python classes that have another.
pub(crate) fn names() -> Vec<String> {
    let python: Vec<String> = with(|table| table.python.iter().map(|(name, _)| name.clone()).collect());
    let own = registry().names();
    let further = python.into_iter().filter(|name| own.iter().all(|(known, _)| known != name));
    further.chain(own.iter().map(|(name, _)| (*name).to_owned())).collect()
}

/// The name that a name or alias stands for, `auto` among them; none for what nobody knows.
pub(crate) fn canonical(name: &str) -> Option<String> {
    if name.eq_ignore_ascii_case(AUTO) {
        return Some(AUTO.to_owned());
    }
    let names = registry().names();
    let is = |own: &&str| own.eq_ignore_ascii_case(name);
    let found = names.iter().find(|(own, aliases)| is(own) || aliases.iter().any(&is));
    let python = || with(|table| table.python.iter().find(|(own, _)| is(&own.as_str())).map(|(own, _)| own.clone()));
    found.map(|(own, _)| (*own).to_owned()).or_else(python)
}

/// The instance of the class that was registered under a canonical name.
pub(crate) fn python(name: &str) -> Option<Arc<Py<PyAny>>> {
    with(|table| table.python.iter().find(|(own, _)| own == name).map(|(_, instance)| instance.clone()))
}

/// Registers a class of Python; one of a name that was registered before takes its place.
pub(crate) fn register(py: Python<'_>, name: &str, class: &Bound<'_, PyAny>) -> PyResult<()> {
    let instance = Arc::new(class.call0()?.unbind());
    let name = canonical(name).unwrap_or_else(|| name.to_owned());
    let replaced = with(|table| {
        let replaced = table.python.iter().position(|(own, _)| *own == name).map(|at| table.python.remove(at));
        table.python.push((name, instance));
        replaced
    });
    py.detach(|| drop(replaced));
    Ok(())
}

/// Forgets what was set and registered. Devices stay open: graphs have them.
pub(crate) fn reset(all: bool) {
    let python = with(|table| {
        table.set = None;
        table.options = OpenOptions::default();
        if all { std::mem::take(&mut table.python) } else { Vec::new() }
    });
    drop(python);
}

/// Whether an instance says that it is here. What its code raises is told, and counts as no.
fn says_available(py: Python<'_>, name: &str, instance: &Py<PyAny>) -> PyResult<bool> {
    match instance.bind(py).call_method0("is_available").and_then(|there| there.extract::<bool>()) {
        Ok(there) => Ok(there),
        Err(error) => {
            say(py, Level::Warning, &format!("the backend {name} counts as absent: is_available raised {error}"))?;
            Ok(false)
        }
    }
}

/// The backend of this name, which is `auto` or canonical or an alias.
///
/// # Errors
/// An `UnknownBackendError`, a `BackendUnavailableError` with the reason and what there is.
pub(crate) fn select(py: Python<'_>, name: &str) -> PyOutcome<Chosen> {
    let name = canonical(name).unwrap_or_else(|| name.to_owned());
    if name == AUTO {
        return default(py);
    }
    if let Some(instance) = python(&name) {
        if says_available(py, &name, &instance)? {
            return Ok(Chosen::Python(name, instance));
        }
        let there = available(py)?.join(", ");
        let text = format!(
            "the backend {name} is not available: is_available of the class registered for it says so; install what it \
             needs or choose another; available here: {there}"
        );
        return Err(PyFailure::Ours(Class::BackendUnavailable, text));
    }
    let registry = registry();
    let backend = py.detach(|| registry.select(&name))?;
    Ok(Chosen::Native(backend.name()))
}

/// The names of the backends that have a device here, in the order of choice.
pub(crate) fn available(py: Python<'_>) -> PyOutcome<Vec<String>> {
    let registry = registry();
    let native = py.detach(|| registry.list_available());
    let mut there = Vec::new();
    for name in names() {
        let here = match python(&name) {
            Some(instance) => says_available(py, &name, &instance)?,
            None => native.contains(&name.as_str()),
        };
        if here {
            there.push(name);
        }
    }
    Ok(there)
}

/// The best that is here.
fn default(py: Python<'_>) -> PyOutcome<Chosen> {
    let order = names();
    let registry = registry();
    let mut best = None;
    for (rank, name) in order.iter().enumerate() {
        if let Some(instance) = python(name)
            && says_available(py, name, &instance)?
        {
            best = Some((rank, name.clone(), instance));
            break;
        }
    }
    let native = py.detach(|| registry.get_default());
    match (best, native) {
        (Some((rank, name, instance)), native) => {
            let before = native.as_ref().ok().and_then(|b| order.iter().position(|own| own == b.name()));
            match (before, native) {
                (Some(before), Ok(backend)) if before < rank => Ok(Chosen::Native(backend.name())),
                _ => Ok(Chosen::Python(name, instance)),
            }
        }
        (None, native) => Ok(Chosen::Native(native?.name())),
    }
}

/// Makes a backend that of the program. Nothing changes where that fails.
///
/// # Errors
/// As [`select`].
pub(crate) fn set(py: Python<'_>, name: &str, options: OpenOptions) -> PyOutcome<()> {
    // `auto` is decided now, and not by the variable any more.
    let chosen = select(py, name)?;
    let before = with(|table| {
        table.options = options;
        table.set.replace(chosen)
    });
    drop(before);
    Ok(())
}

/// What was set, else what the variable names, else the best.
///
/// # Errors
/// A variable that names what is known and absent; no backend at all.
pub(crate) fn current(py: Python<'_>) -> PyOutcome<Chosen> {
    if let Some(set) = with(|table| table.set.clone()) {
        return Ok(set);
    }
    let Ok(value) = std::env::var(VARIABLE) else { return default(py) };
    if value.is_empty() {
        return default(py);
    }
    match canonical(&value) {
        Some(name) => select(py, &name).map_err(|failure| match failure {
            PyFailure::Ours(class, text) => PyFailure::Ours(class, format!("{VARIABLE}={value}: {text}")),
            raised => raised,
        }),
        None => {
            let new = with(|table| table.complained.replace(value.clone()).as_ref() != Some(&value));
            if new {
                let text = format!(
                    "{VARIABLE}={value:?} is no backend, and auto is taken: use one of {AUTO}, {}",
                    names().join(", ")
                );
                say(py, Level::Warning, &text)?;
            }
            default(py)
        }
    }
}

impl Chosen {
    /// Its name.
    pub(crate) fn name(&self) -> &str {
        match self {
            Chosen::Native(name) => name,
            Chosen::Python(name, _) => name,
        }
    }
}

/// What opens the devices of a backend, which is one of ours.
///
/// # Errors
/// A backend that is written in Python, as `Unsupported`.
pub(crate) fn backend(py: Python<'_>, chosen: &Chosen) -> PyOutcome<Arc<dyn Backend>> {
    match chosen {
        Chosen::Native(name) => {
            let (registry, faulty) = (registry(), with(|table| table.faulty.clone()));
            let native = py.detach(|| registry.select(name))?;
            match faulty {
                Some(faulty) if faulty.name() == native.name() => Ok(faulty),
                _ => Ok(native),
            }
        }
        Chosen::Python(name, _) => Err(PyFailure::unsupported(
            format!("running on the backend {name}"),
            "it is a class of Python, which has no kernels: it serves discovery, and set_backend('cpu') runs graphs",
        )),
    }
}

/// Puts simulated accelerators that are like this in the place of the registry's. Devices that are open belong to whoever has
/// them; the next call opens others.
///
/// # Errors
/// An `OptionError` where others are there already.
pub(crate) fn put_faulty(py: Python<'_>, settings: Settings) -> PyOutcome<()> {
    let sim = Arc::new(Sim::with(settings));
    let dropped = with(|table| {
        if table.faulty.is_some() {
            return None;
        }
        let dropped = table.forget(sim.name());
        table.faulty = Some(sim);
        Some(dropped)
    });
    let there = || PyFailure::option("inject_faults: faults are injected already; leave that block first");
    let dropped = dropped.ok_or_else(there)?;
    py.detach(|| drop(dropped));
    Ok(())
}

/// The registry's simulated accelerators again.
pub(crate) fn take_faulty(py: Python<'_>) {
    let dropped = with(|table| table.faulty.take().map(|sim| (table.forget(sim.name()), sim)));
    py.detach(|| drop(dropped));
}

impl BackendTable {
    /// The devices of a backend, which are not found open any more.
    fn forget(&mut self, backend: &str) -> Vec<Arc<dyn Device>> {
        let open = std::mem::take(&mut self.open);
        let (gone, kept): (Vec<_>, Vec<_>) = open.into_iter().partition(|(name, ..)| *name == backend);
        self.open = kept;
        gone.into_iter().map(|(.., device)| device).collect()
    }
}

/// The first device of a backend, or the one of number `ordinal`: opened once, by the options of `set_backend`.
///
/// # Errors
/// As [`backend`]; what opening it met.
pub(crate) fn device(py: Python<'_>, chosen: &Chosen, ordinal: u32) -> PyOutcome<Arc<dyn Device>> {
    let options = with(|table| table.options.clone());
    device_with(py, chosen, ordinal, options)
}

/// [`device`] by other options.
///
/// # Errors
/// As [`device`].
pub(crate) fn device_with(
    py: Python<'_>,
    chosen: &Chosen,
    ordinal: u32,
    options: OpenOptions,
) -> PyOutcome<Arc<dyn Device>> {
    process::check()?;
    let backend = backend(py, chosen)?;
    let name = backend.name();
    let known = with(|table| {
        let is = |(n, o, how, _): &&(&str, u32, OpenOptions, _)| *n == name && *o == ordinal && *how == options;
        table.open.iter().find(is).map(|(.., device)| device.clone())
    });
    if let Some(device) = known {
        return Ok(device);
    }
    let (device, notes) = py.detach(|| backend.open(ordinal, &options))?;
    process::own();
    with(|table| table.open.push((name, ordinal, options, device.clone())));
    all(py, Level::Info, &notes)?;
    let info = device.info();
    say(py, Level::Debug, &format!("opened {} {}: {} ({})", info.backend, info.ordinal, info.name, info.arch))?;
    Ok(device)
}

/// A device that nobody else has.
///
/// # Errors
/// As [`device`].
pub(crate) fn own_device(
    py: Python<'_>,
    chosen: &Chosen,
    ordinal: u32,
    options: &OpenOptions,
) -> PyOutcome<Arc<dyn Device>> {
    process::check()?;
    let backend = backend(py, chosen)?;
    let (device, notes) = py.detach(|| backend.open(ordinal, options))?;
    process::own();
    all(py, Level::Info, &notes)?;
    Ok(device)
}
