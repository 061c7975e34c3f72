//! What a request's own lists leave of the vocabulary: allowed tokens, bad words, and no end before its time.
//!
//! It deliberately knows no sequence: who asks says where the token stands and what stands before it.

use super::error::ParamError;
use super::mask::TokenMask;
use crate::limits::{MAX_BAD_WORD_TOKENS, MAX_BAD_WORDS};

/// The lists as a request has them.
pub(crate) struct RequestTokenLists<'a> {
    /// The only tokens that are sampled; none allows all.
    pub(crate) allowed: Option<&'a [u32]>,
    /// Sequences of tokens that are never completed.
    pub(crate) bad_words: &'a [Vec<u32>],
    /// Tokens that are not sampled before position `first_end`.
    pub(crate) stop_ids: &'a [u32],
    /// The first position at which they are.
    pub(crate) first_end: u32,
    /// The position of the first new token.
    pub(crate) first: u32,
}

/// Lists that were checked for one vocabulary.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Restriction {
    /// The tokens left at every position; none where that is all of them.
    everywhere: Option<TokenMask>,
    /// Bad words of several tokens: those before the last, and the last.
    sequences: Vec<(Vec<u32>, u32)>,
    stop_ids: Vec<u32>,
    first_end: u32,
}

impl Restriction {
    /// Checks the lists for a model with `vocabulary` tokens.
    ///
    /// # Errors
    /// [`ParamError`] for what is too long, empty, unknown, or leaves nothing to sample.
    pub(crate) fn new(lists: &RequestTokenLists<'_>, vocabulary: usize) -> Result<Restriction, ParamError> {
        check_bad_words(lists.bad_words, vocabulary)?;
        let mut everywhere = lists.allowed.map(|tokens| allowed(tokens, vocabulary)).transpose()?;
        let mut sequences = Vec::new();
        for (&last, before) in lists.bad_words.iter().filter_map(|word| word.split_last()) {
            if before.is_empty() {
                everywhere.get_or_insert_with(|| TokenMask::all(vocabulary)).forbid(last);
            } else {
                sequences.push((before.to_vec(), last));
            }
        }
        let (stop_ids, first_end) = (lists.stop_ids.to_vec(), lists.first_end);
        let restriction = Restriction { everywhere, sequences, stop_ids, first_end };
        let mut left = TokenMask::all(vocabulary);
        restriction.apply(lists.first, [].iter(), &mut left);
        if left.allows_none(vocabulary) {
            return Err(ParamError::NothingAllowed { vocabulary });
        }
        Ok(restriction)
    }

    /// Whether the token at `position` is restricted, whatever stands before it.
    pub(crate) fn concerns(&self, position: u32) -> bool {
        self.everywhere.is_some() || self.looks_back() || position < self.first_end
    }

    /// Whether the tokens before a position decide about it.
    pub(crate) fn looks_back(&self) -> bool {
        !self.sequences.is_empty()
    }

    /// Tokens before a position that decide about it at most.
    pub(crate) fn looked_at(&self) -> usize {
        self.sequences.iter().map(|(before, _)| before.len()).max().unwrap_or(0)
    }

    /// Forbids what is not left at `position`. `before` are the tokens before it, the newest first, as many as
    /// [`Restriction::looked_at`] says or all there are.
    pub(crate) fn apply<'a>(&self, position: u32, before: impl Iterator<Item = &'a u32> + Clone, mask: &mut TokenMask) {
        if let Some(everywhere) = &self.everywhere {
            mask.keep_allowed(everywhere);
        }
        if position < self.first_end {
            self.stop_ids.iter().for_each(|&id| mask.forbid(id));
        }
        for (beginning, last) in &self.sequences {
            let mut newest = before.clone();
            if beginning.iter().rev().all(|token| newest.next() == Some(token)) {
                mask.forbid(*last);
            }
        }
    }
}

fn check_bad_words(words: &[Vec<u32>], vocabulary: usize) -> Result<(), ParamError> {
    if words.len() > MAX_BAD_WORDS {
        return Err(ParamError::TooManyBadWords { count: words.len() });
    }
    for (at, word) in words.iter().enumerate() {
        if word.is_empty() || word.len() > MAX_BAD_WORD_TOKENS {
            return Err(ParamError::BadWordLength { at, tokens: word.len() });
        }
        check_tokens("bad_words", word, vocabulary)?;
    }
    Ok(())
}

