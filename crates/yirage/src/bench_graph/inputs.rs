//! Numbers for a graph's inputs and weights, the same in each run.

use crate::failure::CliFailure;
use yirage_hal::Record;
use yirage_ir::tensor::Data;
use yirage_ir::{Dims, Graph, Tensor, Type, ValueSource, rng};
use yirage_plancache::HostArray;

/// Different numbers of an array, which then come again: a prime number, so that no row is like the next.
const PERIOD: usize = 65_537;

/// What a graph is run with.
pub(super) struct Arrays {
    /// Those of the weights, by name.
    pub(super) weights: Vec<(String, HostArray)>,
    /// Those of the step inputs, in the order of the graph.
    pub(super) step_inputs: Vec<HostArray>,
}

/// The arrays of all inputs.
///
/// Elements are odd multiples of 2^-7 from -1 to 1, divided by the power of two next to the root of how many are summed
/// up, so that no product leaves the range of f16.
///
/// # Errors
/// [`CliFailure::Call`] for a type that is no array's.
pub(super) fn arrays(graph: &Graph) -> Result<Arrays, CliFailure> {
    let mut arrays = Arrays { weights: Vec::new(), step_inputs: Vec::new() };
    for (number, &id) in graph.inputs.iter().enumerate() {
        let value = graph.value(id);
        let array = array(number as u64, &value.ty)?;
        match value.source {
            ValueSource::Weight => arrays.weights.push((value.name.clone(), array)),
            _ => arrays.step_inputs.push(array),
        }
    }
    Ok(arrays)
}

fn array(seed: u64, ty: &Type) -> Result<HostArray, CliFailure> {
    let dims = Dims::default();
    let inner = ty.shape.iter().rev().nth(1).map_or(1, |d| d.get(&dims));
    let scale = 2f32.powi(-7 - (inner.max(1).ilog2() / 2) as i32);
    let number = |i: usize| (2.0 * (rng::at(seed, i as u64) >> 57) as f32 - 127.0) * scale;
    let tensor = Tensor { dtype: ty.dtype, shape: vec![PERIOD], data: Data::F32((0..PERIOD).map(number).collect()) };
    let pattern = tensor.memory();
    let mut memory = Record::zeroed(ty.storage_bytes(&dims));
    for piece in memory.bytes_mut().chunks_mut(pattern.len()) {
        piece.copy_from_slice(&pattern[..piece.len()]);
    }
    Ok(HostArray::new(ty.clone(), memory)?)
}
