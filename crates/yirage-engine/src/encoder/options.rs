//! How an encoder runs.

use crate::options::Tuning;
use yirage_plan::{ExecutorKind, Precision};

/// Options of an encoder.
#[derive(Clone, PartialEq, Debug)]
pub struct EncoderOptions {
    /// How products are computed.
    pub precision: Precision,
    /// The executor of every step; none is the one that measurement chooses. All give the same bytes.
    pub executor: Option<ExecutorKind>,
    /// Tokens of a step. A single longer input is a step by itself.
    pub chunk: u32,
    /// How the device's kernels go about products.
    pub tuning: Tuning,
}

impl Default for EncoderOptions {
    fn default() -> Self {
        EncoderOptions { precision: Precision::Fast, executor: None, chunk: 512, tuning: Tuning::default() }
    }
}
