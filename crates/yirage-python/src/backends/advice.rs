//! Settings that follow from a device, and ops of ours timed on each backend.

use super::facts::{gigabytes, info, member, memory, wanted};
use super::table::{self, Chosen};
use crate::failure::{Class, PyFailure, PyOutcome};
use crate::log::{Level, say};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList};
use std::ops::ControlFlow;
use std::path::PathBuf;
use std::time::{Duration, Instant};
use yirage_advisor::{BenchmarkSizes, DeviceBenchmark, Hardware, advise, workers, workers_of_multiprocessors};
use yirage_hal::{DeviceInfo, OpenOptions};

/// The backend that an argument means; the current one without it.
pub(super) fn meant(py: Python<'_>, backend: Option<&Bound<'_, PyAny>>) -> PyOutcome<Chosen> {
    match backend {
        Some(object) => table::select(py, &wanted(object)?),
        None => table::current(py),
    }
}

/// The devices of a backend of ours.
pub(super) fn devices(py: Python<'_>, chosen: &Chosen) -> PyOutcome<Vec<DeviceInfo>> {
    let backend = table::backend(py, chosen)?;
    let found = py.detach(|| backend.probe());
    found.map_err(|why| PyFailure::Ours(Class::BackendUnavailable, why.to_string()))
}

/// Settings for the current backend, or the one that is named: a ``dict`` that ``PersistentKernel(**config)`` takes, with
/// the backend's name under ``'backend'``. The numbers of workers and schedulers are YiRage's by kind of device.
#[pyfunction]
#[pyo3(signature = (backend = None))]
pub(crate) fn auto_configure_backend<'py>(
    py: Python<'py>,
    backend: Option<Bound<'py, PyAny>>,
) -> PyOutcome<Bound<'py, PyDict>> {
    let chosen = meant(py, backend.as_ref())?;
    let devices = devices(py, &chosen)?;
    let first = devices
        .first()
        .ok_or_else(|| PyFailure::Ours(Class::BackendUnavailable, format!("{}: it names no device", chosen.name())))?;
    let hardware = Hardware::from(first);
    let (workers, advice) = (workers(&hardware), advise(&hardware));
    let config = PyDict::new(py);
    config.set_item("backend", chosen.name())?;
    config.set_item("device_id", first.ordinal)?;
    config.set_item("num_workers", workers.workers)?;
    config.set_item("num_local_schedulers", workers.schedulers)?;
    config.set_item("num_remote_schedulers", 0)?;
    for setting in &advice.settings {
        say(py, Level::Debug, &format!("{} = {}: {}", setting.name, setting.value, setting.reason))?;
    }
    Ok(config)
}

/// Workers and schedulers of a persistent kernel by Mirage's rule for a GPU: its multiprocessors beside the workers have four
/// schedulers each. ``rank`` is the number of the device.
///
/// Raises:
///     BackendUnavailableError: there is no such device.
///     Unsupported: its driver does not say how many multiprocessors it has.
#[pyfunction]
#[pyo3(signature = (rank = 0, *, backend = None))]
pub(crate) fn get_configurations_from_gpu(
    py: Python<'_>,
    rank: u32,
    backend: Option<Bound<'_, PyAny>>,
) -> PyOutcome<(u32, u32)> {
    let chosen = match backend {
        Some(object) => table::select(py, &wanted(&object)?)?,
        None => table::select(py, "cuda")?,
    };
    let devices = devices(py, &chosen)?;
    let name = chosen.name();
    let missing = || {
        let text = format!("{name} {rank} is not available: {} devices of it are here", devices.len());
        PyFailure::Ours(Class::BackendUnavailable, text)
    };
    let device = devices.iter().find(|device| device.ordinal == rank).ok_or_else(missing)?;
    let unknown =
        || PyFailure::unsupported(format!("the rule for {}", device.name), "its driver counts no multiprocessors");
    let found = workers_of_multiprocessors(device.cores.ok_or_else(unknown)?);
    Ok((found.workers, found.schedulers))
}

/// Workers and schedulers of a persistent kernel by YiRage's rule for the processors that this process may use.
#[pyfunction]
pub(crate) fn get_configurations_from_cpu(py: Python<'_>) -> PyOutcome<(u32, u32)> {
    let devices = devices(py, &table::select(py, "cpu")?)?;
    let none = || PyFailure::Ours(Class::BackendUnavailable, "cpu: it names no device".into());
    let found = workers(&Hardware::from(devices.first().ok_or_else(none)?));
    Ok((found.workers, found.schedulers))
}

