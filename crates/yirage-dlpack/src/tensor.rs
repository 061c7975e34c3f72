//! A Python object that owns its elements.

use crate::abi;
use crate::dtype::{ArrayDType, ForeignDType, StorageDType};
use crate::error::ArrayError;
use crate::export::Export;
use crate::foreign_array::{ForeignArray, row_major};
use crate::memory::{Keeper, Owned};
use half::{bf16, f16};
use pyo3::exceptions::{PyBufferError, PyValueError};
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::{PyList, PyMemoryView, PyTuple};
use std::ffi::{c_int, c_void};
use std::ptr::null_mut;
use std::sync::Arc;
use yirage_hal::HostMemory;
use yirage_ir::{DType, Dim, Format, Type};
use yirage_plancache::HostArray;

/// Elements that a graph computed or that were copied, in memory of their own: dense, row-major, at an address that is a
/// multiple of 64.
///
/// NumPy, PyTorch and others read and write them where they lie, by ``__dlpack__`` or as a buffer. They stay alive as long
/// as anybody has them.
#[pyclass(name = "Tensor", frozen, module = "yirage")]
pub struct PyTensor {
    element: ArrayDType,
    memory: Arc<Owned>,
    shape: Vec<isize>,
    /// In bytes.
    strides: Vec<isize>,
}

impl PyTensor {
    /// A copy of dense row-major elements of type `ty`.
    ///
    /// # Errors
    /// [`ArrayError::Array`]: another number of bytes than the type needs, or elements that are not plain numbers.
    pub fn of(ty: &Type, bytes: &[u8]) -> Result<PyTensor, ArrayError> {
        let memory = Arc::new(Owned::of(bytes));
        HostArray::of(ty.dense(), memory.clone())?;
        let shape = ty.shape.iter().map(|dim| size(dim) as isize).collect();
        Ok(PyTensor::dense_in(ArrayDType::Known(ty.dtype), shape, memory))
    }

    /// Zeros of a type that NumPy and PyTorch call `dtype`; `what` says in errors who wants them.
    ///
    /// # Errors
    /// [`ArrayError`]: a type that is not stored, more elements than memory has.
    pub fn zeros(shape: &[u32], dtype: &str, what: &str) -> Result<PyTensor, ArrayError> {
        let element = ArrayDType::named(dtype);
        let element = element.ok_or_else(|| ArrayError::Stored { what: what.to_owned(), given: dtype.to_owned() })?;
        let none = || ArrayError::Memory { what: what.to_owned(), shape: shape.to_vec(), dtype: element.name() };
        let bytes = counted(shape.iter().map(|&n| usize::try_from(n).ok()), element).ok_or_else(none)?;
        let memory = Owned::zeroed(bytes).ok_or_else(none)?;
        Ok(PyTensor::dense_in(element, shape.iter().map(|&n| n as isize).collect(), Arc::new(memory)))
    }

    /// Elements that lie densely in this memory.
    pub(crate) fn dense_in(element: ArrayDType, shape: Vec<isize>, memory: Arc<Owned>) -> PyTensor {
        let mut strides = vec![element.bytes() as isize; shape.len()];
        for dim in (1..shape.len()).rev() {
            strides[dim - 1] = strides[dim].saturating_mul(shape[dim].max(1));
        }
        PyTensor { element, memory, shape, strides }
    }

    /// The type of the elements.
    pub(crate) fn element(&self) -> ArrayDType {
        self.element
    }

    /// The elements as graphs are called with them; none where no graph computes with their type.
    ///
    /// # Errors
    /// [`ArrayError::Array`]: sizes that no graph has.
    pub(crate) fn array(&self) -> Result<Option<HostArray>, ArrayError> {
        let ArrayDType::Known(dtype) = self.element else { return Ok(None) };
        let ty = Type::new(dtype, self.shape.iter().map(|&n| Dim::Const(u32::try_from(n).unwrap_or(u32::MAX))));
        Ok(Some(HostArray::of(ty, self.memory.clone())?))
    }

    /// The elements as those of others are found.
    pub(crate) fn as_foreign(&self) -> ForeignArray {
        let shape: Vec<i64> = self.shape.iter().map(|&n| n as i64).collect();
        ForeignArray {
            at: self.memory.address().cast_const(),
            element: ForeignDType::Is(self.element),
            strides: row_major(&shape),
            shape,
            writable: true,
            keeper: Keeper::Ours(self.memory.clone()),
        }
    }

    fn item_size(&self) -> usize {
        self.element.bytes()
    }

    fn export(&self, copied: bool) -> Export {
        let memory = if copied { Arc::new(Owned::of(self.memory.bytes())) } else { self.memory.clone() };
        let size = self.item_size().max(1) as isize;
        let strides = self.strides.iter().map(|&s| (s / size) as i64).collect();
        let shape = self.shape.iter().map(|&n| n as i64).collect();
        Export { memory, shape, strides, dtype: self.element.dlpack(), copied }
    }

