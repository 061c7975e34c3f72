//! A step of a block: an op or a chain on tiles.

use super::operand::{TileOperand, TilePlace};
use crate::elements::elements_per_word;
use crate::op::output_words::ResultOrder;
use std::ops::Range;
use yirage_hal::HalError;
use yirage_ir::expr::Scalar;
use yirage_ir::op::ReduceKind;
use yirage_ir::region::{Accumulate, Core, FusedChain};
use yirage_ir::{Strided, Type};

/// What a step computes.
#[derive(Clone, Debug)]
pub(super) enum TileWork {
    /// A chain without a reduction.
    Chain(Box<FusedChain>),
    /// A chain around a reduction, so many elements of it at once. Their partial results lie in the second input.
    Reduction { chain: Box<FusedChain>, at_once: u32 },
    /// The products of a contraction, behind the sums that the output holds.
    Sums(Box<FusedChain>),
    /// What a reduction is given, behind the partial results that the output holds.
    Parts(Box<FusedChain>),
    /// The partial results of so many elements as one.
    Joined(ReduceKind, u32),
    /// The inputs one behind the other along a dimension.
    Concat(usize),
    /// One value.
    Fill(Scalar),
    /// Indices along a dimension.
    Iota(usize),
    /// The input.
    Copy,
    /// The first input, taken into what the output holds; of a rescaled one the second is the factor.
    Accumulate(Accumulate),
}

/// A step.
pub(super) struct BlockStep {
    pub(super) work: TileWork,
    pub(super) ins: Vec<TileOperand>,
    pub(super) out: TileOperand,
    /// The order in which results are made.
    pub(super) results: ResultOrder,
}

/// Words of a block's own memory that a step touches.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct MemoryAccess {
    place: TilePlace,
    words: Range<u32>,
    /// Whether word i of them is touched by thread `i % 64` alone.
    is_by_owner: bool,
}

impl MemoryAccess {
    fn of(operand: &TileOperand, is_by_owner: bool) -> Option<MemoryAccess> {
        Some(MemoryAccess { place: operand.place, words: operand.own_words()?, is_by_owner })
    }

    /// Whether another thread may touch what this one touches.
    pub(super) fn meets(&self, other: &MemoryAccess) -> bool {
        let overlaps = self.words.start < other.words.end && other.words.start < self.words.end;
        let is_owners = self.is_by_owner && other.is_by_owner && self.words.start == other.words.start;
        self.place == other.place && overlaps && !is_owners
    }
}

impl BlockStep {
    /// A step whose results lie in the order of the output.
    pub(super) fn new(work: TileWork, ins: Vec<TileOperand>, out: TileOperand) -> Result<BlockStep, HalError> {
        let places = match &work {
            TileWork::Chain(chain) | TileWork::Reduction { chain, .. } | TileWork::Parts(chain) => chain.out.clone(),
            _ => dense(&out.ty)?,
        };
        Ok(BlockStep { work, ins, out, results: ResultOrder::new(&places)? })
    }

    /// What it reads of the block's own memory.
    pub(super) fn reads(&self) -> impl Iterator<Item = MemoryAccess> {
        let updates = matches!(self.work, TileWork::Sums(_) | TileWork::Parts(_) | TileWork::Accumulate(_));
        let held = updates.then(|| MemoryAccess::of(&self.out, true)).flatten();
        let ins = self.ins.iter().enumerate().filter_map(|(at, x)| MemoryAccess::of(x, self.is_read_by_owner(at)));
        ins.chain(held)
    }

    /// What it writes of it.
    pub(super) fn writes(&self) -> impl Iterator<Item = MemoryAccess> {
        let reduces = matches!(self.work, TileWork::Reduction { .. });
        let parts = self.ins.get(1).filter(|_| reduces).and_then(|parts| MemoryAccess::of(parts, false));
        MemoryAccess::of(&self.out, !reduces).into_iter().chain(parts)
    }

    /// Whether the thread that makes a word of the output reads the same word of an input, and no other thread does.
    fn is_read_by_owner(&self, at: usize) -> bool {
        let x = &self.ins[at];
        let alike = elements_per_word(x.elements.dtype) == elements_per_word(self.out.elements.dtype);
        let in_order = match &self.work {
            TileWork::Chain(chain) if chain.core == Core::None => {
                chain.after.reads.iter().filter(|read| read.input == at).all(|read| read.at == chain.out)
            }
            TileWork::Copy => true,
            TileWork::Accumulate(_) => at == 0,
            _ => false,
        };
        alike && in_order && x.ty.strides.is_none()
    }
}

/// The places of a dense tile.
fn dense(ty: &Type) -> Result<Strided, HalError> {
    Strided::dense(&ty.shape).ok_or_else(|| HalError::Load(format!("a tile of {ty} is too large")))
}
