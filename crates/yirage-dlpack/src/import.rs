//! From an object of Python to elements that are read where they lie.

use crate::abi::{self, DlpackManaged, DlpackTensor, DlpackVersioned};
use crate::dtype::{ArrayDType, FLOAT8_E4M3FN, ForeignDType, StorageDType, of_dlpack, of_format};
use crate::error::ArrayError;
use crate::foreign_array::{ForeignArray, row_major};
use crate::memory::{ForeignMemory, Keeper};
use crate::tensor::PyTensor;
use pyo3::buffer::PyUntypedBuffer;
use pyo3::exceptions::{PyBufferError, PyTypeError};
use pyo3::prelude::*;
use pyo3::types::PyDict;
use pyo3::{ffi, intern};
use std::ffi::CStr;
use std::ptr::NonNull;
use std::sync::Arc;
use yirage_ir::{DType, Dim, Dims, Format, Type};
use yirage_plancache::HostArray;

/// The array that `object` is, read where it lies; `what` says in errors which argument it is. Sizes and strides are the
/// object's own. NumPy arrays with an element type of `ml_dtypes` are taken as well, which have neither protocol, and tensors
/// of PyTorch with 8-bit floats, which its older versions do not share.
///
/// # Errors
/// [`ArrayError`]: an object that is no array, elements of another type, memory of a device, sizes of 2^32 or more, and
/// strides that are negative.
pub fn taken(object: &Bound<'_, PyAny>, what: &str) -> Result<HostArray, ArrayError> {
    let other = |given: String| ArrayError::DType { what: what.to_owned(), given };
    if let Ok(tensor) = object.cast::<PyTensor>() {
        let tensor = tensor.get();
        return tensor.array()?.ok_or_else(|| other(tensor.element().name().into()));
    }
    let found = read_array(object, what)?;
    let dtype = match found.element {
        ForeignDType::Is(ArrayDType::Known(dtype)) => dtype,
        ForeignDType::Is(element) => return Err(other(element.name().into())),
        ForeignDType::Other(given) => return Err(other(given)),
    };
    let ty = array_type(dtype, &found.shape, &found.strides).map_err(|why| ArrayError::Places {
        what: what.to_owned(),
        shape: found.shape.clone(),
        strides: found.strides.clone(),
        why,
    })?;
    let held = ty.storage_bytes(&Dims::default());
    // SAFETY: sizes and strides, none of which is negative, are those of `ty`, so that as many bytes are there until the
    // keeper lets go of them.
    let memory = unsafe { ForeignMemory::new(found.at, held, found.keeper) };
    Ok(HostArray::of(ty, Arc::new(memory))?)
}

/// The elements of `object` by whichever protocol it has.
pub(crate) fn read_array(object: &Bound<'_, PyAny>, what: &str) -> Result<ForeignArray, ArrayError> {
    match PyUntypedBuffer::get(object) {
        Ok(buffer) => return of_buffer(buffer, None, what),
        Err(error) if error.is_instance_of::<PyTypeError>(object.py()) => {}
        Err(error) => {
            if let Some((element, bits)) = of_ml_dtypes(object) {
                let bits = object.call_method1(intern!(object.py(), "view"), (bits,));
                let bits = bits.and_then(|bits| PyUntypedBuffer::get(&bits));
                let bits = bits.map_err(|_| raised(what, error))?;
                return of_buffer(bits, Some(element), what);
            }
            if !error.is_instance_of::<PyBufferError>(object.py()) {
                return Err(raised(what, error));
            }
        }
    }
    of_dlpack_object(object, what)
}

fn raised(what: &str, source: PyErr) -> ArrayError {
    ArrayError::Raised { what: what.to_owned(), source }
}

/// What the elements of a NumPy array are whose buffer NumPy refuses to give, and the type of NumPy's that has the same bits.
fn of_ml_dtypes(object: &Bound<'_, PyAny>) -> Option<(ArrayDType, &'static str)> {
    let py = object.py();
    let name = object.getattr(intern!(py, "dtype")).and_then(|dtype| dtype.getattr(intern!(py, "name"))).ok()?;
    match name.extract::<String>().ok()?.as_str() {
        "bfloat16" => Some((ArrayDType::Known(DType::Stored(Format::BF16)), "uint16")),
        FLOAT8_E4M3FN => Some((ArrayDType::Stored(StorageDType::F8E4M3), "uint8")),
        _ => None,
    }
}

