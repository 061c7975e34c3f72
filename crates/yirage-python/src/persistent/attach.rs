//! Arrays of the program as tensors of a kernel, read where they lie.

use super::shared::wrong;
use crate::failure::{PyFailure, PyOutcome};
use crate::others::{ArgumentReply, ArgumentValue, ForeignArgument};
use pyo3::exceptions::PyTypeError;
use std::sync::Arc;
use yirage_dlpack::{InPlace, Number};
use yirage_ir::Format;
use yirage_persistent::{KernelDType, KernelTensor, SharedBytes};

/// Mirage's argument of where a tensor is allocated.
pub(super) const CATEGORY: &[ForeignArgument] = &[ForeignArgument {
    name: "io_category",
    neutral: &[ArgumentValue::Nothing, ArgumentValue::Text("cuda_tensor")],
    answer: ArgumentReply::Refused(ONE_PROCESS),
}];

/// The same of a kernel that is one of several ranks: they share the memory of their process.
pub(super) const CATEGORY_OF_RANKS: &[ForeignArgument] = &[ForeignArgument {
    name: "io_category",
    neutral: &[ArgumentValue::Nothing, ArgumentValue::Text("cuda_tensor"), ArgumentValue::Text("nvshmem_tensor")],
    answer: ArgumentReply::Refused(ONE_PROCESS),
}];

const ONE_PROCESS: &str =
    "a kernel runs in one process, whose tensors are 'cuda_tensor'; 'nvshmem_tensor' is the same where there are ranks";

/// The type of a tensor's elements; what no tensor has is `Unsupported`.
fn elements_of(number: Number) -> PyOutcome<KernelDType> {
    match number {
        Number::F32 => Ok(KernelDType::Floats(Format::F32)),
        Number::F16 => Ok(KernelDType::Floats(Format::F16)),
        Number::BF16 => Ok(KernelDType::Floats(Format::BF16)),
        Number::F8E4M3 => Ok(KernelDType::Float8E4M3),
        Number::I32 => Ok(KernelDType::Int32),
        Number::I64 => Ok(KernelDType::Int64),
        Number::U64 | Number::U8 => Ok(KernelDType::parse(number.name())?),
    }
}

/// The same where the caller says what bytes stand for.
fn elements_as(number: Number, wanted: KernelDType, name: &str) -> PyOutcome<KernelDType> {
    if (number, wanted) == (Number::U8, KernelDType::Float8E4M3) {
        return Ok(wanted);
    }
    let own = elements_of(number)?;
    if own == wanted {
        return Ok(own);
    }
    let text = format!(
        "attach_input: dtype={wanted}: `{name}` is {own}, and only uint8 stands for another type, {}: convert it",
        KernelDType::Float8E4M3
    );
    Err(wrong(text))
}

/// Elements where they lie.
struct InPlaceBytes(Arc<InPlace>);

impl AsRef<[u8]> for InPlaceBytes {
    fn as_ref(&self) -> &[u8] {
        // Only dense arrays are shared so.
        self.0.bytes().unwrap_or(&[])
    }
}

fn bytes(array: &Arc<InPlace>) -> SharedBytes {
    match array.bytes() {
        Some(_) => SharedBytes::of(Arc::new(InPlaceBytes(array.clone()))),
        None => array.gathered().into(),
    }
}

/// An array as a tensor of a kernel, of the type that its elements have or stand for.
pub(super) fn tensor(array: &Arc<InPlace>, name: &str, stands: Option<KernelDType>) -> PyOutcome<KernelTensor> {
    let dims: Option<Vec<u32>> = array.shape().iter().map(|&n| u32::try_from(n).ok()).collect();
    let too_large = || wrong(format!("attach_input: `{name}` is {:?}: sizes below 2^32 are wanted", array.shape()));
    let dims = dims.ok_or_else(too_large)?;
    let number = array.number();
    let elements = stands.map_or_else(|| elements_of(number), |wanted| elements_as(number, wanted, name))?;
    Ok(KernelTensor { dims, elements, data: Some(bytes(array)) })
}

/// The name that a tensor has to have.
pub(super) fn named<'a>(name: Option<&'a str>, what: &str) -> PyOutcome<&'a str> {
    name.ok_or_else(|| {
        PyFailure::Raised(PyTypeError::new_err(format!("{what}() missing 1 required argument: 'name' of the tensor")))
    })
}
