//! The tokens a grammar (or the caller) allows at one position.

/// A bit per token, set where the token is allowed: token t is bit `t % 32` of word `t / 32`, the layout of the common
/// grammar libraries. Tokens beyond its end are not allowed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TokenMask {
    words: Vec<u32>,
}

impl TokenMask {
    /// A mask that allows none of `vocabulary` tokens.
    pub fn none(vocabulary: usize) -> Self {
        TokenMask { words: vec![0; vocabulary.div_ceil(32)] }
    }

    /// A mask that allows all of `vocabulary` tokens.
    pub fn all(vocabulary: usize) -> Self {
        TokenMask { words: vec![u32::MAX; vocabulary.div_ceil(32)] }
    }

    /// A mask from its words.
    pub fn from_words(words: Vec<u32>) -> Self {
        TokenMask { words }
    }

    /// Allows `token`; a token beyond the mask's end stays forbidden.
    pub fn allow(&mut self, token: u32) {
        if let Some(word) = self.words.get_mut(token as usize / 32) {
            *word |= 1 << (token % 32);
        }
    }

    /// Whether `token` is allowed.
    pub fn allows(&self, token: u32) -> bool {
        self.words.get(token as usize / 32).is_some_and(|word| word >> (token % 32) & 1 == 1)
    }

    /// The words for a vocabulary; those beyond the mask's end allow nothing.
    pub(super) fn words(&self, vocabulary: usize) -> impl Iterator<Item = u32> {
        self.words.iter().copied().chain(std::iter::repeat(0)).take(vocabulary.div_ceil(32))
    }
}
