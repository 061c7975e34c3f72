//! What breaks a sequence for `dry`, as tokens.

use std::collections::BTreeMap;

/// A text counts no further than so many bytes.
const LONGEST_TEXT: usize = 40;
/// Of the tokens behind the first so many count.
const LONGEST_TAIL: usize = 20;

/// For each token in which a breaker begins: the tokens that have to follow. A token that has a whole breaker within it needs
/// none.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SequenceBreakers {
    tails: BTreeMap<u32, Vec<Vec<u32>>>,
}

impl SequenceBreakers {
    /// The breakers of texts in a vocabulary. `word` is the text of a token, `tokens` the tokens of a text. A text without
    /// letters is none.
    pub fn of_texts(
        texts: &[String],
        vocabulary: u32,
        word: impl Fn(u32) -> Vec<u8>,
        tokens: impl Fn(&[u8]) -> Vec<u32>,
    ) -> SequenceBreakers {
        let mut breakers = SequenceBreakers::default();
        let texts: Vec<&[u8]> = texts.iter().map(|t| &t.as_bytes()[..t.len().min(LONGEST_TEXT)]).collect();
        let texts: Vec<&[u8]> = texts.into_iter().filter(|text| !text.is_empty()).collect();
        for token in 0..vocabulary {
            let word = word(token);
            for text in &texts {
                if word.windows(text.len()).any(|part| part == *text) {
                    breakers.add(token, Vec::new());
                    continue;
                }
                let begun = (0..word.len()).filter(|&at| text.starts_with(&word[at..]));
                for at in begun {
                    let mut tail = tokens(&text[word.len() - at..]);
                    tail.truncate(LONGEST_TAIL);
                    breakers.add(token, tail);
                }
            }
        }
        breakers
    }

    /// Adds a breaker of these tokens.
    pub fn add(&mut self, first: u32, tail: Vec<u32>) {
        let tails = self.tails.entry(first).or_default();
        if !tails.contains(&tail) {
            tails.push(tail);
        }
    }

    /// Whether the token breaks a sequence by itself.
    pub(super) fn is_one(&self, token: u32) -> bool {
        self.tails.get(&token).is_some_and(|tails| tails.iter().any(Vec::is_empty))
    }

    /// How many tokens stand behind the last breaker.
    pub(super) fn unbroken(&self, last: &[u32]) -> usize {
        for behind in 0..last.len() {
            let at = last.len() - 1 - behind;
            let tails = self.tails.get(&last[at]).into_iter().flatten();
            let longest = tails.filter(|tail| last[at + 1..].starts_with(tail)).map(Vec::len).max();
            if let Some(longest) = longest {
                return behind - longest;
            }
        }
        last.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_breaker_may_begin_within_a_token_and_end_in_later_ones() {
        let words = ["a", "b", "ab", "xa", "bc", "zabz"];
        let word = |token: u32| words[token as usize].as_bytes().to_vec();
        let tokens = |text: &[u8]| text.iter().map(|b| u32::from(*b == b'b')).collect();
        let made = SequenceBreakers::of_texts(&["ab".into(), String::new()], 6, word, tokens);
        let mut wanted = SequenceBreakers::default();
        for (first, tail) in [(0, vec![1]), (2, vec![]), (3, vec![1]), (5, vec![])] {
            wanted.add(first, tail);
        }
        assert_eq!(made, wanted);
        assert_eq!(made.unbroken(&[4, 0, 1, 4, 4]), 2);
        assert_eq!(made.unbroken(&[4, 0, 4, 4]), 4, "the second token is missing");
        assert_eq!((made.is_one(2), made.is_one(0)), (true, false));
    }
}
