//! Weights of an engine: those of its files, of other files, and of a state dict.

use crate::failure::{Class, PyFailure, PyOutcome};
use pyo3::prelude::*;
use pyo3::types::PyDict;
use std::sync::Arc;
use yirage_dlpack::taken;
use yirage_hal::Record;
use yirage_ir::{DType, Dims, Format, Strided};
use yirage_model::{Checkpoint, TensorOverride};
use yirage_plancache::HostArray;

/// The elements of an array, where they lie or gathered.
enum ArrayElements {
    Shared(HostArray),
    Gathered(Record),
}

impl AsRef<[u8]> for ArrayElements {
    fn as_ref(&self) -> &[u8] {
        match self {
            ArrayElements::Shared(array) => array.bytes(),
            ArrayElements::Gathered(record) => yirage_hal::HostMemory::bytes(record),
        }
    }
}

/// Tensors of a dict, by name. Those of names that `wanted` refuses are left out.
///
/// # Errors
/// An `ArrayError` for what is no array of floats.
pub(super) fn tensors(state: &Bound<'_, PyDict>, wanted: impl Fn(&str) -> bool) -> PyOutcome<Vec<TensorOverride>> {
    let mut given = Vec::with_capacity(state.len());
    for (name, value) in state.iter() {
        let name: String = name.extract()?;
        if !wanted(&name) {
            continue;
        }
        // A parameter of PyTorch is the data that is trained.
        let value = if value.hasattr("detach")? { value.call_method0("detach")? } else { value };
        given.push(tensor(name, taken(&value, "a tensor of the state dict")?)?);
    }
    Ok(given)
}

fn tensor(name: String, array: HostArray) -> PyOutcome<TensorOverride> {
    let format = match array.ty().dtype {
        DType::Stored(format) => format,
        other => {
            let text =
                format!("state dict: `{name}` has elements of type {other}; float32, float16 or bfloat16 is wanted");
            return Err(PyFailure::Ours(Class::Array, text));
        }
    };
    let none = Dims::default();
    let shape: Vec<usize> = array.ty().shape.iter().map(|dim| dim.get(&none)).collect();
    let dense = Strided::of(array.ty()).is_some_and(|place| place.is_dense());
    let values =
        if dense { ArrayElements::Shared(array) } else { ArrayElements::Gathered(gathered(&array, &shape, format)) };
    Ok(TensorOverride { name, format, shape, values: Arc::new(values) })
}

/// The elements of a strided array, row-major.
fn gathered(array: &HostArray, shape: &[usize], format: Format) -> Record {
    let width = format.info().bytes;
    let strides = array.ty().strides.clone().unwrap_or_default();
    let count = shape.iter().product::<usize>();
    let mut record = Record::zeroed(count * width);
    for (at, out) in record.bytes_mut().chunks_exact_mut(width).enumerate() {
        let (mut rest, mut place) = (at, 0usize);
        for (size, stride) in shape.iter().zip(&strides).rev() {
            place += rest % size * *stride as usize;
            rest /= size;
        }
        out.copy_from_slice(&array.bytes()[place * width..][..width]);
    }
    record
}

/// Has tensors stand for those of a model's files.
pub(super) fn open_with_tensors(path: &std::path::Path, tensors: Vec<TensorOverride>) -> PyOutcome<Checkpoint> {
    let mut checkpoint = Checkpoint::open(path)?;
    tensors.into_iter().try_for_each(|tensor| checkpoint.override_tensor(tensor))?;
    Ok(checkpoint)
}
