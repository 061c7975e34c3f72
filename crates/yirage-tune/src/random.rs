//! A graph with made-up inputs, the same ones for the same types.

use crate::error::TuneError;
use crate::prepared::PreparedGraph;
use std::sync::Arc;
use yirage_compile::CompileOptions;
use yirage_hal::Record;
use yirage_ir::rng::Rng;
use yirage_ir::{DType, Dims, Format, Graph, Type, ValueId, ValueSource};

/// `graph` with floats between -1 and 1, whole numbers 0 and bools that take turns.
///
/// # Errors
/// [`TuneError::NoValues`]: states, stored formats that are only decoded, sizes that no memory has.
pub fn prepared(graph: &Graph, dims: Dims, options: &CompileOptions) -> Result<PreparedGraph, TuneError> {
    let mut rng = Rng::new(1);
    let (mut weights, mut step_inputs) = (Vec::new(), Vec::new());
    for &id in &graph.inputs {
        let value = graph.value(id);
        match value.source {
            ValueSource::StepInput => {
                step_inputs.push((value.name.clone(), Arc::new(Record::of(&bytes(graph, id, &dims, &mut rng)?))))
            }
            ValueSource::Weight => weights.push((value.name.clone(), bytes(graph, id, &dims, &mut rng)?)),
            ValueSource::KvCache | ValueSource::Node { .. } => {
                return Err(refused(graph, id, "what a state holds has no meaning without the steps that filled it"));
            }
        }
    }
    Ok(PreparedGraph { graph: graph.clone(), weights, step_inputs, cache: None, dims, options: options.clone() })
}

fn refused(graph: &Graph, id: ValueId, why: &str) -> TuneError {
    let value = graph.value(id);
    TuneError::NoValues { name: value.name.clone(), ty: value.ty.clone(), why: why.into() }
}

fn bytes(graph: &Graph, id: ValueId, dims: &Dims, rng: &mut Rng) -> Result<Vec<u8>, TuneError> {
    let ty: &Type = graph.ty(id);
    let held = ty.checked_storage_elems(dims).ok_or_else(|| refused(graph, id, "its sizes are no number"))?;
    Ok(match ty.dtype {
        DType::I32 | DType::U32 => vec![0; held.saturating_mul(4)],
        DType::Bool => (0..held).map(|i| (i % 2) as u8).collect(),
        DType::I8 => return Err(refused(graph, id, "codes without their scales are no numbers")),
        DType::Stored(Format::F32) => (0..held).flat_map(|_| rng.signed_f32().to_le_bytes()).collect(),
        DType::Stored(format) => {
            let encode = format.info().encode.ok_or_else(|| refused(graph, id, "its format is only decoded"))?;
            let values: Vec<f32> = (0..held).map(|_| rng.signed_f32()).collect();
            let mut bytes = vec![0; ty.storage_bytes(dims)];
            encode(&values, &mut bytes);
            bytes
        }
    })
}