/// The bytes of a tensor of PyTorch whose elements are 8-bit floats, which its versions of before DLPack had them do not share.
fn bytes_of_torch<'py>(object: &Bound<'py, PyAny>) -> Option<Bound<'py, PyAny>> {
    let dtype = object.getattr(intern!(object.py(), "dtype")).and_then(|dtype| dtype.str()).ok()?;
    if dtype.to_string().strip_prefix("torch.") != Some(FLOAT8_E4M3FN) {
        return None;
    }
    // Whoever has such a tensor has imported the module.
    let byte = object.py().import("torch").and_then(|torch| torch.getattr("uint8")).ok()?;
    object.call_method1(intern!(object.py(), "view"), (byte,)).ok()
}

fn of_buffer(buffer: PyUntypedBuffer, element: Option<ArrayDType>, what: &str) -> Result<ForeignArray, ArrayError> {
    let size = buffer.item_size();
    let shape: Vec<i64> = buffer.shape().iter().map(|&n| n as i64).collect();
    let bytes: Vec<i64> = buffer.strides().iter().map(|&s| s as i64).collect();
    let strides: Vec<i64> = bytes.iter().map(|&s| s / size.max(1) as i64).collect();
    let wrong = |why| ArrayError::Places { what: what.to_owned(), shape: shape.clone(), strides: strides.clone(), why };
    if buffer.suboffsets().is_some() {
        return Err(wrong("its rows are behind pointers, and one piece of memory is wanted"));
    }
    if size == 0 || bytes.iter().any(|s| s % size as i64 != 0) {
        return Err(wrong("its neighbours are no whole number of elements apart"));
    }
    let element = element.map_or_else(|| of_format(buffer.format(), size), ForeignDType::Is);
    let (at, writable) = (buffer.buf_ptr().cast_const().cast(), !buffer.readonly());
    Ok(ForeignArray { at, element, shape, strides, writable, keeper: Keeper::Buffer(buffer) })
}

fn of_dlpack_object(object: &Bound<'_, PyAny>, what: &str) -> Result<ForeignArray, ArrayError> {
    let py = object.py();
    let not_an_array = || ArrayError::NotAnArray { what: what.to_owned(), given: type_name(object) };
    let ask = object.getattr(intern!(py, "__dlpack_device__")).map_err(|_| not_an_array())?;
    let device = ask.call0().and_then(|device| device.extract::<(i64, i64)>()).map_err(|e| raised(what, e))?;
    let (kind, id) = (device.0 as i32, device.1 as i32);
    if kind != abi::CPU && kind != abi::CUDA_HOST {
        return Err(ArrayError::Device { what: what.to_owned(), kind, id });
    }
    let give = object.getattr(intern!(py, "__dlpack__")).map_err(|_| not_an_array())?;
    let newest = PyDict::new(py);
    let version = (abi::VERSION.major, abi::VERSION.minor);
    newest.set_item(intern!(py, "max_version"), version).map_err(|e| raised(what, e))?;
    let capsule = match give.call((), Some(&newest)) {
        // Libraries of before DLPack 1 know no versions.
        Err(error) if error.is_instance_of::<PyTypeError>(py) => give.call0(),
        given => given,
    };
    match capsule {
        Ok(capsule) => of_capsule(&capsule, what),
        Err(error) => match bytes_of_torch(object) {
            // Bytes are shared, so that this is asked once.
            Some(bytes) => Ok(ForeignArray {
                element: ForeignDType::Is(ArrayDType::Stored(StorageDType::F8E4M3)),
                ..of_dlpack_object(&bytes, what)?
            }),
            None => Err(raised(what, error)),
        },
    }
}

fn type_name(object: &Bound<'_, PyAny>) -> String {
    object.get_type().name().map_or_else(|_| "?".into(), |name| name.to_string())
}