/// The mask of the tokens that a request allows.
fn allowed(tokens: &[u32], vocabulary: usize) -> Result<TokenMask, ParamError> {
    if tokens.len() > vocabulary {
        return Err(ParamError::TooManyAllowed { count: tokens.len(), vocabulary });
    }
    check_tokens("allowed_tokens", tokens, vocabulary)?;
    let mut mask = TokenMask::none(vocabulary);
    tokens.iter().for_each(|&token| mask.allow(token));
    Ok(mask)
}

fn check_tokens(field: &'static str, tokens: &[u32], vocabulary: usize) -> Result<(), ParamError> {
    match tokens.iter().find(|&&token| token as usize >= vocabulary) {
        Some(&token) => Err(ParamError::UnknownToken { field, token, vocabulary }),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LISTS: RequestTokenLists<'_> =
        RequestTokenLists { allowed: None, bad_words: &[], stop_ids: &[], first_end: 0, first: 0 };

    fn allowed_tokens(restriction: &Restriction, position: u32, before: &[u32]) -> Vec<u32> {
        let mut mask = TokenMask::all(40);
        restriction.apply(position, before.iter().rev(), &mut mask);
        (0..40).filter(|&token| mask.allows(token)).collect()
    }

    #[test]
    fn lists_leave_what_they_say() {
        let words = [vec![7], vec![1, 2, 3], vec![2, 5]];
        let lists = RequestTokenLists {
            allowed: Some(&[3, 5, 7, 39]),
            bad_words: &words,
            stop_ids: &[39],
            first_end: 4,
            ..LISTS
        };
        let restriction = Restriction::new(&lists, 40).unwrap();
        assert_eq!(allowed_tokens(&restriction, 4, &[]), [3, 5, 39]);
        assert_eq!(allowed_tokens(&restriction, 3, &[9]), [3, 5], "the stop id comes too early");
        assert_eq!(allowed_tokens(&restriction, 9, &[9, 1, 2]), [39], "both words would be completed");
        assert_eq!(allowed_tokens(&restriction, 9, &[2]), [3, 39], "a word is not there before its beginning is");
        assert_eq!((restriction.looked_at(), restriction.looks_back()), (2, true));
        let free = Restriction::new(&RequestTokenLists { stop_ids: &[1], first_end: 2, ..LISTS }, 40).unwrap();
        assert_eq!((free.concerns(1), free.concerns(2)), (true, false));
    }

    #[test]
    fn hostile_lists_are_refused_with_their_numbers() {
        let error = |lists: RequestTokenLists<'_>| Restriction::new(&lists, 40).unwrap_err();
        let unknown = |field| ParamError::UnknownToken { field, token: 40, vocabulary: 40 };
        assert_eq!(error(RequestTokenLists { allowed: Some(&[40]), ..LISTS }), unknown("allowed_tokens"));
        assert_eq!(error(RequestTokenLists { bad_words: &[vec![1, 40]], ..LISTS }), unknown("bad_words"));
        let many = ParamError::TooManyAllowed { count: 41, vocabulary: 40 };
        assert_eq!(error(RequestTokenLists { allowed: Some(&[0; 41]), ..LISTS }), many);
        let nothing = ParamError::NothingAllowed { vocabulary: 40 };
        assert_eq!(error(RequestTokenLists { allowed: Some(&[]), ..LISTS }), nothing);
        assert_eq!(error(RequestTokenLists { allowed: Some(&[4]), bad_words: &[vec![4]], ..LISTS }), nothing);
        assert_eq!(error(RequestTokenLists { allowed: Some(&[4]), stop_ids: &[4], first_end: 1, ..LISTS }), nothing);
        let long = vec![0; MAX_BAD_WORD_TOKENS + 1];
        for (tokens, word) in [(0, Vec::new()), (MAX_BAD_WORD_TOKENS + 1, long)] {
            let refused = ParamError::BadWordLength { at: 1, tokens };
            assert_eq!(error(RequestTokenLists { bad_words: &[vec![1], word], ..LISTS }), refused);
        }
        let words = vec![vec![1]; MAX_BAD_WORDS + 1];
        let refused = ParamError::TooManyBadWords { count: MAX_BAD_WORDS + 1 };
        assert_eq!(error(RequestTokenLists { bad_words: &words, ..LISTS }), refused);
    }

    #[test]
    fn bits_behind_the_vocabulary_allow_nothing() {
        let mut mask = TokenMask::all(33);
        (0..33).for_each(|token| mask.forbid(token));
        assert!(mask.allows_none(33) && !TokenMask::all(33).allows_none(33));
        assert!(TokenMask::none(32).allows_none(32) && TokenMask::default().allows_none(40));
    }
}
