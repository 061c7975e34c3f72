//! Facts about devices, as the shells of `yirage.protocols`.

use crate::failure::{Class, PyFailure, PyOutcome};
use crate::numbers::kind;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyString};
use yirage_hal::DeviceInfo;
use yirage_plan::KernelCapabilities;

/// Bytes in what people call a GB of memory.
const GB: f64 = (1u64 << 30) as f64;

pub(crate) fn gigabytes(bytes: u64) -> f64 {
    bytes as f64 / GB
}

/// The name in an object that says which backend: a text, a member of `BackendType`, a backend; none for what says nothing.
pub(crate) fn name_in(object: &Bound<'_, PyAny>) -> Option<String> {
    // Members are texts and have a value; backends have a value.
    let value = object.getattr("value").ok().and_then(|value| value.extract::<String>().ok());
    value.or_else(|| object.cast::<PyString>().ok().map(|text| text.to_string()))
}

/// [`name_in`], which has to be there.
///
/// # Errors
/// An `UnknownBackendError`.
pub(crate) fn wanted(object: &Bound<'_, PyAny>) -> PyOutcome<String> {
    name_in(object).ok_or_else(|| {
        let given = kind(object);
        let text = format!("a backend is named by a text or a member of BackendType, and a `{given}` was given");
        PyFailure::Ours(Class::UnknownBackend, text)
    })
}

/// The member of `BackendType` of this name; the name itself where a class was registered under a new one.
pub(crate) fn member<'py>(py: Python<'py>, name: &str) -> PyResult<Bound<'py, PyAny>> {
    let kinds = py.import("yirage.backends")?.getattr("BackendType")?;
    let known = kinds.getattr("__members__")?.call_method1("get", (name.to_uppercase(),))?;
    Ok(if known.is_none() { PyString::new(py, name).into_any() } else { known })
}

/// What `DeviceInfo` says.
pub(crate) fn info<'py>(py: Python<'py>, info: &DeviceInfo) -> PyResult<Bound<'py, PyAny>> {
    let fields = PyDict::new(py);
    let properties = PyDict::new(py);
    for (name, value) in &info.facts {
        properties.set_item(name, value)?;
    }
    properties.set_item("arch", &info.arch)?;
    properties.set_item("software", info.software)?;
    fields.set_item("backend", member(py, info.backend)?)?;
    fields.set_item("device_id", info.ordinal)?;
    fields.set_item("name", &info.name)?;
    fields.set_item("compute_capability", &info.arch)?;
    fields.set_item("total_memory_gb", info.total_memory_bytes.map(gigabytes))?;
    // 0 says that it is not known.
    fields.set_item("free_memory_gb", info.memory_bytes.map(gigabytes))?;
    fields.set_item("num_cores", info.cores)?;
    fields.set_item("driver_version", &info.driver_version)?;
    fields.set_item("sdk_version", &info.sdk_version)?;
    fields.set_item("properties", properties)?;
    py.import("yirage.protocols")?.getattr("DeviceInfo")?.call((), Some(&fields))
}

/// What `KernelCapabilities` says.
pub(crate) fn capabilities<'py>(py: Python<'py>, of: &KernelCapabilities) -> PyResult<Bound<'py, PyAny>> {
    let fields = PyDict::new(py);
    for (name, there) in of.flags() {
        fields.set_item(format!("supports_{name}"), there)?;
    }
    py.import("yirage.protocols")?.getattr("KernelCapabilities")?.call((), Some(&fields))
}

/// Total, used and free memory of a device in GB, free never above total.
///
/// # Errors
/// `Unsupported` where the device does not tell.
pub(crate) fn memory(info: &DeviceInfo) -> PyOutcome<(f64, f64, f64)> {
    let (Some(total), Some(free)) = (info.total_memory_bytes, info.memory_bytes) else {
        let what = format!("memory statistics of {} {}", info.backend, info.ordinal);
        return Err(PyFailure::unsupported(what, "its driver does not tell how much memory is free"));
    };
    let free = free.min(total);
    Ok((gigabytes(total), gigabytes(total - free), gigabytes(free)))
}
