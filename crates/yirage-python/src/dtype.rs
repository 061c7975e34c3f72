//! Element types as Python names them.

use crate::failure::{Class, PyFailure, PyOutcome};
use pyo3::prelude::*;
use yirage_dlpack::parse;
use yirage_ir::{DType, Format};

/// The name of a type of elements: a text, or one of `yirage`'s, NumPy's or PyTorch's types.
pub(crate) fn named(object: &Bound<'_, PyAny>) -> PyResult<String> {
    let attribute = |name| object.getattr(name).and_then(|value| value.extract::<String>()).ok();
    let texts = [object.extract::<String>().ok(), attribute("value"), attribute("name"), attribute("__name__")];
    match texts.into_iter().flatten().next() {
        Some(text) => Ok(text),
        None => Ok(object.str()?.to_string()),
    }
}

/// The element type that an object of Python means, as [`named`] has it.
///
/// # Errors
/// A `GraphError` that says what is taken.
pub(crate) fn of(object: &Bound<'_, PyAny>) -> PyOutcome<DType> {
    let text = named(object)?;
    parse(&text).ok_or_else(|| {
        let taken = "float32, float16, bfloat16 (and int32, uint32, bool for inputs that are no floats)";
        PyFailure::Ours(Class::Graph, format!("dtype {text}: no graph computes with it; {taken} are taken"))
    })
}

/// Its name; what NumPy has no name for keeps ours.
pub(crate) fn name(dtype: DType) -> String {
    yirage_dlpack::name_of(dtype).map_or_else(|| dtype.to_string(), str::to_owned)
}

/// The format of cached keys and values; none is what the model's weights and the precision say.
pub(crate) fn of_cache(name: &str) -> PyOutcome<Option<Format>> {
    match name {
        "auto" => Ok(None),
        "float32" | "f32" => Ok(Some(Format::F32)),
        "float16" | "f16" => Ok(Some(Format::F16)),
        "bfloat16" | "bf16" => Ok(Some(Format::BF16)),
        "q8_0" | "int8" => Ok(Some(Format::Q8_0)),
        other => {
            let taken = "'auto', 'float32', 'float16', 'bfloat16' and 'q8_0' are taken";
            Err(PyFailure::option(format!("kv_cache_dtype={other:?}: {taken}")))
        }
    }
}
