//! Tokens of one sequence, and where they go.

/// Tokens of one sequence.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ForwardRow<'a> {
    /// The sequence: where its keys and values are, counted from 0.
    pub sequence: usize,
    /// The position of the first token: at most as many as are cached. What was cached from there on is forgotten.
    pub start: u32,
    /// The tokens.
    pub tokens: &'a [u32],
}

impl ForwardRow<'_> {
    pub(super) fn positions(&self) -> impl Iterator<Item = i32> {
        (self.start as i32..).take(self.tokens.len())
    }

    /// The blocks of its sequence.
    pub(super) fn table(&self, blocks: u32) -> impl Iterator<Item = i32> {
        let first = self.sequence as i32 * blocks as i32;
        first..first + blocks as i32
    }

    /// Where its keys and values go, of so many blocks of so many positions.
    pub(super) fn slots(&self, blocks: u32, positions: u32) -> impl Iterator<Item = i32> {
        let first = self.sequence as i32 * blocks as i32 * positions as i32;
        self.positions().map(move |position| first + position)
    }
}
