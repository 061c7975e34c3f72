//! A backend of the registry as Python has it: the current selection, which has a value, and a `HardwareBackend`.

use super::facts::{capabilities, info, member, memory, name_in};
use super::table;
use crate::dtype;
use crate::failure::{Class, PyFailure, PyOutcome};
use crate::numbers::{device_number, maybe_device_number, wholes};
use crate::process;
use pyo3::prelude::*;
use pyo3::types::PyDict;
use std::sync::atomic::{AtomicU32, Ordering};
use yirage_dlpack::{PyTensor, copied};
use yirage_hal::DeviceInfo;

/// A backend that yirage brings: what ``get_backend()`` gives, and a ``HardwareBackend``.
#[pyclass(frozen, module = "yirage")]
pub(crate) struct NativeBackend {
    name: &'static str,
    current: AtomicU32,
}

impl NativeBackend {
    pub(crate) fn new(name: &'static str) -> NativeBackend {
        NativeBackend { name, current: AtomicU32::new(0) }
    }

    /// Its devices now.
    fn devices(&self, py: Python<'_>) -> PyOutcome<Vec<DeviceInfo>> {
        let backend = table::backend(py, &table::Chosen::Native(self.name))?;
        let found = py.detach(|| backend.probe());
        found.map_err(|why| PyFailure::Ours(Class::BackendUnavailable, why.to_string()))
    }

    fn device(&self, py: Python<'_>, device_id: u32) -> PyOutcome<DeviceInfo> {
        let devices = self.devices(py)?;
        let count = devices.len();
        devices.into_iter().find(|device| device.ordinal == device_id).ok_or_else(|| {
            let text = format!("device_id {device_id}: {} has {count} device(s), counted from 0", self.name);
            PyFailure::Ours(Class::Device, text)
        })
    }
}

