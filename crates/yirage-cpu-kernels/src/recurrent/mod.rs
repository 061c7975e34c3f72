//! Ops that carry a state from position to position of a sequence, channel by channel: no channel's state depends on
//! another's, so workers take channels, and tokens follow each other in one order.
//!
//! A kernel says what one token does to the state of up to sixteen channels; [`advance`] goes through the tokens. Each
//! operation rounds at every instruction-set level alike and none depends on where a step began, so the bytes are the same
//! whatever the level, the chunks of a prompt, the batch and the threads. Deliberately unknown here: plans, caches, threads.

mod causal_conv1d;
mod gated_delta;
mod ssm_scan;

pub use causal_conv1d::CausalConv1dStep;
pub use gated_delta::GatedDeltaStep;
pub use ssm_scan::SsmScanStep;

use crate::isa::Isa;
use crate::rows::{Dst, store};
use crate::simd::{LANES, Lanes, WithLanes, launch};
use std::ops::Range;
use thiserror::Error;

/// The states of one layer: blocks of `[rows, width]` floats, one channel a column. Copies name the same memory.
#[derive(Clone, Copy, Debug)]
pub struct StateBlocks {
    base: *mut f32,
    rows: usize,
    width: usize,
    blocks: usize,
}

// SAFETY: an address; the unsafe functions that use it say who may touch what.
unsafe impl Send for StateBlocks {}
// SAFETY: an address; the unsafe functions that use it say who may touch what.
unsafe impl Sync for StateBlocks {}

impl StateBlocks {
    /// `blocks` blocks at `base`.
    ///
    /// # Safety
    /// `blocks * rows * width` floats at `base` are valid for reads and writes as long as the value and its copies are used.
    pub unsafe fn new(base: *mut f32, [rows, width]: [usize; 2], blocks: usize) -> StateBlocks {
        StateBlocks { base, rows, width, blocks }
    }

    /// Rows of a block and channels.
    pub fn shape(&self) -> [usize; 2] {
        [self.rows, self.width]
    }

    /// Blocks of the layer.
    pub fn blocks(&self) -> usize {
        self.blocks
    }

    /// The first float of a block that exists.
    fn block(&self, block: usize) -> *mut f32 {
        debug_assert!(block < self.blocks);
        self.base.wrapping_add(block * self.rows * self.width)
    }
}

/// What is wrong with what a step says of its tokens.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Error)]
pub enum StateError {
    /// A token of no sequence.
    #[error("token {token} is of sequence {seq}, of {seqs}")]
    Sequence {
        /// The token.
        token: usize,
        /// Its sequence.
        seq: i32,
        /// How many there are.
        seqs: usize,
    },
    /// A position that the table has no block for, or a block that the state does not have.
    #[error("position {position} of sequence {seq} has block {block} of {blocks} of its state")]
    Block {
        /// The position.
        position: i32,
        /// The sequence.
        seq: i32,
        /// What the table says; -1 where it ends before.
        block: i32,
        /// How many there are.
        blocks: usize,
    },
}

/// The tokens of a step: of each its position and sequence; of each sequence the blocks of its state.
#[derive(Clone, Copy, Debug)]
pub struct StepTokens<'a> {
    /// The position of each.
    pub positions: &'a [i32],
    /// The sequence of each.
    pub seqs: &'a [i32],
    /// A row of `width` entries a sequence.
    pub table: &'a [i32],
    /// Entries of a row of the table.
    pub width: usize,
    /// Positions that a block of the state stands for.
    pub block: usize,
}

/// Tokens of which every state is there.
#[derive(Clone, Copy, Debug)]
pub struct PlacedTokens<'a> {
    tokens: StepTokens<'a>,
    states: StateBlocks,
}

impl<'a> StepTokens<'a> {
    /// Checks that the states hold what every token reads and leaves.
    ///
    /// # Errors
    /// The first token that is of no sequence or has no block.
    pub fn place(self, states: StateBlocks) -> Result<PlacedTokens<'a>, StateError> {
        let seqs = self.table.len().checked_div(self.width).unwrap_or(0);
        for (token, (&position, &seq)) in self.positions.iter().zip(self.seqs).enumerate() {
            if usize::try_from(seq).map_or(true, |seq| seq >= seqs) {
                return Err(StateError::Sequence { token, seq, seqs });
            }
            let row = &self.table[seq as usize * self.width..][..self.width];
            for position in [position.max(1) - 1, position] {
                let block = usize::try_from(position).ok().and_then(|p| row.get(p / self.block)).copied().unwrap_or(-1);
                if usize::try_from(block).map_or(true, |block| block >= states.blocks) {
                    return Err(StateError::Block { position, seq, block, blocks: states.blocks });
                }
            }
        }
        Ok(PlacedTokens { tokens: self, states })
    }
}

