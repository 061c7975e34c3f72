//! Accumulators: what a loop leaves.

use super::super::builder::sizes;
use super::super::error::GraphError;
use super::{BlockAccumulator, BlockGraph, BlockGraphResult, BlockPhase, BlockValue, LoopAccumulation};
use yirage_ir::expr::Func;
use yirage_ir::op::{Reduce, ReduceKind};
use yirage_ir::region::CONTINUED;
use yirage_ir::{Expr, ValueId};

/// What is made of the values that the iterations give, beside their sum.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ForloopAccum {
    /// The sum along the last dimension and over all iterations.
    Sum,
    /// The mean along the last dimension and over all iterations.
    Mean,
    /// The root of the mean of squares along the last dimension and over all iterations.
    Rms,
    /// The sum over all iterations, in which element j of the last dimension is added to element `j mod reduction_dimx`.
    SumToDimx,
}

impl BlockGraph {
    /// A over all iterations: summed up, or as `acc` says.
    ///
    /// A product of matrices is continued, and so is a reduction of a multiple of [`CONTINUED`] elements a tile: with the
    /// bits of the op on whole inputs. Other sums are added iteration by iteration.
    ///
    /// # Errors
    /// A value that follows the loop, one without dimensions where `acc` reduces the last, and a last dimension that is no
    /// multiple of `reduction_dimx` where it is reduced to that.
    pub fn forloop_accum(&mut self, a: BlockValue, acc: Option<ForloopAccum>) -> BlockGraphResult {
        let what = "forloop_accum";
        let id = self.looped(what, a)?;
        match acc {
            None => self.accumulated(id, LoopAccumulation::Sum),
            Some(ForloopAccum::Sum) => self.reduced(id, ReduceKind::Sum),
            Some(ForloopAccum::Mean) => self.reduced(id, ReduceKind::Mean),
            Some(ForloopAccum::Rms) => self.reduced(id, ReduceKind::MeanSquare),
            Some(ForloopAccum::SumToDimx) => {
                let value = self.sum_to_dimx(what, id)?;
                self.accumulated(value, LoopAccumulation::Sum)
            }
        }
    }

    /// What there is times B plus A, in each iteration but the first, whose A is taken as it is; plus the sum of A along
    /// its last dimension where `acc` is [`ForloopAccum::Sum`].
    ///
    /// # Errors
    /// Values that follow the loop, a B that does not broadcast to what is accumulated (which
    /// [`KernelGraph::customized`](super::super::KernelGraph::customized) says), another `acc`.
    pub fn forloop_accum_rescale(
        &mut self,
        a: BlockValue,
        b: BlockValue,
        acc: Option<ForloopAccum>,
    ) -> BlockGraphResult {
        let what = "forloop_accum_rescale";
        let (mut value, factor) = (self.looped(what, a)?, self.looped(what, b)?);
        match acc {
            None => {}
            Some(ForloopAccum::Sum) => value = self.reduce_last(what, value, ReduceKind::Sum)?.0,
            Some(other) => {
                let given = format!("{other:?}");
                return Err(GraphError::Argument { what, argument: "acc", given, wanted: "none or Sum" });
            }
        }
        self.accumulated(value, LoopAccumulation::Rescaled(factor))
    }

    /// The largest A of all iterations, element by element.
    ///
    /// # Errors
    /// A value that follows the loop.
    pub fn forloop_accum_max(&mut self, a: BlockValue) -> BlockGraphResult {
        let id = self.looped("forloop_accum_max", a)?;
        // What follows an iteration's largest so far is the largest of all: nothing more is kept of it.
        if let Some(known) =
            self.accumulators.iter().find(|known| known.value == id && known.how == LoopAccumulation::Max)
        {
            return Ok(BlockValue { half: BlockPhase::After, id: known.after });
        }
        self.accumulated(id, LoopAccumulation::Max)
    }

    pub(super) fn accumulator(
        &mut self,
        value: ValueId,
        how: LoopAccumulation,
        running: Option<ValueId>,
    ) -> Result<ValueId, GraphError> {
        let ty = self.body.ty("forloop_accum", value)?.clone();
        let after = self.block.new_input(&sizes(&ty), None, ty.dtype)?;
        self.accumulators.push(BlockAccumulator { value, how, after, running });
        Ok(after)
    }

    fn accumulated(&mut self, value: ValueId, how: LoopAccumulation) -> BlockGraphResult {
        Ok(BlockValue { half: BlockPhase::After, id: self.accumulator(value, how, None)? })
    }

    /// The last dimension reduced, with its size.
    fn reduce_last(&mut self, what: &'static str, id: ValueId, kind: ReduceKind) -> Result<(ValueId, u32), GraphError> {
        let (last, size) = self.body.along(what, id, -1)?;
        Ok((self.body.op(Reduce::new(kind, &[last], true), &[id])?, size))
    }

    /// A reduction of the last dimension and over all iterations.
    fn reduced(&mut self, id: ValueId, kind: ReduceKind) -> BlockGraphResult {
        let what = "forloop_accum";
        let loops = self.forloop_range;
        let dims = self.body.dims(id)?;
        let last = dims.last().copied();
        if loops == 1 || last.is_some_and(|n| n.is_multiple_of(CONTINUED as u32)) {
            let (value, _) = self.reduce_last(what, id, kind)?;
            let after = self.accumulated(value, LoopAccumulation::Continue)?;
            return if kind == ReduceKind::MeanSquare { self.sqrt(after) } else { Ok(after) };
        }
        let elements = if kind == ReduceKind::MeanSquare { self.body.square(id)? } else { id };
        let (value, size) = self.reduce_last(what, elements, ReduceKind::Sum)?;
        let after = self.accumulated(value, LoopAccumulation::Sum)?;
        let mean = 1.0 / (f64::from(size) * f64::from(loops)) as f32;
        match kind {
            ReduceKind::Sum => Ok(after),
            ReduceKind::Mean => self.mul_scalar(after, mean),
            _ => {
                let scaled = Expr::call(Func::Mul, &[Expr::input(0), Expr::constant(mean)]);
                let root = Expr::call(Func::Sqrt, &[scaled]);
                self.on(what, &[after], |g, ids| g.map(what, root, ids))
            }
        }
    }

    /// The last dimension summed to the width that the graph has for it.
    fn sum_to_dimx(&mut self, what: &'static str, id: ValueId) -> Result<ValueId, GraphError> {
        let dims = self.body.dims(id)?;
        let width = self.reduction_dimx;
        let Some((&last, outer)) = dims.split_last().filter(|(last, _)| last.is_multiple_of(width)) else {
            let given = self.body.ty(what, id)?.to_string();
            let wanted = format!("a last dimension that is a multiple of reduction_dimx, {width}");
            return Err(GraphError::Operands { what, given, wanted });
        };
        let folded = [outer, &[last / width, width]].concat();
        let folded = self.body.reshaped(what, id, &folded)?;
        self.body.op(Reduce::new(ReduceKind::Sum, &[outer.len() as u32], false), &[folded])
    }
}
