//! What a loaded model is.

use crate::memory::LoadBytes;
use crate::variants::ChosenVariant;
use std::path::PathBuf;
use yirage_ir::Format;

/// Facts about a loaded model.
#[derive(Clone, Debug, PartialEq)]
pub struct ModelFacts {
    /// The architecture.
    pub architecture: String,
    /// Width of the logits.
    pub vocabulary: u32,
    /// Positions a sequence may have here.
    pub context: u32,
    /// Positions the model was made for.
    pub trained_context: u32,
    /// Whether sequences longer than that are computed with a rotary embedding scaled for them.
    pub dynamic_rope: bool,
    /// Format of cached keys and values.
    pub kv: Format,
    /// Whether keys are cached with biases added, so that Q8_0 keeps them less exactly than those of other models.
    pub biased_keys: bool,
    /// Whether layers keep recurrent states: tokens are then not guessed, as no state goes back to an earlier position.
    pub recurrent: bool,
    /// Memory predicted before the load.
    pub bytes: LoadBytes,
    /// The entry that repacked weights were mapped from; none where they were made from the model's files.
    pub packed_weights: Option<PathBuf>,
    /// How the device's kernels go about products; none where they have one way.
    pub variant: Option<ChosenVariant>,
}
