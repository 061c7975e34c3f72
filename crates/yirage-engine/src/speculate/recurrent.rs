//! Models with recurrent layers: a guess that was wrong has changed their states, which do not go back.

use crate::error::EngineError;
use yirage_model::ModelError;

/// Why such a model neither guesses nor has its tokens guessed.
pub(crate) const NO_WAY_BACK: &str =
    "layers keep a recurrent state, which does not go back to a position before a wrong guess";

/// The error for a draft model of such a model, or for one that is such a model.
pub(crate) fn cannot_guess(architecture: &str) -> EngineError {
    let what = format!("a draft model with {architecture}");
    ModelError::Unsupported { what, why: NO_WAY_BACK.into() }.into()
}
