//! Test mode: what layers write, as tensors, and in the arrays that were attached.

use super::shared::{SharedKernel, wrong};
use crate::failure::{Class, PyFailure, PyOutcome};
use std::sync::PoisonError;
use yirage_dlpack::InPlace;
use yirage_ir::{DType, Dim, Type};
use yirage_persistent::{AppendedRows, KernelBuilder, TestOutput, TestPass, TestValues};

/// Runs all layers once: name, type and elements of each output.
pub(super) fn run(shared: &SharedKernel, builder: &mut KernelBuilder) -> PyOutcome<Vec<(String, Type, Vec<u8>)>> {
    let attached = shared.attached.lock().unwrap_or_else(PoisonError::into_inner);
    // What does not lie densely was copied: its owner may have written since, and a layer of the run before.
    for (&id, array) in attached.iter().filter(|(_, array)| array.bytes().is_none()) {
        builder.set_elements(id, array.gathered().into())?;
    }
    let TestPass { outputs, appended } = builder.run_test_pass(&shared.device)?;
    for rows in &appended {
        attached.get(&rows.cache).map_or(Ok(()), |array| append(array, rows))?;
    }
    let shown = |output: TestOutput| {
        let array = builder.find(&output.name).and_then(|id| attached.get(&id));
        array.map_or(Ok(()), |array| write(array, &output))?;
        shown(output)
    };
    outputs.into_iter().map(shown).collect()
}

/// Writes rows into a cache, each at its place.
fn append(array: &InPlace, rows: &AppendedRows) -> PyOutcome<()> {
    let mut all = rows.places.iter().zip(rows.values.chunks_exact(rows.width.max(1)));
    let took = all
        .all(|(place, row)| row.iter().enumerate().all(|(at, &value)| array.set_float(place * rows.width + at, value)));
    if took {
        return Ok(());
    }
    let text = format!(
        "tensor `{}` is {} {:?}: a layer appends floats to this cache, and it did not take them: copy what must not be written",
        rows.name,
        array.number().name(),
        array.shape()
    );
    Err(PyFailure::Ours(Class::Array, text))
}

fn write(array: &InPlace, output: &TestOutput) -> PyOutcome<()> {
    let took = match &output.values {
        TestValues::Floats(values) => values.iter().enumerate().all(|(at, &value)| array.set_float(at, value)),
        TestValues::Ints(values) => values.iter().enumerate().all(|(at, &value)| array.set_int(at, value)),
    };
    if took {
        return Ok(());
    }
    let what = match output.values {
        TestValues::Floats(_) => "floats",
        TestValues::Ints(_) => "whole numbers",
    };
    let (name, dims, number) = (&output.name, &output.dims, array.number().name());
    let text = format!(
        "tensor `{name}` is {number} {:?}: a layer writes {what} {dims:?} into it, and it did not take them",
        array.shape()
    );
    Err(PyFailure::Ours(Class::Array, text))
}

fn shown(output: TestOutput) -> PyOutcome<(String, Type, Vec<u8>)> {
    let TestOutput { name, dims, values } = output;
    let (dtype, bytes) = match values {
        TestValues::Floats(values) => (DType::F32, values.iter().flat_map(|x| x.to_ne_bytes()).collect()),
        TestValues::Ints(values) => {
            let too_large = |value: i64| wrong(format!("run_test_mode: `{name}` has {value}, which is no int32"));
            let values = values.into_iter().map(|value| i32::try_from(value).map_err(|_| too_large(value)));
            let values = values.collect::<PyOutcome<Vec<i32>>>()?;
            (DType::I32, values.iter().flat_map(|x| x.to_ne_bytes()).collect())
        }
    };
    Ok((name, Type::new(dtype, dims.iter().map(|&n| Dim::Const(n))), bytes))
}
