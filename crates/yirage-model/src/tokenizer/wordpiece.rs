//! WordPiece (Schuster and Nakajima, 2012, as BERT uses it): from the left, the longest token each time; a word with a
//! part that is no token is one unknown token.
//!
//! Knows nothing of how text became words.

use super::deadline::EncodeDeadline;
use super::error::{TokenizerError, shorten};
use super::limits;
use super::vocab::TokenTable;

/// The parameters of a file.
#[derive(Debug)]
pub(super) struct WordPiece {
    unk: u32,
    /// What stands before tokens that continue a word.
    prefix: String,
    /// Characters of the longest word that is looked at.
    max_chars: usize,
    /// Bytes of the longest token.
    longest: usize,
}

impl WordPiece {
    pub(super) fn new(
        name: &str,
        vocab: &TokenTable,
        unk: &str,
        prefix: String,
        max_chars: usize,
    ) -> Result<WordPiece, TokenizerError> {
        TokenizerError::limit(name, "model.max_input_chars_per_word", max_chars, limits::MAX_WORD_CHARS)?;
        TokenizerError::limit(name, "length of a prefix in bytes", prefix.len(), limits::MAX_TOKEN_BYTES)?;
        let absent = || {
            let detail = format!("{:?} is not in the vocabulary", shorten(unk));
            TokenizerError::field(name, "model.unk_token", detail)
        };
        let unk = vocab.own(unk.as_bytes()).ok_or_else(absent)?;
        let lengths = (0..vocab.len() as u32).filter_map(|id| vocab.text(id)).map(str::len);
        Ok(WordPiece { unk, prefix, max_chars, longest: lengths.max().unwrap_or_default() })
    }

    /// Appends the tokens of `word`. `text` is scratch.
    pub(super) fn encode(
        &self,
        vocab: &TokenTable,
        word: &str,
        text: &mut String,
        watch: &EncodeDeadline,
        out: &mut Vec<u32>,
    ) -> Result<(), TokenizerError> {
        let first = out.len();
        if word.chars().count() > self.max_chars {
            out.push(self.unk);
            return Ok(());
        }
        let mut start = 0;
        while start < word.len() {
            watch.look("WordPiece", start)?;
            text.clear();
            text.push_str(if start > 0 { &self.prefix } else { "" });
            let before = text.len();
            text.push_str(&word[start..]);
            let Some((id, len)) = self.longest_token(vocab, text, before) else {
                out.truncate(first);
                out.push(self.unk);
                return Ok(());
            };
            out.push(id);
            start += len;
        }
        Ok(())
    }

    /// The longest token that `text` begins with, and its bytes behind the first `before`; one character at least.
    fn longest_token(&self, vocab: &TokenTable, text: &str, before: usize) -> Option<(u32, usize)> {
        let mut rest = &text[before..];
        while let Some(last) = rest.chars().next_back() {
            let end = before + rest.len();
            if end <= self.longest
                && let Some(id) = vocab.own(&text.as_bytes()[..end])
            {
                return Some((id, rest.len()));
            }
            rest = &rest[..rest.len() - last.len_utf8()];
        }
        None
    }
}
