//! How much evidence is asked for.

use yirage_ir::Dims;

/// How [`equivalent`](super::equivalent) compares. Equal options give equal certificates.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct EqualityOptions {
    /// What all random inputs follow from.
    pub seed: u64,
    /// Trials over each of the two fields at each of the sizes; at least one is made, and four times as many where
    /// whole numbers or bools are given.
    pub trials: u32,
    /// Values of the symbols to compare at. Graphs without symbols are compared once.
    pub sizes: Vec<Dims>,
    /// Most operations of one evaluation of one graph. Where all outputs take more, a sample of their rows and columns
    /// is compared, another one in each trial.
    pub work: u64,
}

impl Default for EqualityOptions {
    /// Two trials at each of two sizes, in which no two symbols are equal.
    fn default() -> EqualityOptions {
        let sizes =
            vec![Dims { tokens: 5, seqs: 2, blocks: 1, rows: 3 }, Dims { tokens: 7, seqs: 3, blocks: 2, rows: 4 }];
        EqualityOptions { seed: 1, trials: 2, sizes, work: 1 << 26 }
    }
}
