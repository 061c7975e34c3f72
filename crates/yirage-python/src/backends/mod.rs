//! Backends as Python sees them: which is meant, what is known of it, and what is advised for it.

mod advice;
mod facts;
mod faults;
mod native;
mod table;
mod templates;

pub(crate) use facts::wanted;
pub(crate) use native::NativeBackend;
pub(crate) use table::{Chosen, current, device, device_with, own_device, select};

use crate::failure::{PyFailure, PyOutcome};
use facts::{member, name_in};
use pyo3::prelude::*;
use std::sync::Arc;
use yirage_hal::{Device, OpenOptions};

/// Adds the functions of backends to the module.
pub(crate) fn add(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<NativeBackend>()?;
    module.add_function(wrap_pyfunction!(backend_names, module)?)?;
    module.add_function(wrap_pyfunction!(templates::list_templates, module)?)?;
    module.add_function(wrap_pyfunction!(templates::get_template, module)?)?;
    module.add_function(wrap_pyfunction!(templates::recommended_template, module)?)?;
    module.add_function(wrap_pyfunction!(faults::put_faults, module)?)?;
    module.add_function(wrap_pyfunction!(faults::take_faults, module)?)?;
    module.add_function(wrap_pyfunction!(canonical_backend, module)?)?;
    module.add_function(wrap_pyfunction!(set_backend, module)?)?;
    module.add_function(wrap_pyfunction!(get_backend, module)?)?;
    module.add_function(wrap_pyfunction!(find_backend, module)?)?;
    module.add_function(wrap_pyfunction!(get_default_backend, module)?)?;
    module.add_function(wrap_pyfunction!(reset_backend, module)?)?;
    module.add_function(wrap_pyfunction!(register_backend, module)?)?;
    module.add_function(wrap_pyfunction!(forget_backends, module)?)?;
    module.add_function(wrap_pyfunction!(get_available_backends, module)?)?;
    module.add_function(wrap_pyfunction!(list_available_backends, module)?)?;
    module.add_function(wrap_pyfunction!(discover_devices, module)?)?;
    module.add_function(wrap_pyfunction!(is_backend_available, module)?)?;
    module.add_function(wrap_pyfunction!(advice::get_backend_info, module)?)?;
    module.add_function(wrap_pyfunction!(advice::get_memory_info, module)?)?;
    module.add_function(wrap_pyfunction!(advice::auto_configure_backend, module)?)?;
    module.add_function(wrap_pyfunction!(advice::get_configurations_from_gpu, module)?)?;
    module.add_function(wrap_pyfunction!(advice::get_configurations_from_cpu, module)?)?;
    module.add_function(wrap_pyfunction!(advice::benchmark_backends, module)?)?;
    module.add_function(wrap_pyfunction!(advice::save_config, module)?)?;
    module.add_function(wrap_pyfunction!(advice::load_config, module)?)
}

/// The names of all backends that yirage knows of, in the order of choice.
#[pyfunction]
fn backend_names() -> Vec<String> {
    table::names()
}

/// The name that a name or an alias stands for, or ``None``.
#[pyfunction]
fn canonical_backend(name: &str) -> Option<String> {
    table::canonical(name)
}

/// Makes a backend that of the program: ``'cpu'``, ``'cuda'``, ``'mps'``, another name of ``BackendType`` or an alias
/// of one, or ``'auto'`` for the best that is here. ``threads`` says how many threads a CPU device has.
///
/// Raises:
///     UnknownBackendError: there is no such name. It is a ``ValueError``.
///     BackendUnavailableError: it cannot be used here; the message says why, what to do, and what there is.
///
/// Nothing changes where it raises.
#[pyfunction]
#[pyo3(signature = (backend, *, threads = None))]
fn set_backend(py: Python<'_>, backend: &Bound<'_, PyAny>, threads: Option<usize>) -> PyOutcome<()> {
    if threads == Some(0) {
        return Err(PyFailure::option("threads=0: one or more"));
    }
    table::set(py, &wanted(backend)?, OpenOptions { threads, ..OpenOptions::default() })
}

/// The device that an argument means.
pub(crate) fn device_argument(py: Python<'_>, given: Option<&Bound<'_, PyAny>>) -> PyOutcome<Arc<dyn Device>> {
    let (chosen, number) = device_choice(py, given)?;
    device(py, &chosen, number)
}

