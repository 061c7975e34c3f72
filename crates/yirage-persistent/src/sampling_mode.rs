//! How a kernel chooses tokens.

use yirage_engine::sampling::SamplingParams;

/// What its last layer says.
#[derive(Clone, PartialEq, Debug)]
pub(crate) enum SamplingMode {
    /// The largest logit, the first of equals.
    Greedy,
    /// A draw.
    Sampled(SamplingParams),
}