#[pymethods]
impl NativeBackend {
    /// Its name, such as ``'cpu'``.
    #[getter]
    fn value(&self) -> &'static str {
        self.name
    }

    /// Its name, as in ``value``.
    #[getter]
    fn name(&self) -> &'static str {
        self.name
    }

    /// Its member of ``BackendType``.
    fn backend_type<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        member(py, self.name)
    }

    /// Whether it has a device here.
    fn is_available(&self, py: Python<'_>) -> bool {
        self.devices(py).is_ok_and(|devices| !devices.is_empty())
    }

    /// How many devices it has here; 0 where there is none.
    fn get_device_count(&self, py: Python<'_>) -> usize {
        self.devices(py).map_or_else(|_| 0, |devices| devices.len())
    }

    /// What is known of a device.
    #[pyo3(signature = (device_id = 0))]
    fn get_device_info<'py>(
        &self,
        py: Python<'py>,
        #[pyo3(from_py_with = device_number)] device_id: u32,
    ) -> PyOutcome<Bound<'py, PyAny>> {
        Ok(info(py, &self.device(py, device_id)?)?)
    }

    /// What kernels can compute with on a device.
    #[pyo3(signature = (device_id = 0))]
    fn get_capabilities<'py>(
        &self,
        py: Python<'py>,
        #[pyo3(from_py_with = device_number)] device_id: u32,
    ) -> PyOutcome<Bound<'py, PyAny>> {
        Ok(capabilities(py, &self.device(py, device_id)?.capabilities)?)
    }

    /// The device as PyTorch writes it: ``'cpu'``, and ``'cuda:0'`` of others.
    #[pyo3(signature = (device_id = 0))]
    fn get_device(&self, py: Python<'_>, #[pyo3(from_py_with = device_number)] device_id: u32) -> PyOutcome<String> {
        let device = self.device(py, device_id)?;
        Ok(if self.name == "cpu" { self.name.to_owned() } else { format!("{}:{}", self.name, device.ordinal) })
    }

    /// Returns when everything that was submitted is done. Calls return then anyway, so it waits for nothing.
    #[pyo3(signature = (device_id = None))]
    fn synchronize(
        &self,
        py: Python<'_>,
        #[pyo3(from_py_with = maybe_device_number)] device_id: Option<u32>,
    ) -> PyOutcome<()> {
        self.device(py, device_id.unwrap_or_else(|| self.current_device())).map(drop)
    }

    /// ``{'total_gb', 'used_gb', 'free_gb'}`` in units of 2**30 bytes.
    #[pyo3(signature = (device_id = 0))]
    fn memory_stats<'py>(
        &self,
        py: Python<'py>,
        #[pyo3(from_py_with = device_number)] device_id: u32,
    ) -> PyOutcome<Bound<'py, PyDict>> {
        let (total, used, free) = memory(&self.device(py, device_id)?)?;
        let stats = PyDict::new(py);
        stats.set_item("total_gb", total)?;
        stats.set_item("used_gb", used)?;
        stats.set_item("free_gb", free)?;
        Ok(stats)
    }

    /// Gives back memory that is kept for later allocations. None is kept, so there is nothing to do.
    #[pyo3(signature = (device_id = None))]
    fn empty_cache(
        &self,
        py: Python<'_>,
        #[pyo3(from_py_with = maybe_device_number)] device_id: Option<u32>,
    ) -> PyOutcome<()> {
        self.synchronize(py, device_id)
    }

    /// Makes a device the current one.
    ///
    /// Raises:
    ///     DeviceError: there is none of that number.
    fn set_device(&self, py: Python<'_>, #[pyo3(from_py_with = device_number)] device_id: u32) -> PyOutcome<()> {
        self.device(py, device_id)?;
        self.current.store(device_id, Ordering::Relaxed);
        Ok(())
    }

    /// The number of the current device.
    fn current_device(&self) -> u32 {
        self.current.load(Ordering::Relaxed)
    }

    /// A tensor of zeros on a device.
    #[pyo3(signature = (shape, dtype = None, device_id = 0))]
    fn allocate_tensor(
        &self,
        py: Python<'_>,
        #[pyo3(from_py_with = wholes)] shape: Vec<u32>,
        dtype: Option<Bound<'_, PyAny>>,
        #[pyo3(from_py_with = device_number)] device_id: u32,
    ) -> PyOutcome<PyTensor> {
        process::check()?;
        self.host_alone(py, device_id, "allocate_tensor")?;
        let dtype = dtype.map_or_else(|| Ok("float32".to_owned()), |dtype| dtype::named(&dtype))?;
        Ok(PyTensor::zeros(&shape, &dtype, "allocate_tensor")?)
    }

    /// A copy of a dense array on a device: of whole numbers, floats or truth values, whether graphs compute with them or not.
    #[pyo3(signature = (tensor, device_id = 0, non_blocking = true))]
    fn copy_to_device(
        &self,
        py: Python<'_>,
        tensor: &Bound<'_, PyAny>,
        #[pyo3(from_py_with = device_number)] device_id: u32,
        non_blocking: bool,
    ) -> PyOutcome<PyTensor> {
        // Copies are done when the call returns, which is what blocking means.
        let _ = non_blocking;
        self.host_alone(py, device_id, "copy_to_device")?;
        Ok(copied(tensor, "tensor")?)
    }

    /// A copy of a device's tensor in the host's memory.
    #[pyo3(signature = (tensor, non_blocking = true))]
    fn copy_to_host(&self, py: Python<'_>, tensor: &Bound<'_, PyAny>, non_blocking: bool) -> PyOutcome<PyTensor> {
        let _ = non_blocking;
        self.host_alone(py, self.current_device(), "copy_to_host")?;
        Ok(copied(tensor, "tensor")?)
    }

    fn __eq__(&self, other: &Bound<'_, PyAny>) -> bool {
        name_in(other).is_some_and(|name| table::canonical(&name).as_deref() == Some(self.name))
    }

    fn __hash__(&self, py: Python<'_>) -> PyResult<isize> {
        pyo3::types::PyString::new(py, self.name).hash()
    }

    fn __str__(&self) -> &'static str {
        self.name
    }

    fn __repr__(&self) -> String {
        format!("<yirage backend {}>", self.name)
    }
}

impl NativeBackend {
    /// Refuses what is written for the host's memory alone.
    fn host_alone(&self, py: Python<'_>, device_id: u32, what: &str) -> PyOutcome<()> {
        self.device(py, device_id)?;
        if self.name == "cpu" {
            return Ok(());
        }
        let why = "tensors of Python lie in the host's memory, and graphs bring them to the device";
        Err(PyFailure::unsupported(format!("{what} on {}", self.name), why))
    }
}
