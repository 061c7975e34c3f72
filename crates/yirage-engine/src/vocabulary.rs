//! Whether two models speak of the same tokens.

use thiserror::Error;
use yirage_model::tokenizer::Tokenizer;

/// Two models that do not speak of the same tokens.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum VocabularyError {
    /// An id means different texts.
    #[error(
        "the draft model has another vocabulary: token {id} is {draft:?} there and {model:?} in the model; choose a \
         smaller model of the same family"
    )]
    Token {
        /// The first such id.
        id: u32,
        /// Its text in the model.
        model: String,
        /// Its text in the draft model.
        draft: String,
    },
    /// Without tokenizers only the widths can be compared.
    #[error(
        "the draft model has {draft} tokens and the model {model}, and not both have a tokenizer to compare; choose a \
         smaller model of the same family"
    )]
    Width {
        /// Tokens of the model.
        model: u32,
        /// Tokens of the draft model.
        draft: u32,
    },
}

/// Checks that ids mean the same to both models, as far as both have them: models of one family are often padded to
/// different widths.
pub(crate) fn same_vocabulary(model: &Tokenizer, draft: &Tokenizer) -> Result<(), VocabularyError> {
    for id in 0..model.vocab_size().min(draft.vocab_size()) as u32 {
        if let (Some(ours), Some(theirs)) = (model.piece(id), draft.piece(id))
            && ours != theirs
        {
            return Err(VocabularyError::Token { id, model: ours.to_owned(), draft: theirs.to_owned() });
        }
    }
    Ok(())
}
