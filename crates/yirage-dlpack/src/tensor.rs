//! A Python object that owns its elements.

use crate::abi;
use crate::dtype::{Element, name_of, to_dlpack, to_format};
use crate::error::ArrayError;
use crate::export::Export;
use crate::found::{Found, row_major};
use crate::memory::{Keeper, Owned};
use half::{bf16, f16};
use pyo3::exceptions::{PyBufferError, PyValueError};
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::{PyList, PyMemoryView, PyTuple};
use std::ffi::{c_int, c_void};
use std::ptr::null_mut;
use std::sync::Arc;
use yirage_call::Array;
use yirage_hal::HostMemory;
use yirage_ir::{DType, Dim, Format, Type};

/// Elements that a graph computed, in memory of their own: dense, row-major, at an address that is a multiple of 64.
///
/// NumPy, PyTorch and others read and write them where they lie, by ``__dlpack__`` or as a buffer. They stay alive as long
/// as anybody has them.
#[pyclass(frozen, module = "yirage")]
pub struct Tensor {
    array: Array,
    memory: Arc<Owned>,
    shape: Vec<isize>,
    /// In bytes.
    strides: Vec<isize>,
}

impl Tensor {
    /// A copy of dense row-major elements of type `ty`.
    ///
    /// # Errors
    /// [`ArrayError::Array`]: another number of bytes than the type needs, or elements that are not plain numbers.
    pub fn of(ty: &Type, bytes: &[u8]) -> Result<Tensor, ArrayError> {
        let memory = Arc::new(Owned::of(bytes));
        let array = Array::of(ty.dense(), memory.clone())?;
        let shape: Vec<isize> = ty.shape.iter().map(|dim| size(dim) as isize).collect();
        let mut strides = vec![ty.dtype.row_bytes(1) as isize; shape.len()];
        for dim in (1..shape.len()).rev() {
            strides[dim - 1] = strides[dim].saturating_mul(shape[dim].max(1));
        }
        Ok(Tensor { array, memory, shape, strides })
    }

    /// The elements as graphs are called with them.
    pub fn array(&self) -> &Array {
        &self.array
    }

    /// The elements as those of others are found.
    pub(crate) fn found(&self) -> Found {
        let shape: Vec<i64> = self.shape.iter().map(|&n| n as i64).collect();
        Found {
            at: self.memory.address().cast_const(),
            element: Element::Known(self.array.ty().dtype),
            strides: row_major(&shape),
            shape,
            writable: true,
            keeper: Keeper::Ours(self.memory.clone()),
        }
    }

    fn item_size(&self) -> usize {
        self.array.ty().dtype.row_bytes(1)
    }

    fn export(&self, copied: bool) -> PyResult<Export> {
        let dtype = self.array.ty().dtype;
        let element = to_dlpack(dtype);
        let element =
            element.ok_or_else(|| PyBufferError::new_err(format!("DLPack has no elements of type {dtype}")))?;
        let memory = if copied { Arc::new(Owned::of(self.memory.bytes())) } else { self.memory.clone() };
        let size = self.item_size().max(1) as isize;
        let strides = self.strides.iter().map(|&s| (s / size) as i64).collect();
        Ok(Export { memory, shape: self.shape.iter().map(|&n| n as i64).collect(), strides, dtype: element, copied })
    }

    /// A capsule of DLPack for whoever takes it at once: without a version, which every library reads.
    ///
    /// # Errors
    /// `BufferError` where DLPack has no such elements.
    pub fn capsule<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        self.export(false)?.plain(py)
    }

    /// An element as a Python number.
    fn number<'py>(&self, py: Python<'py>, at: usize) -> PyResult<Bound<'py, PyAny>> {
        let size = self.item_size();
        let bytes = &self.memory.bytes()[at * size..(at + 1) * size];
        let word = |bytes: &[u8]| bytes.iter().rev().fold(0u32, |word, &b| word << 8 | u32::from(b));
        let word = if cfg!(target_endian = "little") { word(bytes) } else { word(bytes).swap_bytes() };
        match self.array.ty().dtype {
            DType::I32 => Ok((word as i32).into_pyobject(py)?.into_any()),
            DType::U32 => Ok(word.into_pyobject(py)?.into_any()),
            DType::Bool => Ok((word != 0).into_pyobject(py)?.to_owned().into_any()),
            DType::Stored(Format::F16) => Ok(f16::from_bits(word as u16).to_f32().into_pyobject(py)?.into_any()),
            DType::Stored(Format::BF16) => Ok(bf16::from_bits(word as u16).to_f32().into_pyobject(py)?.into_any()),
            _ => Ok(f32::from_bits(word).into_pyobject(py)?.into_any()),
        }
    }

    fn list<'py>(&self, py: Python<'py>, dim: usize, at: usize) -> PyResult<Bound<'py, PyAny>> {
        let Some(&size) = self.shape.get(dim) else { return self.number(py, at) };
        let step = self.strides[dim] as usize / self.item_size().max(1);
        let rows = (0..size as usize).map(|i| self.list(py, dim + 1, at + i * step)).collect::<PyResult<Vec<_>>>()?;
        Ok(PyList::new(py, rows)?.into_any())
    }
}

