//! Models with recurrent layers: a guess that was wrong has changed their states, which do not go back.

use crate::error::EngineError;
use yirage_model::ModelError;

/// Why such a model neither guesses nor has its tokens guessed.
pub(crate) const NO_WAY_BACK: &str =
    "layers keep a recurrent state, which does not go back to a position before a wrong guess";

/// The error for `guesser` of such a model, or for a draft model that is such a model.
pub(crate) fn cannot_guess(guesser: &str, architecture: &str) -> EngineError {
    let what = format!("{guesser} with {architecture}");
    ModelError::Unsupported { what, why: NO_WAY_BACK.into() }.into()
}