impl PlacedTokens<'_> {
    /// Where a token's state is read, if its sequence has one yet, and where it is left.
    fn state(&self, token: usize) -> (Option<*const f32>, *mut f32) {
        let (position, seq) = (self.tokens.positions[token] as usize, self.tokens.seqs[token] as usize);
        let block = |position: usize| {
            self.states.block(self.tokens.table[seq * self.tokens.width + position / self.tokens.block] as usize)
        };
        (position.checked_sub(1).map(|before| block(before).cast_const()), block(position))
    }
}

/// Channels in chunks of at most sixteen, none of which reaches over two heads.
#[derive(Clone, Copy, Debug)]
pub struct ChannelChunks {
    /// Heads.
    pub heads: usize,
    /// Channels of a head.
    pub head: usize,
}

impl ChannelChunks {
    /// How many there are.
    pub fn count(&self) -> usize {
        self.heads * self.head.div_ceil(LANES)
    }

    /// A chunk by its number, which is less than [`ChannelChunks::count`].
    pub fn nth(&self, chunk: usize) -> Channels {
        let per_head = self.head.div_ceil(LANES);
        let (head, from) = (chunk / per_head, chunk % per_head * LANES);
        Channels { head, first: head * self.head + from, count: (self.head - from).min(LANES) }
    }
}

/// Up to sixteen neighbouring channels of a head.
#[derive(Clone, Copy, Debug)]
pub struct Channels {
    /// The head.
    pub head: usize,
    /// The first of them, counted over all heads.
    pub first: usize,
    /// How many.
    pub count: usize,
}

/// The state of some channels at a token: rows lie `stride` floats apart.
#[derive(Clone, Copy)]
pub struct ChannelStates {
    before: Option<*const f32>,
    after: *mut f32,
    stride: usize,
    count: usize,
}

impl ChannelStates {
    /// Row `row` before the token, 0 at a sequence's beginning.
    ///
    /// # Safety
    /// The row exists.
    #[inline(always)]
    unsafe fn before<V: Lanes>(&self, row: usize) -> V {
        match self.before {
            // SAFETY: what `ChannelStates::before` is promised; `advance` has made the addresses of channels that
            // exist.
            Some(first) => unsafe { crate::rows::load(first.add(row * self.stride), self.count, 0.0) },
            None => V::splat(0.0),
        }
    }

    /// Row `row` as it was left.
    ///
    /// # Safety
    /// As [`ChannelStates::before`].
    #[inline(always)]
    unsafe fn left<V: Lanes>(&self, row: usize) -> V {
        // SAFETY: as in `ChannelStates::before`.
        unsafe { crate::rows::load(self.after.add(row * self.stride), self.count, 0.0) }
    }

    /// Leaves row `row`.
    ///
    /// # Safety
    /// As [`ChannelStates::before`], and nobody else uses these channels meanwhile.
    #[inline(always)]
    unsafe fn leave<V: Lanes>(&self, row: usize, x: V) {
        // SAFETY: what `ChannelStates::leave` is promised; `StepTokens::place` has checked the blocks.
        unsafe { store(x, self.after.add(row * self.stride), self.count) }
    }
}

/// What one token does.
pub trait RecurrenceStep: Copy {
    /// Carries the state of some channels on by a token, and gives what the token has of them.
    ///
    /// # Safety
    /// The rows that it reads have the token and the channels, the state has the rows that it uses.
    unsafe fn step<V: Lanes>(&self, token: usize, channels: Channels, states: ChannelStates) -> V;
}

/// Carries the states of chunks `share` of the channels on by all tokens; `out` gets a row a token.
///
/// # Safety
/// What the step reads and `out` have a row for each token and the channels; `chunks` are those of the state's width; nobody
/// else uses the channels of the share, in the states and in `out`, meanwhile.
pub unsafe fn advance<S: RecurrenceStep>(
    isa: Isa,
    step: S,
    tokens: PlacedTokens<'_>,
    chunks: ChannelChunks,
    share: Range<usize>,
    out: Dst,
) {
    // SAFETY: `Advance` wants what `advance` is promised.
    unsafe { launch(isa, Advance { step, tokens, chunks, share, out }) };
}

/// Needs what [`advance`] is promised.
struct Advance<'a, S> {
    step: S,
    tokens: PlacedTokens<'a>,
    chunks: ChannelChunks,
    share: Range<usize>,
    out: Dst,
}

impl<S: RecurrenceStep> WithLanes for Advance<'_, S> {
    type Out = ();
    #[inline(always)]
    unsafe fn run<V: Lanes>(self) {
        for chunk in self.share {
            let channels = self.chunks.nth(chunk);
            for token in 0..self.tokens.tokens.positions.len() {
                let (before, after) = self.tokens.state(token);
                let states = ChannelStates {
                    before: before.map(|first| first.wrapping_add(channels.first)),
                    after: after.wrapping_add(channels.first),
                    stride: self.tokens.states.width,
                    count: channels.count,
                };
                // SAFETY: the contract of `advance`; `StepTokens::place` has checked the blocks.
                unsafe {
                    let y = self.step.step::<V>(token, channels, states);
                    store(y, self.out.row(token).add(channels.first), channels.count);
                }
            }
        }
    }
}
