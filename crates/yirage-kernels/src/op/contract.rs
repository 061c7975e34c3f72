//! Contractions of two: an element of the result is one sum over k, in ascending order.

use super::PlanSite;
use super::output_words::words;
use super::placed_chain::{ChainReads, PlacedChain, core_result, value};
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
    let k = contracted(sides)?;
    words(site, "contract", &chain.out, placed.out, |scope| {
        let reads = [placed.reads(scope, &a.reads), placed.reads(scope, &b.reads)];
        let after = placed.reads(scope, &chain.after.reads);
        let products = SumOfProducts { sides, reads, k: scope.size(k) };
        Ok(move |w: &mut KernelWriter, coordinates: &[Register]| {
            let zero = w.f32(0.0);
            let sum = products.behind(w, coordinates, zero);
            let result = core_result(w, chain, sum);
            value(w, &chain.after, &[result], &after, coordinates)
        })
    })
}

/// What two sides are summed over.
pub(crate) fn contracted(sides: &[ElementExpr; 2]) -> Result<Dim, HalError> {
    sides[0].shape.last().copied().ok_or_else(|| HalError::Load("a contraction of scalars".into()))
}

/// The products that an element of a contraction is the sum of.
pub(crate) struct SumOfProducts<'a> {
    pub(crate) sides: &'a [ElementExpr; 2],
    /// What each side reads.
    pub(crate) reads: [ChainReads; 2],
    /// How many there are.
    pub(crate) k: Register,
}

impl SumOfProducts<'_> {
    /// The sum of the products of the element at these coordinates, one after the other, behind what there is already.
    pub(crate) fn behind(&self, w: &mut KernelWriter, coordinates: &[Register], so_far: Register) -> Register {
        let ([a, b], [left, right]) = (self.sides, &self.reads);
        let (from, step) = (w.u32(0), w.u32(1));
        let sum = w.variable(so_far);
        let (batch, position) = coordinates.split_at(coordinates.len() - 2);
        w.for_each(from, self.k, step, |w, at| {
            let row: Vec<Register> = batch_of(w, batch, &a.shape, [position[0], at]);
            let column: Vec<Register> = batch_of(w, batch, &b.shape, [at, position[1]]);
            let x = value(w, a, &[], left, &row);
            let y = value(w, b, &[], right, &column);
            let (product, so_far) = (w.mul(x, y), w.get(sum));
            let next = w.add(so_far, product);
            w.set(sum, next);
        });
        w.get(sum)
    }
}

/// The coordinates of a side: those of the result's batch that it has, 0 where it has one for all.
fn batch_of(w: &mut KernelWriter, batch: &[Register], shape: &[Dim], matrix: [Register; 2]) -> Vec<Register> {
    let own = shape.len() - 2;
    let zero = w.u32(0);
    let batch = batch[batch.len() - own..].iter().zip(shape);
    batch.map(|(&at, &dim)| if dim == Dim::Const(1) { zero } else { at }).chain(matrix).collect()
}
