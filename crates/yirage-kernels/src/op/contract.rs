//! Contractions of two: an element of the result is one sum over k, in ascending order.

use super::PlanSite;
use super::output_words::words;
use super::placed_chain::{PlacedChain, value};
use crate::node_kernel::NodeKernel;
use yirage_hal::HalError;
use yirage_ir::Dim;
use yirage_ir::region::ElementExpr;
use yirage_kir::{KernelWriter, Register};

/// The kernel of a chain around a contraction: a thread makes a word of its output.
pub(crate) fn kernel(
    site: &PlanSite<'_>,
    placed: &PlacedChain,
    sides: &[ElementExpr; 2],
) -> Result<NodeKernel, HalError> {
    let ([a, b], chain) = (sides, &placed.chain);
    let k = a.shape.last().copied().ok_or_else(|| HalError::Load("a contraction of scalars".into()))?;
    words(site, "contract", &chain.out, placed.out, |scope| {
        let (left, right) = (placed.reads(scope, &a.reads), placed.reads(scope, &b.reads));
        let after = placed.reads(scope, &chain.after.reads);
        let k = scope.size(k);
        Ok(move |w: &mut KernelWriter, coordinates: &[Register]| {
            let (zero, from, step) = (w.f32(0.0), w.u32(0), w.u32(1));
            let sum = w.variable(zero);
            let (batch, position) = coordinates.split_at(coordinates.len() - 2);
            w.for_each(from, k, step, |w, at| {
                let row: Vec<Register> = batch_of(w, batch, &a.shape, [position[0], at]);
                let column: Vec<Register> = batch_of(w, batch, &b.shape, [at, position[1]]);
                let x = value(w, a, &[], &left, &row);
                let y = value(w, b, &[], &right, &column);
                let (product, so_far) = (w.mul(x, y), w.get(sum));
                let next = w.add(so_far, product);
                w.set(sum, next);
            });
            let result = w.get(sum);
            value(w, &chain.after, &[result], &after, coordinates)
        })
    })
}

/// The coordinates of a side: those of the result's batch that it has, 0 where it has one for all.
fn batch_of(w: &mut KernelWriter, batch: &[Register], shape: &[Dim], matrix: [Register; 2]) -> Vec<Register> {
    let own = shape.len() - 2;
    let zero = w.u32(0);
    let batch = batch[batch.len() - own..].iter().zip(shape);
    batch.map(|(&at, &dim)| if dim == Dim::Const(1) { zero } else { at }).chain(matrix).collect()
}
