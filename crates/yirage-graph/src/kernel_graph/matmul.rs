//! Products of matrices, and reductions.

use super::builder::{KernelGraph, KernelGraphResult, operands};
use yirage_ir::ValueId;
use yirage_ir::op::{Contract, Reduce, ReduceKind};

impl KernelGraph {
    /// `A [..., m, k] B [..., k, n] -> [..., m, n]`: the leading dimensions are the batch.
    ///
    /// # Errors
    /// Operands of different ranks, of less than two dimensions, with other leading dimensions than each other, with
    /// inner sizes that differ, or of different element types.
    pub fn matmul(&mut self, a: ValueId, b: ValueId) -> KernelGraphResult {
        self.common("matmul", &[a, b])?;
        let (x, y) = (self.ty("matmul", a)?, self.ty("matmul", b)?);
        let fits = match (&x.shape[..], &y.shape[..]) {
            ([left @ .., _, k], [right @ .., l, _]) => left == right && k == l,
            _ => false,
        };
        if !fits {
            let wanted = "[..., m, k] and [..., k, n] with equal leading dimensions wanted";
            return Err(operands("matmul", &[x, y], wanted));
        }
        self.op(Contract {}, &[a, b])
    }

    /// The sum along `dim`, which stays, of size 1. Dimensions are counted from the last one below 0, here and in the other
    /// operations.
    ///
    /// # Errors
    /// A dimension that A does not have.
    pub fn reduction(&mut self, a: ValueId, dim: i64) -> KernelGraphResult {
        let (dim, _) = self.along("reduction", a, dim)?;
        self.op(Reduce::new(ReduceKind::Sum, &[dim], true), &[a])
    }

    /// The largest along `dim`, which stays, of size 1; NaN where one is NaN, minus infinity of none.
    ///
    /// # Errors
    /// A dimension that A does not have.
    pub fn max(&mut self, a: ValueId, dim: i64) -> KernelGraphResult {
        let (dim, _) = self.along("max", a, dim)?;
        self.op(Reduce::new(ReduceKind::Max, &[dim], true), &[a])
    }
}
