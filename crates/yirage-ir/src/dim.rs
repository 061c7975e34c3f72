//! Symbolic dimensions: the four sizes that change from step to step, and their values in one step.

use std::fmt;

/// A size known only when a step runs.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub enum Sym {
    /// Token positions processed in the step, over all sequences.
    Tokens,
    /// Sequences taking part in the step.
    Seqs,
    /// Width of the block tables: the most cache blocks any sequence of the step has.
    Blocks,
    /// Positions whose logits are wanted: the last of each sequence, all of them, or k+1 when drafts are verified.
    Rows,
}

impl Sym {
    /// All symbols.
    pub const ALL: [Sym; 4] = [Sym::Tokens, Sym::Seqs, Sym::Blocks, Sym::Rows];

    /// The name in text forms.
    pub fn name(self) -> &'static str {
        match self {
            Sym::Tokens => "Tokens",
            Sym::Seqs => "Seqs",
            Sym::Blocks => "Blocks",
            Sym::Rows => "Rows",
        }
    }
}

/// One dimension of a shape.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub enum Dim {
    /// A size fixed by the model.
    Const(u32),
    /// A size that each step supplies.
    Sym(Sym),
}

impl Dim {
    /// The size under `dims`.
    pub fn get(self, dims: &Dims) -> usize {
        match self {
            Dim::Const(n) => n as usize,
            Dim::Sym(s) => dims.get(s) as usize,
        }
    }

    /// The size, when it is fixed.
    pub fn as_const(self) -> Option<usize> {
        match self {
            Dim::Const(n) => Some(n as usize),
            Dim::Sym(_) => None,
        }
    }
}

impl fmt::Display for Dim {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Dim::Const(n) => write!(f, "{n}"),
            Dim::Sym(s) => f.write_str(s.name()),
        }
    }
}

impl From<u32> for Dim {
    fn from(n: u32) -> Dim {
        Dim::Const(n)
    }
}

impl From<Sym> for Dim {
    fn from(s: Sym) -> Dim {
        Dim::Sym(s)
    }
}

/// The values of the symbols: in one step, or the largest ones a bucket allows.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub struct Dims {
    /// Value of [`Sym::Tokens`].
    pub tokens: u32,
    /// Value of [`Sym::Seqs`].
    pub seqs: u32,
    /// Value of [`Sym::Blocks`].
    pub blocks: u32,
    /// Value of [`Sym::Rows`].
    pub rows: u32,
}

impl Dims {
    /// The value of one symbol.
    pub fn get(&self, sym: Sym) -> u32 {
        match sym {
            Sym::Tokens => self.tokens,
            Sym::Seqs => self.seqs,
            Sym::Blocks => self.blocks,
            Sym::Rows => self.rows,
        }
    }

    /// Sets the value of one symbol.
    pub fn set(&mut self, sym: Sym, value: u32) {
        match sym {
            Sym::Tokens => self.tokens = value,
            Sym::Seqs => self.seqs = value,
            Sym::Blocks => self.blocks = value,
            Sym::Rows => self.rows = value,
        }
    }

    /// The first symbol whose value exceeds `limit`'s, if any.
    pub fn exceeds(&self, limit: &Dims) -> Option<Sym> {
        Sym::ALL.into_iter().find(|&s| self.get(s) > limit.get(s))
    }
}
