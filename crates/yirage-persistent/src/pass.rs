//! One pass of test mode: its tokens, where they stand, and elements of what layers write.

use yirage_engine::limits::BLOCK;
use yirage_ir::Dims;

/// Elements of an output.
#[derive(Clone, PartialEq, Debug)]
pub enum TestValues {
    /// Numbers.
    Floats(Vec<f32>),
    /// Tokens, indices and counts.
    Ints(Vec<i64>),
}

/// The tokens of one pass, by request.
pub(crate) struct PassTokens {
    /// The position of each request's first token.
    pub(crate) first: Vec<usize>,
    /// Tokens of each request.
    pub(crate) lengths: Vec<usize>,
    pub(crate) dims: Dims,
}

impl PassTokens {
    /// Request and position of each token.
    pub(crate) fn each(&self) -> impl Iterator<Item = (usize, usize)> {
        let requests = self.first.iter().zip(&self.lengths).enumerate();
        requests.flat_map(|(seq, (&first, &length))| (first..first + length).map(move |position| (seq, position)))
    }

    pub(crate) fn positions(&self) -> impl Iterator<Item = usize> {
        self.each().map(|(_, position)| position)
    }

    /// Blocks of the cache: as many for each request as the longest needs.
    pub(crate) fn blocks(&self) -> usize {
        self.lengths.len() * self.dims.blocks as usize
    }

    pub(crate) fn slots(&self) -> impl Iterator<Item = i32> {
        self.each().map(|(seq, position)| self.slot(seq, position))
    }

    pub(crate) fn table(&self) -> impl Iterator<Item = i32> {
        0..self.blocks() as i32
    }

    /// Request and position of all that stands before the pass.
    pub(crate) fn earlier(&self) -> impl Iterator<Item = (usize, usize)> {
        self.first.iter().enumerate().flat_map(|(seq, &first)| (0..first).map(move |position| (seq, position)))
    }

    /// How many positions each request has behind the pass.
    pub(crate) fn ends(&self) -> impl Iterator<Item = usize> {
        self.first.iter().zip(&self.lengths).map(|(first, length)| first + length)
    }

    /// Where a position lies in the blocks of a state.
    pub(crate) fn slot(&self, seq: usize, position: usize) -> i32 {
        (seq * self.dims.blocks as usize * BLOCK + position) as i32
    }
}