fn size(dim: &Dim) -> usize {
    dim.as_const().unwrap_or_else(|| unreachable!("arrays have fixed sizes, which `Array::of` has checked"))
}

#[pymethods]
impl Tensor {
    /// Sizes, outermost first.
    #[getter]
    fn shape<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        PyTuple::new(py, &self.shape)
    }

    /// Elements between neighbours along each dimension.
    #[getter]
    fn strides<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        let size = self.item_size().max(1) as isize;
        PyTuple::new(py, self.strides.iter().map(|s| s / size))
    }

    /// The type of the elements, as NumPy and PyTorch call it.
    #[getter]
    fn dtype(&self) -> String {
        let dtype = self.array.ty().dtype;
        name_of(dtype).map_or_else(|| dtype.to_string(), str::to_owned)
    }

    /// How many dimensions there are.
    #[getter]
    fn ndim(&self) -> usize {
        self.shape.len()
    }

    /// How many bytes the elements take.
    #[getter]
    fn nbytes(&self) -> usize {
        self.memory.bytes().len()
    }

    /// The address of the first element.
    fn data_ptr(&self) -> usize {
        self.memory.address().addr()
    }

    /// The elements as nested lists of Python numbers; a number where there is no dimension.
    fn tolist<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        self.list(py, 0, 0)
    }

    /// The one element.
    ///
    /// Raises:
    ///     ValueError: there is none, or more than one.
    fn item<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let count: usize = self.shape.iter().map(|&n| n as usize).product();
        if count != 1 {
            return Err(PyValueError::new_err(format!("item() of {count} elements: one is wanted")));
        }
        self.number(py, 0)
    }

    /// The elements as a NumPy array, where they lie; of bfloat16 as one of ``ml_dtypes``.
    fn numpy<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        slf.py().import("numpy")?.call_method1("asarray", (slf,))
    }

    /// The elements as a tensor of PyTorch, where they lie.
    fn torch<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        slf.py().import("torch.utils.dlpack")?.call_method1("from_dlpack", (slf.get().capsule(slf.py())?,))
    }

    /// A capsule of DLPack, by the array interface standard.
    #[pyo3(signature = (*, stream = None, max_version = None, dl_device = None, copy = None))]
    fn __dlpack__<'py>(
        &self,
        py: Python<'py>,
        stream: Option<Bound<'py, PyAny>>,
        max_version: Option<(u32, u32)>,
        dl_device: Option<(i32, i32)>,
        copy: Option<bool>,
    ) -> PyResult<Bound<'py, PyAny>> {
        if let Some(stream) = stream.filter(|stream| !stream.extract::<i64>().is_ok_and(|n| n == -1)) {
            return Err(PyBufferError::new_err(format!("stream={stream}: memory of the host has none")));
        }
        if let Some((kind, id)) = dl_device.filter(|&device| device != (abi::CPU, 0)) {
            return Err(PyBufferError::new_err(format!("dl_device=({kind}, {id}): the elements lie on (1, 0)")));
        }
        let export = self.export(copy == Some(true))?;
        match max_version {
            Some((major, _)) if major >= abi::VERSION.major => export.versioned(py),
            _ => export.plain(py),
        }
    }

    /// DLPack's kind and number of the device: the host's memory.
    fn __dlpack_device__(&self) -> (i32, i32) {
        (abi::CPU, 0)
    }

    /// For NumPy, which takes bfloat16 as no buffer.
    #[pyo3(signature = (dtype = None, copy = None))]
    fn __array__<'py>(
        slf: &Bound<'py, Self>,
        dtype: Option<Bound<'py, PyAny>>,
        copy: Option<bool>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let (py, this) = (slf.py(), slf.get());
        let numpy = py.import("numpy")?;
        let made = if to_format(this.array.ty().dtype).is_some() {
            numpy.call_method1("asarray", (PyMemoryView::from(slf.as_any())?,))?
        } else {
            let of = py.import("ml_dtypes")?.getattr("bfloat16")?;
            let bits = Bound::new(py, Bits(slf.clone().unbind()))?;
            numpy.call_method1("asarray", (bits,))?.call_method1("view", (of,))?
        };
        match (dtype, copy) {
            (Some(dtype), _) => made.call_method1("astype", (dtype,)),
            (None, Some(true)) => made.call_method0("copy"),
            (None, _) => Ok(made),
        }
    }

    fn __len__(&self) -> PyResult<usize> {
        let first = self.shape.first().map(|&n| n as usize);
        first.ok_or_else(|| pyo3::exceptions::PyTypeError::new_err("len() of a tensor without dimensions"))
    }

    fn __repr__(&self) -> String {
        format!("yirage.Tensor(shape={:?}, dtype={})", self.shape, self.dtype())
    }

    /// # Safety
    /// Python calls it with a view to fill.
    unsafe fn __getbuffer__(slf: Bound<'_, Self>, view: *mut ffi::Py_buffer, flags: c_int) -> PyResult<()> {
        let this = slf.get();
        let why = "bfloat16 is no type of PEP 3118: use __dlpack__, or numpy() with ml_dtypes";
        let format = to_format(this.array.ty().dtype).ok_or_else(|| PyBufferError::new_err(why))?;
        // SAFETY: the caller's view; the tensor keeps what it will point to.
        unsafe { fill(view, flags, this, format.as_ptr().cast_mut(), slf.clone().into_any()) }
    }
}

