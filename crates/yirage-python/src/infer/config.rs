//! What a model's configuration says, for Python.

use crate::failure::PyOutcome;
use pyo3::prelude::*;
use pyo3::types::PyDict;
use yirage_ir::{DType, Format};
use yirage_model::{Checkpoint, RawConfig, StoredType};

/// The type of elements that the model's makers computed with, by Python's name: what the configuration says, else that of
/// the largest tensor; none where that is quantised.
fn dtype(config: &RawConfig, checkpoint: &Checkpoint) -> PyOutcome<Option<String>> {
    if let Some(name) = config.opt_str("dtype")? {
        return Ok(Some(name.to_owned()));
    }
    let largest = checkpoint.tensors().max_by_key(|tensor| tensor.elements());
    Ok(largest.and_then(|tensor| match tensor.dtype {
        StoredType::Format(format @ (Format::F32 | Format::F16 | Format::BF16)) => {
            Some(crate::dtype::name(DType::Stored(format)))
        }
        _ => None,
    }))
}

/// The configuration as the `yirage.infer.ModelConfig` that it becomes.
pub(super) fn model_config<'py>(
    py: Python<'py>,
    config: &RawConfig,
    checkpoint: &Checkpoint,
) -> PyOutcome<Bound<'py, PyAny>> {
    let text = serde_json::Value::Object(config.values().clone()).to_string();
    let values = py.import("json")?.call_method1("loads", (text,))?.cast_into::<PyDict>().map_err(PyErr::from)?;
    let dtype = match dtype(config, checkpoint)? {
        None => py.None().into_bound(py),
        Some(name) => {
            let known = py.import("yirage.dtypes")?.getattr("dtype")?.getattr("__members__")?;
            let member = known.call_method1("get", (&name,))?;
            if member.is_none() { name.into_pyobject(py)?.into_any() } else { member }
        }
    };
    values.set_item("dtype", dtype)?;
    Ok(py.import("yirage.infer")?.getattr("ModelConfig")?.call1((values,))?)
}
