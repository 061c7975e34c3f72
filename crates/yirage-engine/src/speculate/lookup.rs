//! Prompt lookup: the sequence itself as a draft model.
//!
//! Text that repeats (code that is edited, a passage that is quoted, lists, tables) is guessed by finding the longest
//! earlier place that reads like the end of the sequence and copying what followed there: A. Saxena, "Prompt Lookup
//! Decoding", 2023. A guess costs nothing but this search, and whether it would have been right is known for every
//! token, guessed or not, so acceptance is learnt without running a single draft.
//!
//! Places are found as in LZ77 compressors: a table from the last [`LEAST`] tokens to the newest place that ends with
//! them, and chains from each place to the one before. A match that goes on is followed without a search, so a token
//! costs amortised constant time. Memory is bounded: of more than [`MOST_PLACES`] tokens the older half is forgotten.
//!
//! This module deliberately knows no model, no probabilities and no clock.

use std::collections::HashMap;

/// Tokens that must agree before a guess is made.
pub const LEAST: usize = 2;

/// Tokens of a sequence that are kept.
pub const MOST_PLACES: usize = 1 << 16;

/// Places that a search looks at, the newest first.
const MOST_TRIED: usize = 16;

/// Agreeing tokens beyond which a search counts no further.
const LONGEST: usize = 64;

/// No place.
const NONE: u32 = u32::MAX;

/// Where the sequence's end was found before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Match {
    /// Index of the token that followed there.
    next: usize,
    /// Tokens that agree.
    length: usize,
}

/// What the lookup said of a token before it came.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LookupPrediction {
    /// Tokens that agreed.
    pub length: usize,
    /// Whether the token was the guessed one.
    pub right: bool,
}

/// The tokens of one sequence and where they stood before.
#[derive(Clone, Debug, Default)]
pub struct Lookup {
    tokens: Vec<u32>,
    /// From [`LEAST`] tokens to the index behind the newest place that ends with them.
    newest: HashMap<[u32; LEAST], u32>,
    /// For the index behind a place: that of the place before with the same last tokens.
    before: Vec<u32>,
    found: Option<Match>,
}

impl Lookup {
    /// The index of a prompt.
    pub fn new(prompt: &[u32]) -> Lookup {
        let mut lookup = Lookup::default();
        lookup.tokens.reserve(prompt.len().min(MOST_PLACES));
        let kept = prompt.len().saturating_sub(MOST_PLACES / 2);
        for &token in &prompt[kept..] {
            lookup.append(token);
        }
        lookup.found = lookup.search();
        lookup
    }

    /// Takes the sequence's next token, and says whether it was foreseen.
    pub fn push(&mut self, token: u32) -> Option<LookupPrediction> {
        let foresight = self.found.map(|found| LookupPrediction {
            length: found.length,
            right: self.tokens.get(found.next).is_some_and(|&guess| guess == token),
        });
        if self.tokens.len() >= MOST_PLACES {
            self.forget();
        }
        self.append(token);
        let goes_on = self.found.filter(|_| foresight.is_some_and(|f| f.right));
        self.found = match goes_on {
            Some(found) => Some(Match { next: found.next + 1, length: (found.length + 1).min(LONGEST) }),
            None => self.search(),
        };
        foresight
    }

    /// Tokens that agree with an earlier place: how good a guess is; 0 is none.
    pub fn length(&self) -> usize {
        self.found.map_or(0, |found| found.length)
    }

    /// The next `most` tokens if the sequence goes on as it did at the place found. Where that place runs into the
    /// sequence's end the guess goes on with itself, as a repeated pattern does.
    pub fn guess(&self, most: usize) -> Vec<u32> {
        let Some(found) = self.found else { return Vec::new() };
        let mut guess: Vec<u32> = Vec::with_capacity(most);
        for at in found.next..found.next + most {
            let token = self.tokens.get(at).copied().unwrap_or_else(|| guess[at - self.tokens.len()]);
            guess.push(token);
        }
        guess
    }

    fn append(&mut self, token: u32) {
        self.tokens.push(token);
        let end = self.tokens.len();
        // Before LEAST tokens are there, places do not end with anything.
        let place = self.ending(end).map(|key| self.newest.insert(key, end as u32).unwrap_or(NONE));
        self.before.push(place.unwrap_or(NONE));
    }

    /// The last tokens before index `end`.
    fn ending(&self, end: usize) -> Option<[u32; LEAST]> {
        let (from, to) = (end.checked_sub(LEAST)?, end);
        self.tokens[from..to].try_into().ok()
    }

