//! Arrays of the program as tensors of a kernel, read where they lie.

use super::shared::wrong;
use crate::failure::{Failure, Outcome};
use crate::others::{Answer, Foreign, Value};
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use std::sync::Arc;
use yirage_dlpack::{InPlace, Number};
use yirage_ir::Format;
use yirage_persistent::{Bytes, Elements, KernelTensor};

/// Mirage's argument of where a tensor is allocated.
pub(super) const CATEGORY: &[Foreign] = &[Foreign {
    name: "io_category",
    neutral: &[Value::Nothing, Value::Text("cuda_tensor")],
    answer: Answer::Refused("a kernel runs in one process, whose tensors are 'cuda_tensor'"),
}];

/// The type of a tensor's elements; what no tensor has is `Unsupported`.
fn elements_of(number: Number) -> Outcome<Elements> {
    match number {
        Number::F32 => Ok(Elements::Floats(Format::F32)),
        Number::F16 => Ok(Elements::Floats(Format::F16)),
        Number::BF16 => Ok(Elements::Floats(Format::BF16)),
        Number::I32 => Ok(Elements::Int32),
        Number::I64 => Ok(Elements::Int64),
        Number::U64 => Ok(Elements::parse(number.name())?),
    }
}

/// Elements where they lie.
struct Lying(Arc<InPlace>);

impl AsRef<[u8]> for Lying {
    fn as_ref(&self) -> &[u8] {
        // Only dense arrays are shared so.
        self.0.bytes().unwrap_or(&[])
    }
}

fn bytes(array: &Arc<InPlace>) -> Bytes {
    match array.bytes() {
        Some(_) => Bytes::of(Arc::new(Lying(array.clone()))),
        None => array.gathered().into(),
    }
}

/// The name of a type of elements, as NumPy, PyTorch or yirage has it.
pub(super) fn dtype_name(dtype: &Bound<'_, PyAny>) -> PyResult<String> {
    let attribute = |name| dtype.getattr(name).and_then(|value| value.extract::<String>()).ok();
    let texts = [dtype.extract::<String>().ok(), attribute("value"), attribute("name"), attribute("__name__")];
    match texts.into_iter().flatten().next() {
        Some(text) => Ok(text),
        None => Ok(dtype.str()?.to_string()),
    }
}

/// An array as a tensor of a kernel.
pub(super) fn tensor(array: &Arc<InPlace>, name: &str) -> Outcome<KernelTensor> {
    let dims: Option<Vec<u32>> = array.shape().iter().map(|&n| u32::try_from(n).ok()).collect();
    let too_large = || wrong(format!("attach_input: `{name}` is {:?}: sizes below 2^32 are wanted", array.shape()));
    let (dims, elements) = (dims.ok_or_else(too_large)?, elements_of(array.number())?);
    Ok(KernelTensor { dims, elements, data: Some(bytes(array)) })
}

/// The name that a tensor has to have.
pub(super) fn named<'a>(name: Option<&'a str>, what: &str) -> Outcome<&'a str> {
    name.ok_or_else(|| {
        Failure::Raised(PyTypeError::new_err(format!("{what}() missing 1 required argument: 'name' of the tensor")))
    })
}
