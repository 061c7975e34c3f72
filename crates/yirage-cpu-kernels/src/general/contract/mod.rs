//! Products of matrices, a batch of them, of any strides and float type.
//!
//! `y[i, j] = sum_l a[i, l] * b[l, j]`, each element one chain of f32 fused multiply-adds over l, ascending, from 0,
//! rounded once to the type that it is stored as. Which tile, block, level or worker an element falls to changes no bit.
//! Programs
//! ([`Fused`]) change elements of a or b while they are packed, and elements of y before they are stored.

mod finish;
mod float;
mod magnitudes;
mod pack;
mod pairs;
mod prepacked;
mod run;
mod split;
mod tile;

use super::{ComputeType, Elem, ElementProgram, LoopSizes, OperandError, StridedInput, StridedOutput, Strides};
use crate::isa::Isa;
use prepacked::PrepackedRhs;
use split::{ContractStrategy, ContractTiling, FEW, FEW_WIDE};
use std::ops::Range;
use thiserror::Error;

pub use prepacked::{RhsPacking, packed_rhs_floats};

/// An element-wise program that elements go through on their way, held as f32 in the first cache levels.
#[derive(Clone, Copy)]
pub struct Fused<'a> {
    /// Its input 0 is the element: of an operand's float type, or of the product's result, an f32 that nothing has rounded.
    pub program: &'a ElementProgram,
    /// Its other inputs, with strides as the operand's.
    pub others: &'a [StridedInput],
}

/// A product, as it is asked for.
#[derive(Clone, Copy)]
pub struct BatchMatmul<'a> {
    /// Sizes of the batch, which all strides begin with.
    pub batch: &'a [usize],
    /// Rows of a and of y.
    pub m: usize,
    /// Columns of a, rows of b.
    pub k: usize,
    /// Columns of b and of y.
    pub n: usize,
    /// Strides along the batch, m and k.
    pub a: StridedInput,
    /// Strides along the batch, k and n.
    pub b: StridedInput,
    /// Strides along the batch, m and n.
    pub out: StridedOutput,
    /// Makes the left side of a's elements.
    pub left: Option<Fused<'a>>,
    /// Makes the right side of b's elements.
    pub right: Option<Fused<'a>>,
    /// Makes what is stored of the product's elements.
    pub after: Option<Fused<'a>>,
    /// Whether the sums go on from what the result's elements are, which are f32 that nothing makes others of: the chains
    /// of additions of several products are one then.
    pub goes_on: bool,
    /// How many workers share it.
    pub workers: usize,
}