/// Memory by device, in units of 2**30 bytes. ``'cpu'`` has ``total_gb``, ``available_gb``, ``used_gb`` and ``percent``;
/// the others, as ``'cuda_0'``, ``total_gb``, ``allocated_gb``, ``cached_gb`` and ``free_gb``. All available backends
/// without an argument.
///
/// Raises:
///     UnknownBackendError, BackendUnavailableError
#[pyfunction]
#[pyo3(signature = (backend = None))]
pub(crate) fn get_memory_info<'py>(
    py: Python<'py>,
    backend: Option<Bound<'py, PyAny>>,
) -> PyOutcome<Bound<'py, PyDict>> {
    let names = match &backend {
        Some(object) => vec![table::select(py, &wanted(object)?)?.name().to_owned()],
        None => table::available(py)?,
    };
    let all = PyDict::new(py);
    for name in names {
        let chosen = table::select(py, &name)?;
        if let Chosen::Python(_, instance) = &chosen {
            all.set_item(&name, instance.bind(py).call_method0("memory_stats")?)?;
            continue;
        }
        for device in devices(py, &chosen)? {
            let (total, used, free) = memory(&device)?;
            let of = PyDict::new(py);
            of.set_item("total_gb", total)?;
            if name == "cpu" {
                of.set_item("available_gb", free)?;
                of.set_item("used_gb", used)?;
                of.set_item("percent", used / total * 100.0)?;
                all.set_item(&name, of)?;
            } else {
                of.set_item("allocated_gb", used)?;
                of.set_item("cached_gb", 0.0)?;
                of.set_item("free_gb", free)?;
                all.set_item(format!("{name}_{}", device.ordinal), of)?;
            }
        }
    }
    Ok(all)
}

/// What is known of the current backend, or of the one that is named.
#[pyfunction]
#[pyo3(signature = (backend = None))]
pub(crate) fn get_backend_info<'py>(
    py: Python<'py>,
    backend: Option<Bound<'py, PyAny>>,
) -> PyOutcome<Bound<'py, PyDict>> {
    let chosen = meant(py, backend.as_ref())?;
    let found = PyDict::new(py);
    found.set_item("backend", chosen.name())?;
    found.set_item("current_backend", table::current(py)?.name())?;
    let available = table::available(py)?;
    let members = available.iter().map(|name| member(py, name)).collect::<PyResult<Vec<_>>>()?;
    found.set_item("available_backends", members)?;
    let Chosen::Native(_) = &chosen else {
        found.set_item("devices", PyList::empty(py))?;
        found.set_item("device_count", 0)?;
        return Ok(found);
    };
    let devices = devices(py, &chosen)?;
    found.set_item("device_count", devices.len())?;
    if let Some(first) = devices.first() {
        found.set_item("device_name", &first.name)?;
        found.set_item("compute_capability", &first.arch)?;
        found.set_item("num_cores", first.cores)?;
        found.set_item("total_memory_gb", first.total_memory_bytes.map(gigabytes))?;
        found.set_item("free_memory_gb", first.memory_bytes.map(gigabytes))?;
        let capabilities = PyDict::new(py);
        for (name, there) in first.capabilities.flags() {
            capabilities.set_item(name, there)?;
        }
        found.set_item("capabilities", capabilities)?;
    }
    let devices = devices.iter().map(|device| info(py, device)).collect::<PyResult<Vec<_>>>()?;
    found.set_item("devices", devices)?;
    Ok(found)
}

/// How often Ctrl-C is looked for.
const LOOK_UP: Duration = Duration::from_millis(50);