    /// The longest match of the sequence's end, the newest of equals.
    fn search(&self) -> Option<Match> {
        let end = self.tokens.len();
        let mut best: Option<Match> = None;
        let mut place = *self.before.last()?;
        for _ in 0..MOST_TRIED {
            if place == NONE {
                break;
            }
            let length = self.agreeing(place as usize, end);
            if best.is_none_or(|best| length > best.length) {
                best = Some(Match { next: place as usize, length });
            }
            place = self.before[place as usize - 1];
        }
        best
    }

    /// Tokens before index `place` that equal those before `end`, at most [`LONGEST`].
    fn agreeing(&self, place: usize, end: usize) -> usize {
        let (earlier, later) = (self.tokens[..place].iter().rev(), self.tokens[..end].iter().rev());
        earlier.zip(later).take(LONGEST).take_while(|(a, b)| a == b).count()
    }

    /// Drops the older half.
    fn forget(&mut self) {
        let kept = self.tokens.split_off(self.tokens.len() / 2);
        *self = Lookup::new(&kept);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The longest earlier occurrence of the end of `tokens`, the newest of equals, by trying all.
    fn by_trying(tokens: &[u32]) -> Option<(usize, usize)> {
        let end = tokens.len();
        let agreeing = |place: usize| (0..place).take_while(|i| tokens[place - 1 - i] == tokens[end - 1 - i]).count();
        let all = (LEAST..end).map(|place| (agreeing(place).min(LONGEST), place));
        all.filter(|(length, _)| *length >= LEAST).max()
    }

    #[test]
    fn finds_the_longest_match_or_one_that_goes_on() {
        let mut rng = yirage_ir::rng::Rng::new(7);
        for alphabet in [2u64, 9, 20] {
            let mut lookup = Lookup::new(&[1, 0, 1]);
            let mut tokens = vec![1, 0, 1];
            let mut searched = 0;
            for _ in 0..400 {
                let token = rng.below(alphabet) as u32;
                let guessed = lookup.guess(1).first().copied();
                let length = lookup.length();
                let foresight = lookup.push(token);
                assert_eq!(foresight, guessed.map(|g| LookupPrediction { length, right: g == token }));
                tokens.push(token);
                let (found, tried) = (lookup.found, by_trying(&tokens));
                let Some(found) = found else {
                    assert_eq!(tried, None);
                    continue;
                };
                let real = (0..found.next).take_while(|i| tokens[found.next - 1 - i] == tokens[tokens.len() - 1 - i]);
                assert!(real.count().min(LONGEST) >= found.length, "a match is what it says");
                // Of two letters there are more places than are tried.
                if alphabet > 2 && !foresight.is_some_and(|f| f.right) {
                    searched += 1;
                    assert_eq!(Some((found.length, found.next)), tried);
                }
            }
            assert!(alphabet == 2 || searched > 30, "{searched}");
        }
    }

    #[test]
    fn a_guess_copies_what_followed_and_then_itself() {
        let lookup = Lookup::new(&[1, 2, 3, 4, 5, 9, 1, 2]);
        assert_eq!((lookup.length(), lookup.guess(4)), (2, vec![3, 4, 5, 9]));
        assert_eq!(Lookup::new(&[7, 7, 7]).guess(5), [7; 5]);
        assert_eq!(Lookup::new(&[1, 2, 1, 2, 1, 2]).guess(5), [1, 2, 1, 2, 1]);
        assert_eq!(Lookup::new(&[1, 2, 3]).guess(5), [0; 0]);
        assert_eq!(Lookup::new(&[]).guess(5), [0; 0]);
    }

    #[test]
    fn the_newest_of_equals_and_the_longest_of_all() {
        assert_eq!(Lookup::new(&[1, 2, 8, 1, 2, 9, 1, 2]).guess(1), [9]);
        assert_eq!(Lookup::new(&[5, 1, 2, 8, 6, 1, 2, 9, 5, 1, 2]).guess(1), [8]);
    }

    #[test]
    fn memory_is_bounded_and_old_tokens_are_forgotten() {
        let mut lookup = Lookup::new(&[]);
        for token in 0..3 * MOST_PLACES as u32 {
            lookup.push(token);
            assert!(lookup.tokens.len() <= MOST_PLACES && lookup.newest.len() <= MOST_PLACES);
        }
        lookup.push(0);
        lookup.push(1);
        assert_eq!(lookup.length(), 0, "0, 1 was forgotten");
        let newest = 3 * MOST_PLACES as u32 - 4;
        lookup.push(newest);
        lookup.push(newest + 1);
        assert_eq!(lookup.guess(2), [newest + 2, newest + 3]);
        let long: Vec<u32> = (0..2 * MOST_PLACES as u32).collect();
        assert!(Lookup::new(&long).tokens.len() <= MOST_PLACES);
    }
}
