//! Texts as encoders read them: whole, with the tokens around that the file wants, and with the type of each token.
//!
//! Knows nothing of models; how long an input may be is the caller's to say.

use super::error::TokenizerError;
use super::{EncodeOptions, Tokenizer};

/// A piece of what a pair of texts becomes. A number is the type of tokens.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum PairPart {
    /// A token of the frame and its type.
    Token(u32, u32),
    /// The first text.
    First(u32),
    /// The second text.
    Second(u32),
}

/// An input of an encoder.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FramedTokens {
    /// Tokens.
    pub ids: Vec<u32>,
    /// The type of each token: which of two texts it belongs to.
    pub types: Vec<u32>,
    /// Tokens of the text that were left out to keep to the limit.
    pub cut: usize,
}

impl Tokenizer {
    /// One text with its frame, of which all tokens are of type 0. With a `limit` the end of a longer text is left out.
    ///
    /// # Errors
    /// As [`Tokenizer::encode`].
    pub fn frame(&self, text: &str, limit: Option<usize>) -> Result<FramedTokens, TokenizerError> {
        let mut inner = self.without_frame(text)?;
        let room = limit.map_or(inner.len(), |limit| limit.saturating_sub(self.prefix.len() + self.suffix.len()));
        let cut = inner.len().saturating_sub(room);
        inner.truncate(room);
        let ids = [&self.prefix[..], &inner, &self.suffix].concat();
        Ok(FramedTokens { types: vec![0; ids.len()], ids, cut })
    }

    /// Two texts in the file's frame. With a `limit` the end of the longer text is left out, then of both.
    ///
    /// # Errors
    /// As [`Tokenizer::encode`]; [`TokenizerError::NoPair`] for a file that says nothing of pairs.
    pub fn frame_pair(&self, first: &str, second: &str, limit: Option<usize>) -> Result<FramedTokens, TokenizerError> {
        let parts = self.pair.as_ref().ok_or_else(|| TokenizerError::NoPair { name: self.name.clone() })?;
        let (mut first, mut second) = (self.without_frame(first)?, self.without_frame(second)?);
        let (whole, frame) = (first.len() + second.len(), parts.iter().filter(|p| matches!(p, PairPart::Token(..))));
        if let Some(limit) = limit {
            let room = limit.saturating_sub(frame.count());
            let kept = pair_lengths(first.len(), second.len(), room);
            first.truncate(kept.0);
            second.truncate(kept.1);
        }
        let mut out = FramedTokens { cut: whole - first.len() - second.len(), ..FramedTokens::default() };
        for part in parts {
            let (ids, kind) = match part {
                PairPart::Token(id, kind) => (std::slice::from_ref(id), kind),
                PairPart::First(kind) => (&first[..], kind),
                PairPart::Second(kind) => (&second[..], kind),
            };
            out.ids.extend_from_slice(ids);
            out.types.resize(out.ids.len(), *kind);
        }
        Ok(out)
    }

    fn without_frame(&self, text: &str) -> Result<Vec<u32>, TokenizerError> {
        self.encode(text, EncodeOptions { add_special: false, ..self.default_options() })
    }
}

/// How much is kept of two texts for which there is so much room: the reference library shortens the longer one first.
fn pair_lengths(first: usize, second: usize, room: usize) -> (usize, usize) {
    if first + second <= room {
        return (first, second);
    }
    let shorter = first.min(second).min(room / 2);
    if first <= second { (shorter, room - shorter) } else { (room - shorter, shorter) }
}

#[cfg(test)]
mod tests {
    use super::pair_lengths;

    #[test]
    fn the_longer_text_is_shortened_first() {
        assert_eq!(pair_lengths(3, 4, 7), (3, 4));
        assert_eq!(pair_lengths(3, 9, 7), (3, 4));
        assert_eq!(pair_lengths(9, 3, 7), (4, 3));
        assert_eq!(pair_lengths(9, 9, 7), (3, 4));
        assert_eq!(pair_lengths(10, 9, 7), (4, 3));
        assert_eq!(pair_lengths(5, 5, 0), (0, 0));
    }
}