/// Ops of yirage, timed on every available backend, or on those that are named, for so many seconds in all. Ctrl-C ends it.
///
/// Returns:
///     a ``dict`` from backend to the median milliseconds of its product of two matrices, a ``BenchmarkResults``: its
///     ``details`` have every op, its ``errors`` the backends that failed.
#[pyfunction]
#[pyo3(signature = (duration_seconds = 10.0, backends = None))]
pub(crate) fn benchmark_backends<'py>(
    py: Python<'py>,
    duration_seconds: f64,
    backends: Option<Vec<Bound<'py, PyAny>>>,
) -> PyOutcome<Bound<'py, PyAny>> {
    let time = Duration::try_from_secs_f64(duration_seconds);
    let time = time.map_err(|e| PyFailure::option(format!("duration_seconds={duration_seconds}: {e}")))?;
    let names = match &backends {
        Some(given) => given.iter().map(wanted).collect::<PyOutcome<Vec<_>>>()?,
        None => table::available(py)?.into_iter().filter(|name| table::python(name).is_none()).collect(),
    };
    let (registry, options) = (table::registry(), OpenOptions::default());
    let listed: Vec<&str> = names.iter().map(String::as_str).collect();
    let (mut raised, mut looked) = (Ok(()), Instant::now());
    let found = py.detach(|| {
        yirage_advisor::benchmark(&registry, &listed, &options, &BenchmarkSizes::MODEL, time, &mut |_| {
            if looked.elapsed() >= LOOK_UP {
                looked = Instant::now();
                raised = Python::attach(|py| py.check_signals());
            }
            if raised.is_ok() { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
        })
    });
    crate::process::own();
    raised?;
    let results = py.import("yirage.backends")?.getattr("BenchmarkResults")?.call0()?;
    let (details, errors) = (results.getattr("details")?, results.getattr("errors")?);
    for of in found {
        let timed = of.outcome.map_err(|e| e.to_string()).and_then(|device| timed(py, &device));
        match timed {
            Ok((milliseconds, ops)) => {
                results.set_item(&of.backend, milliseconds)?;
                details.set_item(&of.backend, ops)?;
            }
            Err(why) => {
                say(py, Level::Warning, &format!("benchmark of {}: {why}", of.backend))?;
                errors.set_item(&of.backend, why)?;
            }
        }
    }
    Ok(results)
}

/// Every op, and the time of the product.
fn timed<'py>(py: Python<'py>, device: &DeviceBenchmark) -> Result<(f64, Bound<'py, PyList>), String> {
    let (ops, mut product) = (PyList::empty(py), Err("it has no product of matrices".to_owned()));
    for of in &device.ops {
        let row = PyDict::new(py);
        let set = |key: &str, value: f64| row.set_item(key, value);
        let filled = row.set_item("op", of.op).and_then(|()| row.set_item("shape", &of.shape));
        let filled = match &of.outcome {
            Ok(rates) => {
                let seconds = rates.timing.median();
                if of.op == "contract" {
                    product = Ok(seconds * 1e3);
                }
                let bandwidth = rates.bytes_per_second() / 1e9;
                filled
                    .and_then(|()| set("milliseconds", seconds * 1e3))
                    .and_then(|()| set("gigabytes_per_second", bandwidth))
                    .and_then(|()| rates.ops_per_second().map_or(Ok(()), |rate| set("gflops", rate / 1e9)))
            }
            Err(why) => {
                if of.op == "contract" {
                    product = Err(why.to_string());
                }
                filled.and_then(|()| row.set_item("error", why.to_string()))
            }
        };
        filled.and_then(|()| ops.append(row)).map_err(|e| e.to_string())?;
    }
    product.map(|milliseconds| (milliseconds, ops))
}

/// Writes a configuration as JSON.
#[pyfunction]
pub(crate) fn save_config(py: Python<'_>, filename: PathBuf, config: Bound<'_, PyDict>) -> PyOutcome<()> {
    let options = PyDict::new(py);
    options.set_item("indent", 2)?;
    let text: String = py.import("json")?.getattr("dumps")?.call((config,), Some(&options))?.extract()?;
    std::fs::write(&filename, text + "\n").map_err(|e| PyFailure::io("write", &filename, &e))
}

/// Most bytes of a configuration.
const MAX_CONFIG: u64 = 1 << 20;

/// Reads a configuration that was saved. Keys that nobody here knows stay in it.
#[pyfunction]
pub(crate) fn load_config(py: Python<'_>, filename: PathBuf) -> PyOutcome<Bound<'_, PyDict>> {
    let text = yirage_mmap::read_text(&filename, MAX_CONFIG);
    let text = text.map_err(|e| PyFailure::option(e.to_string()))?;
    let parsed = py.import("json")?.call_method1("loads", (text,));
    let wrong = |why: String| PyFailure::option(format!("{}: {why}", filename.display()));
    let parsed = parsed.map_err(|e| wrong(e.to_string()))?;
    let config = parsed.cast_into::<PyDict>().map_err(|_| wrong("an object of settings is wanted".into()))?;
    match config.get_item("backend")? {
        Some(name) if super::facts::name_in(&name).is_some_and(|name| table::canonical(&name).is_some()) => Ok(config),
        Some(name) => Err(wrong(format!("its `backend` {name} is unknown"))),
        None => Err(wrong("it has no `backend`".into())),
    }
}
