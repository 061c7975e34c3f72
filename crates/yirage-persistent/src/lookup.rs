//! Prompt lookup as Mirage's layers have it: finding what followed a sequence's last tokens, and verifying guesses.
//!
//! These are the layers' meanings for single sequences. A running kernel guesses by the engine's own lookup, which takes
//! the longest agreement instead of the first; both give the tokens of greedy decoding.

/// The `spec_length` tokens that followed the first earlier place of the last `ngram_size` of `tokens`, behind the last
/// token itself; -1 stands where there is none. The place must end before the last token.
#[must_use]
pub fn find_ngram(tokens: &[i64], ngram_size: usize, spec_length: usize) -> Vec<i64> {
    let Some(&last) = tokens.last() else { return Vec::new() };
    let mut guess = vec![last];
    if let Some(from) = tokens.len().checked_sub(ngram_size).filter(|_| ngram_size > 0) {
        let end = &tokens[from..];
        let first = tokens.windows(ngram_size).take(from).position(|window| window == end);
        let followed = first.map_or(&[][..], |at| &tokens[at + ngram_size..]);
        guess.extend(followed.iter().take(spec_length));
    }
    guess.resize(1 + spec_length, -1);
    guess
}

/// How many of `guesses` (a token that is known, then guesses) the target's tokens confirm, and the token behind them:
/// `targets[i]` is what the target chooses behind `guesses[i]`. None where a target is missing.
#[must_use]
pub fn verify_greedy(guesses: &[i64], targets: &[i64]) -> Option<(usize, i64)> {
    let right = guesses.iter().skip(1).zip(targets).take_while(|(guess, target)| guess == target).count();
    targets.get(right).map(|&next| (right, next))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_earlier_place_is_taken() {
        assert_eq!(find_ngram(&[1, 2, 3, 4, 1, 2, 9, 1, 2], 2, 2), [2, 3, 4]);
        assert_eq!(find_ngram(&[1, 2, 3, 1, 2], 2, 4), [2, 3, 1, 2, -1]);
    }

    #[test]
    fn short_prompts_and_no_match_give_minus_one() {
        assert_eq!(find_ngram(&[1, 2, 3], 3, 2), [3, -1, -1], "the end itself is no earlier place");
        assert_eq!(find_ngram(&[1], 3, 2), [1, -1, -1]);
        assert_eq!(find_ngram(&[1, 2, 3, 4], 2, 1), [4, -1]);
        assert_eq!(find_ngram(&[], 3, 2), [0; 0]);
        assert_eq!(find_ngram(&[7, 7, 7], 2, 3), [7, 7, -1, -1]);
    }

    #[test]
    fn the_longest_right_prefix_and_one_more() {
        assert_eq!(verify_greedy(&[5, 6, 7], &[6, 7, 8]), Some((2, 8)));
        assert_eq!(verify_greedy(&[5, 6, 7], &[6, 9, 8]), Some((1, 9)));
        assert_eq!(verify_greedy(&[5, -1, -1], &[6, 9, 8]), Some((0, 6)));
        assert_eq!(verify_greedy(&[5], &[]), None);
    }
}