/// The backend that an argument means, and the number of its device: a backend, a text such as `cuda:1`, or an object with `type`
/// and `index`.
pub(crate) fn device_choice(py: Python<'_>, given: Option<&Bound<'_, PyAny>>) -> PyOutcome<(Chosen, u32)> {
    let Some(given) = given.filter(|given| !given.is_none()) else {
        return Ok((current(py)?, 0));
    };
    let (name, number) = match given.getattr("type").and_then(|kind| kind.extract::<String>()) {
        Ok(kind) => (kind, given.getattr("index")?.extract::<Option<u32>>()?),
        Err(_) => match wanted(given)?.split_once(':') {
            None => (wanted(given)?, None),
            Some((name, number)) => {
                let wrong =
                    |e| PyFailure::option(format!("device={name}:{number}: the number of a device is wanted: {e}"));
                (name.to_owned(), Some(number.parse().map_err(wrong)?))
            }
        },
    };
    Ok((select(py, &name)?, number.unwrap_or(0)))
}

/// A backend as Python has it.
fn shown<'py>(py: Python<'py>, chosen: &Chosen) -> PyResult<Bound<'py, PyAny>> {
    match chosen {
        Chosen::Native(name) => Ok(Bound::new(py, NativeBackend::new(name))?.into_any()),
        Chosen::Python(_, instance) => Ok(instance.bind(py).clone()),
    }
}

/// The current backend, or the one that is named: a ``HardwareBackend`` that has a ``value``.
///
/// Raises:
///     UnknownBackendError, BackendUnavailableError
#[pyfunction]
#[pyo3(signature = (backend = None))]
fn get_backend<'py>(py: Python<'py>, backend: Option<Bound<'py, PyAny>>) -> PyOutcome<Bound<'py, PyAny>> {
    let chosen = match backend {
        Some(object) => table::select(py, &wanted(&object)?)?,
        None => table::current(py)?,
    };
    Ok(shown(py, &chosen)?)
}

/// The backend that is named, or ``None`` where it has no device here.
#[pyfunction]
fn find_backend<'py>(py: Python<'py>, backend: &Bound<'py, PyAny>) -> PyOutcome<Option<Bound<'py, PyAny>>> {
    let Some(name) = name_in(backend) else { return Ok(None) };
    match table::select(py, &name) {
        Ok(chosen) => Ok(Some(shown(py, &chosen)?)),
        Err(PyFailure::Ours(..)) => Ok(None),
        Err(raised) => Err(raised),
    }
}

/// The member of ``BackendType`` that graphs and models run on where none is named.
#[pyfunction]
fn get_default_backend(py: Python<'_>) -> PyOutcome<Bound<'_, PyAny>> {
    Ok(member(py, table::current(py)?.name())?)
}

/// Goes back to what ``YIRAGE_BACKEND`` says, or to the best that is here.
#[pyfunction]
fn reset_backend() {
    table::reset(false);
}

/// Registers a class of Python under a name.
#[pyfunction]
fn register_backend(py: Python<'_>, backend: &Bound<'_, PyAny>, class: &Bound<'_, PyAny>) -> PyOutcome<()> {
    Ok(table::register(py, &wanted(backend)?, class)?)
}

/// Forgets the classes that were registered, and what was set.
#[pyfunction]
fn forget_backends() {
    table::reset(true);
}

/// The members of ``BackendType`` that have a device here, the best first. The CPU is always among them.
#[pyfunction]
fn get_available_backends(py: Python<'_>) -> PyOutcome<Vec<Bound<'_, PyAny>>> {
    let names = table::available(py)?;
    Ok(names.iter().map(|name| member(py, name)).collect::<PyResult<_>>()?)
}

/// Their names.
#[pyfunction]
fn list_available_backends(py: Python<'_>) -> PyOutcome<Vec<String>> {
    table::available(py)
}

/// A ``DeviceInfo`` for every device of every available backend, the best first.
#[pyfunction]
fn discover_devices(py: Python<'_>) -> PyOutcome<Vec<Bound<'_, PyAny>>> {
    let mut found = Vec::new();
    for name in table::available(py)? {
        match table::select(py, &name)? {
            Chosen::Python(_, instance) => {
                let instance = instance.bind(py);
                let count: u32 = instance.call_method0("get_device_count")?.extract()?;
                for id in 0..count {
                    found.push(instance.call_method1("get_device_info", (id,))?);
                }
            }
            native => {
                let devices = table::backend(py, &native)?.probe();
                for device in devices.unwrap_or_default() {
                    found.push(facts::info(py, &device)?);
                }
            }
        }
    }
    Ok(found)
}

/// Whether a backend has a device here. ``False`` for what is no backend at all.
#[pyfunction]
fn is_backend_available(py: Python<'_>, backend: &Bound<'_, PyAny>) -> PyOutcome<bool> {
    Ok(find_backend(py, backend)?.is_some())
}
