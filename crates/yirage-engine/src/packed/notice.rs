//! What is said to the owner of an engine of its weights, of what is kept between starts and of what is not done.

use std::fmt;
use yirage_model::{Checkpoint, ContextLimit, DecodedTensors, RawConfig};

/// What the owner of an engine should know of its weights, of what is kept between starts and of what is not done.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Notice {
    /// There was an entry that could not be used, and the weights were made from the model's files. It was removed if it
    /// was at fault itself.
    Refused(String),
    /// The weights made now are not kept for the next start.
    NotKept(String),
    /// The entry was checked, and the next start has to check it again since that cannot be noted.
    NotNoted(String),
    /// A kept plan could not be used, or a plan is not kept.
    Plan(String),
    /// An executor of the device cannot run a plan, and the others do.
    LeftOut(String),
    /// Kernels were measured, or what was kept of that could not be used or kept.
    Variant(String),
    /// Weights are stored in formats that nothing computes with, and were decoded.
    Decoded(Vec<DecodedTensors>),
    /// Tokens are not guessed, though that was asked for.
    NotGuessed(String),
    /// The checkpoint's layer of this number predicts further tokens, and was not asked to.
    MtpHeadUnused(u32),
    /// Not all positions that the model was made for are computed.
    ContextLimited(ContextLimit),
}

impl Notice {
    /// What is said of the weights of `checkpoint`, if there is something.
    pub(crate) fn of_weights(checkpoint: &Checkpoint) -> Option<Notice> {
        Some(checkpoint.decoded_tensors()).filter(|decoded| !decoded.is_empty()).map(Notice::Decoded)
    }

    /// What is said of the context that `config` describes, if there is something.
    pub(crate) fn of_context(config: &RawConfig) -> Option<Notice> {
        config.context_limit().cloned().map(Notice::ContextLimited)
    }
}

impl fmt::Display for Notice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Notice::Refused(why) => write!(f, "repacked weights were made again: {why}"),
            Notice::NotKept(why) => write!(f, "repacked weights are not kept: {why}"),
            Notice::Variant(what) => write!(f, "kernels: {what}"),
            Notice::Decoded(all) => {
                let all: Vec<String> = all.iter().map(DecodedTensors::to_string).collect();
                write!(f, "weights are decoded when they are loaded, each value exactly: {}", all.join("; "))
            }
            Notice::ContextLimited(limit) => write!(f, "the context is shorter than the model's: {limit}"),
            Notice::NotGuessed(why) => write!(f, "tokens are not guessed: {why}"),
            Notice::MtpHeadUnused(layer) => write!(
                f,
                "layer {layer} of the checkpoint predicts further tokens (multi-token prediction) and is not used; \
                 `--speculate mtp` has it guess"
            ),
            Notice::Plan(why) | Notice::LeftOut(why) => f.write_str(why),
            Notice::NotNoted(why) => write!(f, "repacked weights are checked in full at each start: {why}"),
        }
    }
}
