//! What an op has to do at least in a step: what it reads of each input, and its multiplications and additions.
//!
//! A floor, not an estimate, and no word of how fast anything is. How many bytes an input takes is a device's matter, so
//! what is read is said in parts of it.

use crate::dim::Dims;
use crate::quant::Format;

/// One sequence's part of a step.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct SequenceSpan {
    /// Positions before it, which are cached.
    pub start: u32,
    /// Positions it computes.
    pub tokens: u32,
    /// Of those, the ones whose logits are wanted.
    pub rows: u32,
}

/// The sizes of a step.
#[derive(Clone, Copy, Debug)]
pub struct StepSizes<'a> {
    /// The values of the symbols.
    pub dims: Dims,
    /// The sequences that take part.
    pub spans: &'a [SequenceSpan],
}

impl StepSizes<'_> {
    /// The sizes of a step over these sequences. Block tables have no width here: what is cached stands in the spans.
    pub fn of(spans: &[SequenceSpan]) -> StepSizes<'_> {
        let sum = |of: fn(&SequenceSpan) -> u32| spans.iter().map(of).fold(0, u32::saturating_add);
        let seqs = u32::try_from(spans.len()).unwrap_or(u32::MAX);
        StepSizes { dims: Dims { tokens: sum(|s| s.tokens), seqs, blocks: 0, rows: sum(|s| s.rows) }, spans }
    }
}

/// What is read of an input.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Reads {
    /// Nothing worth counting.
    Nothing,
    /// All of it, once a step however many ops read it.
    Whole,
    /// So many of its outermost parts (rows of a table, experts), by this op alone. Expected numbers need not be whole.
    Parts(f64),
    /// So many positions of a cache.
    Positions(f64),
}

/// The work of one op in one step.
#[derive(Clone, PartialEq, Debug)]
pub struct Cost {
    /// Multiplications and additions of products, contractions and attention: one of each is two. What is done to each
    /// element once is bounded by memory and not counted.
    pub ops: f64,
    /// The format of the weights whose ceiling of arithmetic they meet; none is f32.
    pub format: Option<Format>,
    /// What is read of each input; of inputs beyond the list nothing.
    pub reads: Vec<Reads>,
}

impl Cost {
    /// Reading `count` inputs whole where there is a row at all.
    pub fn reading(count: usize, rows: usize) -> Cost {
        let reads = if rows > 0 { Reads::Whole } else { Reads::Nothing };
        Cost { ops: 0.0, format: None, reads: vec![reads; count] }
    }
}
