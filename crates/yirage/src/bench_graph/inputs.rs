//! Numbers for a graph's inputs and weights, the same in each run.

use crate::failure::Failure;
use yirage_call::Array;
use yirage_hal::Record;
use yirage_ir::tensor::Data;
use yirage_ir::{Dims, Graph, Source, Tensor, Type, rng};

/// Different numbers of an array, which then come again: a prime number, so that no row is like the next.
const PERIOD: usize = 65_537;

/// What a graph is run with.
pub(super) struct Arrays {
    /// Those of the weights, by name.
    pub(super) weights: Vec<(String, Array)>,
    /// Those of the slots, in the order of the graph.
    pub(super) slots: Vec<Array>,
}

/// The arrays of all inputs.
///
/// Elements are odd multiples of 2^-7 from -1 to 1, divided by the power of two next to the root of how many are summed
/// up, so that no product leaves the range of f16.
///
/// # Errors
/// [`Failure::Call`] for a type that is no array's.
pub(super) fn arrays(graph: &Graph) -> Result<Arrays, Failure> {
    let mut arrays = Arrays { weights: Vec::new(), slots: Vec::new() };
    for (number, &id) in graph.inputs.iter().enumerate() {
        let value = graph.value(id);
        let array = array(number as u64, &value.ty)?;
        match value.source {
            Source::Weight => arrays.weights.push((value.name.clone(), array)),
            _ => arrays.slots.push(array),
        }
    }
    Ok(arrays)
}

fn array(seed: u64, ty: &Type) -> Result<Array, Failure> {
    let dims = Dims::default();
    let inner = ty.shape.iter().rev().nth(1).map_or(1, |d| d.get(&dims));
    let scale = 2f32.powi(-7 - (inner.max(1).ilog2() / 2) as i32);
    let number = |i: usize| (2.0 * (rng::at(seed, i as u64) >> 57) as f32 - 127.0) * scale;
    let tensor = Tensor { dtype: ty.dtype, shape: vec![PERIOD], data: Data::F32((0..PERIOD).map(number).collect()) };
    let pattern = tensor.memory();
    let mut memory = Record::zeroed(ty.held_bytes(&dims));
    for piece in memory.bytes_mut().chunks_mut(pattern.len()) {
        piece.copy_from_slice(&pattern[..piece.len()]);
    }
    Ok(Array::new(ty.clone(), memory)?)
}
