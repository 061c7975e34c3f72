//! Numbers for a graph's inputs and weights, the same in each run.

use crate::failure::Failure;
use yirage_call::Array;
use yirage_hal::Record;
use yirage_ir::tensor::Data;
use yirage_ir::{Dims, Graph, Tensor, Type, ValueId, rng};

/// Different numbers of an array, which then come again: a prime number, so that no row is like the next.
const PERIOD: usize = 65_537;

/// Arrays of a graph's inputs, weights and slots, by name.
///
/// Elements are odd multiples of 2^-7 from -1 to 1, divided by the power of two next to the root of how many are summed
/// up, so that no product leaves the range of f16.
///
/// # Errors
/// [`Failure::Call`] for a type that is no array's.
pub(super) fn arrays(graph: &Graph) -> Result<Vec<(String, Array)>, Failure> {
    let one = |(number, &id): (usize, &ValueId)| {
        let value = graph.value(id);
        Ok((value.name.clone(), array(number as u64, &value.ty)?))
    };
    graph.inputs.iter().enumerate().map(one).collect()
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
