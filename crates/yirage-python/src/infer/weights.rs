//! Weights of an engine: those of its files, of other files, and of a state dict.

use crate::failure::{Class, Failure, Outcome};
use pyo3::prelude::*;
use pyo3::types::PyDict;
use std::sync::Arc;
use yirage_call::Array;
use yirage_dlpack::taken;
use yirage_hal::Record;
use yirage_ir::{DType, Dims, Format, Strided};
use yirage_model::{Checkpoint, GivenTensor};

/// The elements of an array, where they lie or gathered.
enum Elements {
    Shared(Array),
    Gathered(Record),
}

impl AsRef<[u8]> for Elements {
    fn as_ref(&self) -> &[u8] {
        match self {
            Elements::Shared(array) => array.bytes(),
            Elements::Gathered(record) => yirage_hal::HostMemory::bytes(record),
        }
    }
}

/// Tensors of a dict, by name. Those of names that `wanted` refuses are left out.
///
/// # Errors
/// An `ArrayError` for what is no array of floats.
pub(super) fn tensors(state: &Bound<'_, PyDict>, wanted: impl Fn(&str) -> bool) -> Outcome<Vec<GivenTensor>> {
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

fn tensor(name: String, array: Array) -> Outcome<GivenTensor> {
    let format = match array.ty().dtype {
        DType::Stored(format) => format,
        other => {
            let text =
                format!("state dict: `{name}` has elements of type {other}; float32, float16 or bfloat16 is wanted");
            return Err(Failure::Ours(Class::Array, text));
        }
    };
    let none = Dims::default();
    let shape: Vec<usize> = array.ty().shape.iter().map(|dim| dim.get(&none)).collect();
    let dense = Strided::of(array.ty()).is_some_and(|place| place.is_dense());
    let values = if dense { Elements::Shared(array) } else { Elements::Gathered(gathered(&array, &shape, format)) };
    Ok(GivenTensor { name, format, shape, values: Arc::new(values) })
}

/// The elements of a strided array, row-major.
fn gathered(array: &Array, shape: &[usize], format: Format) -> Record {
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
pub(super) fn given(path: &std::path::Path, tensors: Vec<GivenTensor>) -> Outcome<Checkpoint> {
    let mut checkpoint = Checkpoint::open(path)?;
    tensors.into_iter().try_for_each(|tensor| checkpoint.give(tensor))?;
    Ok(checkpoint)
}
