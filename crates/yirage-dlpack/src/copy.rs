//! Copies of arrays of other libraries, of any type that is stored.

use crate::dtype::ForeignDType;
use crate::error::ArrayError;
use crate::foreign_array::row_major;
use crate::import::read_array;
use crate::memory::Owned;
use crate::tensor::{PyTensor, counted};
use pyo3::prelude::*;
use std::sync::Arc;

/// A copy of a dense array of any type that is stored; `what` says in errors which argument it is.
///
/// # Errors
/// [`ArrayError`]: an object that is no array, elements of another type, memory of a device, and elements that lie
/// otherwise.
pub fn copied(object: &Bound<'_, PyAny>, what: &str) -> Result<PyTensor, ArrayError> {
    let found = match object.cast::<PyTensor>() {
        Ok(tensor) => tensor.get().as_foreign(),
        Err(_) => read_array(object, what)?,
    };
    let element = match found.element {
        ForeignDType::Is(element) => element,
        ForeignDType::Other(given) => return Err(ArrayError::Stored { what: what.to_owned(), given }),
    };
    let wrong = |why| ArrayError::Places {
        what: what.to_owned(),
        shape: found.shape.clone(),
        strides: found.strides.clone(),
        why,
    };
    let bytes = counted(found.shape.iter().map(|&n| usize::try_from(n).ok()), element);
    let bytes = bytes.ok_or_else(|| wrong("its sizes are no number of elements"))?;
    let mut lies = found.shape.iter().zip(&found.strides).zip(row_major(&found.shape));
    if bytes > 0 && !lies.all(|((n, s), r)| *n == 1 || *s == r) {
        return Err(wrong("dense row-major elements are copied: make it contiguous"));
    }
    let copy = match bytes {
        0 => Owned::of(&[]),
        // SAFETY: the elements lie without gaps from here on, as many as the sizes say, and the keeper keeps them.
        _ => Owned::of(unsafe { std::slice::from_raw_parts(found.at, bytes) }),
    };
    Ok(PyTensor::dense_in(element, found.shape.iter().map(|&n| n as isize).collect(), Arc::new(copy)))
}