/// Why a product cannot be computed.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Error)]
pub enum ContractError {
    /// The sizes are too many, or too large.
    #[error(transparent)]
    Sizes(#[from] OperandError),
    /// An operand without a stride for each dimension, or with more.
    #[error("{operand} has {strides} strides: {wanted} are wanted, the batch's and those of a matrix")]
    Strides {
        /// Which one.
        operand: &'static str,
        /// How many it has.
        strides: usize,
        /// How many are wanted.
        wanted: usize,
    },
    /// An operand of whole numbers.
    #[error("elements of {0} are {1:?}: floats are wanted")]
    NoFloat(&'static str, Elem),
    /// Sums that go on from elements which are no sums.
    #[error("sums that go on from {0:?}, or from what a program makes of sums: plain f32 is wanted")]
    GoesOn(Elem),
    /// A program that is not one of the operand's elements, or of sums as f32, and its other inputs.
    #[error("the program of {0} does not fit its inputs, the elements of {0} the first of them, or its result")]
    Program(&'static str),
}

impl BatchMatmul<'_> {
    /// Checks sizes, strides and types.
    fn check(&self) -> Result<(), ContractError> {
        let BatchMatmul { batch, m, k, n, .. } = *self;
        for matrix in [[m, k], [k, n], [m, n]] {
            LoopSizes::new(&[batch, &matrix].concat())?;
        }
        let stored = if self.after.is_some() { Elem::F32 } else { self.out.elem };
        for (operand, elem, strides) in [
            ("a", self.a.elem, self.a.strides),
            ("b", self.b.elem, self.b.strides),
            ("the result", stored, self.out.strides),
        ] {
            if elem.compute_type() != ComputeType::Float {
                return Err(ContractError::NoFloat(operand, elem));
            }
            self.check_strides(operand, &strides)?;
        }
        if self.goes_on && (self.out.elem != Elem::F32 || self.after.is_some()) {
            return Err(ContractError::GoesOn(self.out.elem));
        }
        self.check_fused("a", self.left, self.a.elem, ComputeType::Float)?;
        self.check_fused("b", self.right, self.b.elem, ComputeType::Float)?;
        self.check_fused("the result", self.after, Elem::F32, self.out.elem.compute_type())
    }

    fn check_strides(&self, operand: &'static str, strides: &Strides) -> Result<(), ContractError> {
        let (strides, wanted) = (strides.as_slice().len(), self.batch.len() + 2);
        if strides == wanted { Ok(()) } else { Err(ContractError::Strides { operand, strides, wanted }) }
    }

    fn check_fused(
        &self,
        operand: &'static str,
        fused: Option<Fused<'_>>,
        of: Elem,
        result: ComputeType,
    ) -> Result<(), ContractError> {
        let Some(Fused { program, others }) = fused else { return Ok(()) };
        let given = others.iter().map(|x| x.elem);
        if !program.inputs().iter().copied().eq(std::iter::once(of).chain(given))
            || program.result().compute_type() != result
        {
            return Err(ContractError::Program(operand));
        }
        others.iter().try_for_each(|x| self.check_strides(operand, &x.strides))
    }
}

/// A product that has been checked and cut into pieces.
pub struct Contract<'a> {
    matmul: BatchMatmul<'a>,
    /// Dimensions of the batch that are left when those that go on as rows are folded.
    rank: usize,
    /// Rows of a and of the result with what is folded.
    m: usize,
    /// Which stride is that from row to row of a and of the result.
    down: usize,
    split: ContractTiling,
    /// The right side, where it was packed before.
    prepacked: Option<PrepackedRhs<'a>>,
}

impl<'a> Contract<'a> {
    /// Checks the product and cuts it for a level. How it is cut changes no bit.
    ///
    /// # Errors
    /// [`ContractError`].
    pub fn new(isa: Isa, product: BatchMatmul<'a>) -> Result<Contract<'a>, ContractError> {
        product.check()?;
        let BatchMatmul { batch, m, n, .. } = product;
        let rank = batch.len();
        let split = ContractTiling::new(ContractStrategy::Packed, 0, 0, 0, 1);
        let mut contract = Contract { matmul: product, rank, m, down: rank, split, prepacked: None };
        contract.fold();
        let wide = contract.has_pairs(isa) && product.b.elem == Elem::F32;
        let streams = contract.lies_in_rows() && contract.m <= if wide { FEW_WIDE } else { FEW };
        let way = if streams { ContractStrategy::Stream } else { ContractStrategy::Packed };
        contract.split = ContractTiling::new(way, contract.matrices(), contract.m, n, product.workers);
        Ok(contract)
    }

    /// Matrices that are left when those that go on as rows are folded.
    fn matrices(&self) -> usize {
        self.matmul.batch[..self.rank].iter().product()
    }

    /// Whether b can be read as it lies, row by row.
    fn lies_in_rows(&self) -> bool {
        let BatchMatmul { batch, b, right, .. } = self.matmul;
        b.strides.as_slice()[batch.len() + 1] == 1 && right.is_none()
    }

    /// Whether pairs of its elements may be multiplied at once. A weight of bf16 numbers may be held as f32.
    fn has_pairs(&self, isa: Isa) -> bool {
        let BatchMatmul { a, b, left, .. } = self.matmul;
        let a = left.map_or(a.elem, |made| made.program.result());
        pairs::are_multiplied(isa) && a == Elem::BF16 && matches!(b.elem, Elem::BF16 | Elem::F32)
    }

    /// Whether a piece begins with pairs: what is read as it lies has to be bf16 in memory.
    fn begins_in_pairs(&self, isa: Isa) -> bool {
        self.has_pairs(isa) && (self.split.strategy == ContractStrategy::Packed || self.matmul.b.elem == Elem::BF16)
    }

    /// Makes one matrix of those that the innermost dimensions of the batch multiply with the same right side.
    fn fold(&mut self) {
        let BatchMatmul { batch, a, b, out, left, right, after, .. } = self.matmul;
        let others = |fused: Option<Fused<'a>>| fused.map_or(&[][..], |f| f.others).iter().map(|x| x.strides);
        while let Some(last) = self.rank.checked_sub(1) {
            // A step from the last row of a matrix to the first one of the next is as long as one inside of it.
            let goes_on = |x: Strides| {
                let (x, m) = (x.as_slice(), self.m as i64);
                m == 1 || x[last] == x[self.down].wrapping_mul(m)
            };
            let shared = right.is_none() && b.strides.as_slice()[last] == 0;
            let mut rows = [a.strides, out.strides].into_iter().chain(others(left)).chain(others(after));
            if batch[last] != 1 && !(shared && rows.all(goes_on)) {
                return;
            }
            if batch[last] != 1 && self.m == 1 {
                self.down = last;
            }
            self.m *= batch[last];
            self.rank = last;
        }
    }

    /// Disjoint parts of the work, in any order and by any worker each.
    pub fn pieces(&self) -> usize {
        self.split.pieces
    }

    /// Bytes of scratch that a worker needs for results of up to `m` rows, those of all matrices together, and `n`
    /// columns.
    pub fn scratch_bytes(m: usize, n: usize) -> usize {
        split::scratch_floats(m, n) * size_of::<f32>()
    }
}

/// Computes some pieces.
///
/// # Panics
/// When the pieces do not exist, the level is not there, or the scratch is smaller than [`Contract::scratch_bytes`] says.
///
/// # Safety
/// All elements of the operands exist for the product's sizes and strides, as [`StridedInput::within`] and [`StridedOutput::within`]
/// check; the result's are distinct and overlap no input. Nobody else touches the result's elements of these pieces, or the scratch.
pub unsafe fn contract(isa: Isa, call: &Contract<'_>, pieces: Range<usize>, scratch: &mut [f32]) {
    assert!(pieces.end <= call.split.pieces, "pieces {pieces:?} of {}", call.split.pieces);
    assert!(
        scratch.len() >= call.split.floats(),
        "{} floats of scratch: {} wanted",
        scratch.len(),
        call.split.floats()
    );
    let mut left = None;
    for piece in pieces.map(|i| call.split.piece(i)) {
        // SAFETY: `ContractTiling::piece` keeps pieces disjoint and inside of the output; the rest is promised by the caller.
        unsafe {
            match call.split.strategy {
                ContractStrategy::Stream => call.stream(isa, &piece, &mut left, scratch),
                ContractStrategy::Packed => call.packed(isa, &piece, &mut left, scratch),
            }
        }
    }
}
