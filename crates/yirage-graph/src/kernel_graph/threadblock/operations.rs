//! Operations on tiles: those of kernel graphs, in the half in which their operands are.

use super::super::builder::{KernelGraph, sizes};
use super::super::error::GraphError;
use super::{BlockGraph, BlockGraphResult, BlockPhase, BlockValue, LoopAccumulation};
use yirage_ir::ValueId;

macro_rules! unary {
    ($($(#[$doc:meta])* $name:ident;)*) => {
        impl BlockGraph {
            $($(#[$doc])*
            ///
            /// # Errors
            #[doc = concat!("As those of [`KernelGraph::", stringify!($name), "`].")]
            pub fn $name(&mut self, a: BlockValue) -> BlockGraphResult {
                self.on(stringify!($name), &[a], |g, ids| g.$name(ids[0]))
            })*
        }
    };
}

unary! {
    /// `e^A`.
    exp;
    /// `A / (1 + e^-A)`.
    silu;
    /// `A / 2 (1 + erf(A / sqrt 2))`.
    gelu;
    /// `max(A, 0)`.
    relu;
    /// `A * A`.
    square;
    /// The square root.
    sqrt;
}

macro_rules! binary {
    ($($(#[$doc:meta])* $name:ident;)*) => {
        impl BlockGraph {
            $($(#[$doc])*
            ///
            /// # Errors
            #[doc = concat!("As those of [`KernelGraph::", stringify!($name), "`]; a value of the loop beside one that follows it.")]
            pub fn $name(&mut self, a: BlockValue, b: BlockValue) -> BlockGraphResult {
                self.on(stringify!($name), &[a, b], |g, ids| g.$name(ids[0], ids[1]))
            })*
        }
    };
}

binary! {
    /// `A + B`.
    add;
    /// `A - B`.
    sub;
    /// `A * B`.
    mul;
    /// `A / B`.
    div;
    /// `A [..., m, k] B [..., k, n] -> [..., m, n]`.
    matmul;
}

impl BlockGraph {
    /// `min(max(A, min_val), max_val)`.
    ///
    /// # Errors
    /// As those of [`KernelGraph::clamp`].
    pub fn clamp(&mut self, a: BlockValue, min_val: f32, max_val: f32) -> BlockGraphResult {
        self.on("clamp", &[a], |g, ids| g.clamp(ids[0], min_val, max_val))
    }

    /// `A * scalar`.
    ///
    /// # Errors
    /// As those of [`KernelGraph::mul_scalar`].
    pub fn mul_scalar(&mut self, a: BlockValue, scalar: f32) -> BlockGraphResult {
        self.on("mul_scalar", &[a], |g, ids| g.mul_scalar(ids[0], scalar))
    }

    /// The sum along `dim`, which stays, of size 1.
    ///
    /// # Errors
    /// As those of [`KernelGraph::reduction`].
    pub fn reduction(&mut self, a: BlockValue, dim: i64) -> BlockGraphResult {
        self.on("reduction", &[a], |g, ids| g.reduction(ids[0], dim))
    }

    /// `A / sqrt(mean(A^2))` along the last dimension.
    ///
    /// # Errors
    /// A value without dimensions.
    pub fn rms_norm(&mut self, a: BlockValue) -> BlockGraphResult {
        self.on("rms_norm", &[a], |g, ids| {
            let last = g.dims(ids[0])?.last().copied();
            g.rms_norm(ids[0], last.as_slice())
        })
    }

    /// `(A - mean) / sqrt(variance + eps)` along the last dimension. Mirage's graphs have no such operation.
    ///
    /// # Errors
    /// A value without dimensions, an `eps` that is negative or no number.
    pub fn layer_norm(&mut self, a: BlockValue, eps: f32) -> BlockGraphResult {
        self.on("layer_norm", &[a], |g, ids| {
            let last = g.dims(ids[0])?.last().copied();
            g.layer_norm(ids[0], last.as_slice(), None, None, eps)
        })
    }

    /// A and B one after the other along `dim`.
    ///
    /// # Errors
    /// As those of [`KernelGraph::concat`].
    pub fn concat(&mut self, a: BlockValue, b: BlockValue, dim: i64) -> BlockGraphResult {
        self.on("concat", &[a, b], |g, ids| g.concat(ids, dim))
    }

    /// The largest along `dim` in this iteration and all before it, and how much it has grown: what there was minus what
    /// there is, whose exponential rescales what was summed up so far (Milakov and Gimelshein, 2018). Minus infinity in
    /// the first iteration.
    ///
    /// # Errors
    /// A dimension that A does not have, and a value that follows the loop.
    pub fn reduction_max(&mut self, a: BlockValue, dim: i64) -> Result<(BlockValue, BlockValue), GraphError> {
        let id = self.looped("reduction_max", a)?;
        let tile = self.body.max(id, dim)?;
        let ty = self.body.ty("reduction_max", tile)?.clone();
        let before = self.body.new_input(&sizes(&ty), None, ty.dtype)?;
        let now = self.body.larger(before, tile)?;
        let grown = self.body.sub(before, now)?;
        self.accumulator(now, LoopAccumulation::Max, Some(before))?;
        let value = |id| BlockValue { half: BlockPhase::Loop, id };
        Ok((value(now), value(grown)))
    }

    /// An operation in the half of its operands.
    pub(super) fn on(
        &mut self,
        what: &'static str,
        ins: &[BlockValue],
        op: impl FnOnce(&mut KernelGraph, &[ValueId]) -> Result<ValueId, GraphError>,
    ) -> BlockGraphResult {
        let half = if ins.iter().any(|a| a.half == BlockPhase::After) { BlockPhase::After } else { BlockPhase::Loop };
        let ids = match half {
            BlockPhase::Loop => ins.iter().map(|a| a.id).collect::<Vec<_>>(),
            BlockPhase::After => ins.iter().map(|&a| self.after(what, a)).collect::<Result<_, _>>()?,
        };
        let graph = if half == BlockPhase::Loop { &mut self.body } else { &mut self.block };
        Ok(BlockValue { half, id: op(graph, &ids)? })
    }

    /// A value of the loop.
    pub(super) fn looped(&self, what: &'static str, a: BlockValue) -> Result<ValueId, GraphError> {
        if a.half == BlockPhase::Loop {
            return Ok(a.id);
        }
        let given = self.block.ty(what, a.id)?.to_string();
        let wanted = "a value of the loop; what follows an accumulator is made once".into();
        Err(GraphError::Operands { what, given, wanted })
    }
}
