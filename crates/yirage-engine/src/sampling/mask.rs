//! The tokens that are allowed at one position.

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

    /// The words, for who sets many of them at once.
    pub fn words_mut(&mut self) -> &mut [u32] {
        &mut self.words
    }

    /// Allows `token`; a token beyond the mask's end stays forbidden.
    pub fn allow(&mut self, token: u32) {
        if let Some(word) = self.words.get_mut(token as usize / 32) {
            *word |= 1 << (token % 32);
        }
    }

    /// Forbids `token`.
    pub fn forbid(&mut self, token: u32) {
        if let Some(word) = self.words.get_mut(token as usize / 32) {
            *word &= !(1 << (token % 32));
        }
    }

    /// Forbids what `other` does not allow.
    pub(crate) fn keep_allowed(&mut self, other: &TokenMask) {
        let others = other.words.iter().copied().chain(std::iter::repeat(0));
        self.words.iter_mut().zip(others).for_each(|(word, other)| *word &= other);
    }

    /// Forbids every token, or allows every one.
    pub(crate) fn set_all(&mut self, allowed: bool) {
        self.words.fill(if allowed { u32::MAX } else { 0 });
    }

    /// Whether none of `vocabulary` tokens is allowed.
    pub(crate) fn allows_none(&self, vocabulary: usize) -> bool {
        let (whole, rest) = (vocabulary / 32, vocabulary % 32);
        let last = self.words.get(whole).is_some_and(|word| word & ((1 << rest) - 1) != 0);
        !last && self.words.iter().take(whole).all(|word| *word == 0)
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