    /// A capsule of DLPack for whoever takes it at once: without a version, which every library reads.
    ///
    /// # Errors
    /// What Python raises where it has no memory for it.
    pub fn capsule<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        self.export(false).plain(py)
    }

    /// An element as a Python number.
    fn number<'py>(&self, py: Python<'py>, at: usize) -> PyResult<Bound<'py, PyAny>> {
        let size = self.item_size();
        let bytes = &self.memory.bytes()[at * size..(at + 1) * size];
        let word = |bytes: &[u8]| bytes.iter().rev().fold(0u64, |word, &b| word << 8 | u64::from(b));
        let word = if cfg!(target_endian = "little") {
            word(bytes)
        } else {
            word(&bytes.iter().rev().copied().collect::<Vec<u8>>())
        };
        let whole = |n: i64| Ok(n.into_pyobject(py)?.into_any());
        let float = |x: f64| Ok(x.into_pyobject(py)?.into_any());
        match self.element {
            ArrayDType::Known(DType::I32) => whole(i64::from(word as i32)),
            ArrayDType::Known(DType::U32)
            | ArrayDType::Stored(StorageDType::U8 | StorageDType::U16 | StorageDType::U64) => {
                Ok(word.into_pyobject(py)?.into_any())
            }
            ArrayDType::Known(DType::Bool) => Ok((word != 0).into_pyobject(py)?.to_owned().into_any()),
            ArrayDType::Known(DType::Stored(Format::F16)) => float(f16::from_bits(word as u16).to_f64()),
            ArrayDType::Known(DType::Stored(Format::BF16)) => float(bf16::from_bits(word as u16).to_f64()),
            ArrayDType::Known(_) => float(f64::from(f32::from_bits(word as u32))),
            ArrayDType::Stored(StorageDType::I8) => whole(i64::from(word as i8)),
            ArrayDType::Stored(StorageDType::I16) => whole(i64::from(word as i16)),
            ArrayDType::Stored(StorageDType::I64) => whole(word as i64),
            ArrayDType::Stored(StorageDType::F64) => float(f64::from_bits(word)),
            ArrayDType::Stored(StorageDType::F8E4M3) => float(e4m3(word as u8)),
        }
    }

    fn list<'py>(&self, py: Python<'py>, dim: usize, at: usize) -> PyResult<Bound<'py, PyAny>> {
        let Some(&size) = self.shape.get(dim) else { return self.number(py, at) };
        let step = self.strides[dim] as usize / self.item_size().max(1);
        let rows = (0..size as usize).map(|i| self.list(py, dim + 1, at + i * step)).collect::<PyResult<Vec<_>>>()?;
        Ok(PyList::new(py, rows)?.into_any())
    }
}

/// Bytes of so many elements; none where that is no number.
pub(crate) fn counted(mut sizes: impl Iterator<Item = Option<usize>>, element: ArrayDType) -> Option<usize> {
    sizes.try_fold(element.bytes(), |n, size| n.checked_mul(size?)).filter(|&n| isize::try_from(n).is_ok())
}

/// The number that an 8-bit float E4M3 without infinities stands for.
fn e4m3(bits: u8) -> f64 {
    let (exponent, mantissa) = (i32::from(bits >> 3 & 15), f64::from(bits & 7));
    let size = match (exponent, bits & 7) {
        (15, 7) => f64::NAN,
        (0, _) => mantissa / 8.0 * 2f64.powi(-6),
        _ => (1.0 + mantissa / 8.0) * 2f64.powi(exponent - 7),
    };
    if bits & 0x80 == 0 { size } else { -size }
}

fn size(dim: &Dim) -> usize {
    dim.as_const().unwrap_or_else(|| unreachable!("arrays have fixed sizes, which `Array::of` has checked"))
}

#[pymethods]
impl PyTensor {
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
    fn dtype(&self) -> &'static str {
        self.element.name()
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

    /// The elements as a NumPy array, where they lie; of bfloat16 and float8_e4m3fn as one of ``ml_dtypes``.
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
        let export = self.export(copy == Some(true));
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
        let made = if this.element.format().is_some() {
            numpy.call_method1("asarray", (PyMemoryView::from(slf.as_any())?,))?
        } else {
            let of = py.import("ml_dtypes")?.getattr(this.element.name())?;
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
        let why =
            || format!("{} is no type of PEP 3118: use __dlpack__, or numpy() with ml_dtypes", this.element.name());
        let format = this.element.format().ok_or_else(|| PyBufferError::new_err(why()))?;
        // SAFETY: `fill` wants a view that Python gives to be filled; the tensor keeps what it will point to.
        unsafe { fill(view, flags, this, format.as_ptr().cast_mut(), slf.clone().into_any()) }
    }
}

/// The elements of a tensor as whole numbers of as many bits: bfloat16 and float8_e4m3fn, for whoever knows.
#[pyclass(frozen, module = "yirage")]
struct Bits(Py<PyTensor>);

#[pymethods]
impl Bits {
    /// # Safety
    /// Python calls it with a view to fill.
    unsafe fn __getbuffer__(slf: Bound<'_, Self>, view: *mut ffi::Py_buffer, flags: c_int) -> PyResult<()> {
        let tensor = slf.get().0.get();
        let format = if tensor.item_size() == 1 { c"B" } else { c"H" };
        // SAFETY: `fill` wants a view that Python gives to be filled; this object keeps the tensor, which keeps what it will point to.
        unsafe { fill(view, flags, tensor, format.as_ptr().cast_mut(), slf.clone().into_any()) }
    }
}

/// Fills a view of all elements, to be read and written.
///
/// # Safety
/// `view` is Python's to fill, and `owner` keeps `tensor` alive.
unsafe fn fill(
    view: *mut ffi::Py_buffer,
    flags: c_int,
    tensor: &PyTensor,
    format: *mut std::ffi::c_char,
    owner: Bound<'_, PyAny>,
) -> PyResult<()> {
    if view.is_null() {
        return Err(PyBufferError::new_err("no view to fill"));
    }
    let asked = |flag: c_int| flags & flag == flag;
    let pointer = |list: &Vec<isize>| list.as_ptr().cast_mut();
    // SAFETY: the view is not null, as has been checked, and `fill` is promised it. Sizes and strides are the tensor's, which never change and
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