fn of_capsule(capsule: &Bound<'_, PyAny>, what: &str) -> Result<ForeignArray, ArrayError> {
    let wrong = |why: &str| ArrayError::Capsule { what: what.to_owned(), why: why.to_owned() };
    if let Some(at) = pointer(capsule, abi::VERSIONED) {
        let managed = at.cast::<DlpackVersioned>();
        // SAFETY: a capsule of this name holds this structure; its first field has been the version since there is one.
        let major = unsafe { managed.as_ref().version.major };
        if major != abi::VERSION.major {
            return Err(wrong(&format!("it is of DLPack {major}, and 1 is read")));
        }
        rename(capsule, abi::VERSIONED_USED, what)?;
        let keeper = Keeper::Versioned(managed);
        // SAFETY: the major version is the one whose layout is known, and the keeper holds the structure.
        let (view, flags) = unsafe { (&(*managed.as_ptr()).view, (*managed.as_ptr()).flags) };
        return Ok(of_view(view, flags & abi::READ_ONLY == 0, keeper));
    }
    let Some(at) = pointer(capsule, abi::PLAIN) else { return Err(wrong("`__dlpack__` gave no DLPack capsule")) };
    let managed = at.cast::<DlpackManaged>();
    rename(capsule, abi::PLAIN_USED, what)?;
    let keeper = Keeper::Plain(managed);
    // SAFETY: a capsule of this name holds this structure, and the keeper holds it.
    let view = unsafe { &(*managed.as_ptr()).view };
    // A plain capsule says nothing of writing: its makers let others write, or give none.
    Ok(of_view(view, true, keeper))
}

/// What a capsule holds, if it is one of this name.
fn pointer(capsule: &Bound<'_, PyAny>, name: &CStr) -> Option<NonNull<u8>> {
    // SAFETY: the object is alive; both calls take any object and look at its type first.
    unsafe {
        if ffi::PyCapsule_IsValid(capsule.as_ptr(), name.as_ptr()) == 0 {
            return None;
        }
        NonNull::new(ffi::PyCapsule_GetPointer(capsule.as_ptr(), name.as_ptr()).cast())
    }
}

/// Says that what the capsule held was taken: from now on it deletes nothing.
fn rename(capsule: &Bound<'_, PyAny>, name: &'static CStr, what: &str) -> Result<(), ArrayError> {
    // SAFETY: the object is a capsule, and the name lives as long as the program.
    if unsafe { ffi::PyCapsule_SetName(capsule.as_ptr(), name.as_ptr()) } != 0 {
        return Err(raised(what, PyErr::fetch(capsule.py())));
    }
    Ok(())
}

fn of_view(view: &DlpackTensor, writable: bool, keeper: Keeper) -> ForeignArray {
    let rank = usize::try_from(view.rank).unwrap_or(0);
    let list = |at: *const i64| match (at.is_null(), rank) {
        (false, 1..) => {
            // SAFETY: DLPack has as many numbers there as the view has dimensions.
            Some(unsafe { std::slice::from_raw_parts(at, rank) }.to_vec())
        }
        _ => None,
    };
    let shape = list(view.shape).unwrap_or_default();
    let strides = list(view.strides).unwrap_or_else(|| row_major(&shape));
    let at = view.data.cast_const().cast::<u8>();
    // The offset is the maker's; where there are no elements there may be no memory.
    let at = if shape.contains(&0) { at } else { at.wrapping_add(view.byte_offset as usize) };
    ForeignArray { at, element: of_dlpack(view.dtype), shape, strides, writable, keeper }
}

/// The type of elements that lie so.
fn array_type(dtype: DType, shape: &[i64], strides: &[i64]) -> Result<Type, &'static str> {
    let sizes = shape.iter().map(|&n| u32::try_from(n)).collect::<Result<Vec<u32>, _>>();
    let sizes = sizes.map_err(|_| "each size has to be below 2^32")?;
    let dense = Type::new(dtype, sizes.iter().map(|&n| Dim::Const(n)));
    // Strides of dimensions of size 1, and all where there is no element, say nothing.
    let empty = shape.contains(&0);
    let says = |(n, s): &(&i64, &i64)| !empty && **n != 1 && **s >= 0;
    let row = row_major(shape);
    if shape.iter().zip(strides).zip(&row).all(|((n, s), r)| empty || *n == 1 || s == r) {
        return Ok(dense);
    }
    if shape.iter().zip(strides).any(|(n, s)| *n != 1 && *s < 0) {
        return Err("its elements lie backwards: copy it");
    }
    let given = shape.iter().zip(strides).zip(&row).map(|(pair, r)| if says(&pair) { *pair.1 } else { *r });
    let given = given.map(u32::try_from).collect::<Result<Vec<u32>, _>>();
    let given = given.map_err(|_| "each stride has to be below 2^32 elements: copy it")?;
    let ty = Type { strides: Some(given), ..dense };
    ty.check().map_err(|_| "no array here has such sizes and strides: copy it")?;
    Ok(ty)
}