/// The elements of a tensor as whole numbers of 16 bits: bfloat16, for whoever knows.
#[pyclass(frozen, module = "yirage")]
struct Bits(Py<Tensor>);

#[pymethods]
impl Bits {
    /// # Safety
    /// Python calls it with a view to fill.
    unsafe fn __getbuffer__(slf: Bound<'_, Self>, view: *mut ffi::Py_buffer, flags: c_int) -> PyResult<()> {
        let tensor = slf.get().0.get();
        // SAFETY: the caller's view; this object keeps the tensor, which keeps what it will point to.
        unsafe { fill(view, flags, tensor, c"H".as_ptr().cast_mut(), slf.clone().into_any()) }
    }
}

/// Fills a view of all elements, to be read and written.
///
/// # Safety
/// `view` is Python's to fill, and `owner` keeps `tensor` alive.
unsafe fn fill(
    view: *mut ffi::Py_buffer,
    flags: c_int,
    tensor: &Tensor,
    format: *mut std::ffi::c_char,
    owner: Bound<'_, PyAny>,
) -> PyResult<()> {
    if view.is_null() {
        return Err(PyBufferError::new_err("no view to fill"));
    }
    let asked = |flag: c_int| flags & flag == flag;
    let pointer = |list: &Vec<isize>| list.as_ptr().cast_mut();
    // SAFETY: the view is not null and the caller's to fill. Sizes and strides are the tensor's, which never change and
    // live as long as the owner, to which the view has a reference from here on.
    unsafe {
        (*view).buf = tensor.memory.address().cast::<c_void>();
        (*view).len = tensor.memory.bytes().len() as isize;
        (*view).itemsize = tensor.item_size() as isize;
        (*view).readonly = 0;
        (*view).ndim = tensor.shape.len() as c_int;
        (*view).format = if asked(ffi::PyBUF_FORMAT) { format } else { null_mut() };
        (*view).shape = if asked(ffi::PyBUF_ND) { pointer(&tensor.shape) } else { null_mut() };
        (*view).strides = if asked(ffi::PyBUF_STRIDES) { pointer(&tensor.strides) } else { null_mut() };
        (*view).suboffsets = null_mut();
        (*view).internal = null_mut();
        (*view).obj = owner.into_ptr();
    }
    Ok(())
}
