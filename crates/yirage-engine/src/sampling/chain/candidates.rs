//! The tokens that are left, with their logits.

use std::cmp::Ordering;

/// A token and its logit.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct TokenCandidate {
    /// The token's id.
    pub token: u32,
    /// Its logit, -infinity for a token that has probability 0.
    pub logit: f32,
}

/// What the stages of a chain keep of a row, at least one token. Tokens of probability 0 count as candidates until a stage drops
/// them, as in llama.cpp: the largest possible entropy depends on their number.
#[derive(Clone, Debug, PartialEq)]
pub struct Candidates {
    kept: Vec<TokenCandidate>,
    sorted: bool,
}

impl Candidates {
    /// All tokens of a row.
    pub fn of_row(row: &[f32]) -> Candidates {
        let kept =
            row.iter().enumerate().map(|(token, &logit)| TokenCandidate { token: token as u32, logit }).collect();
        Candidates { kept, sorted: false }
    }

    /// The tokens that are left.
    pub fn kept(&self) -> &[TokenCandidate] {
        &self.kept
    }

    /// Changes logits by token.
    pub(super) fn change(&mut self, mut change: impl FnMut(&mut TokenCandidate)) {
        self.kept.iter_mut().for_each(&mut change);
        self.sorted = false;
    }

    /// The likeliest first, the lower token of equals first.
    pub(super) fn sort(&mut self) {
        if !self.sorted {
            self.kept.sort_unstable_by(likelier);
            self.sorted = true;
        }
    }

    /// Keeps the `count` likeliest, sorted.
    pub(super) fn keep_likeliest(&mut self, count: usize) {
        if !self.sorted && count < self.kept.len() {
            self.kept.select_nth_unstable_by(count.saturating_sub(1), likelier);
            self.kept.truncate(count.max(1));
        }
        self.sort();
        self.kept.truncate(count.max(1));
    }

    /// Drops the `count` likeliest of a sorted list that has more.
    pub(super) fn drop_likeliest(&mut self, count: usize) {
        if count < self.kept.len() {
            self.kept.drain(..count);
        }
    }

    /// Keeps what `keeps` says; the likeliest where that is nothing.
    pub(super) fn retain(&mut self, keeps: impl Fn(&TokenCandidate) -> bool) {
        if self.kept.iter().any(&keeps) {
            self.kept.retain(keeps);
        } else {
            self.keep_likeliest(1);
        }
    }

    /// Keeps those at these places, in their order.
    pub(super) fn keep_places(&mut self, places: &[usize]) {
        self.kept = places.iter().map(|&at| self.kept[at]).collect();
        self.sorted = false;
    }

    /// The likeliest, the lower token of equals.
    pub(super) fn likeliest(&self) -> TokenCandidate {
        let first = self.kept[0];
        self.kept.iter().fold(first, |best, other| if likelier(other, &best) == Ordering::Less { *other } else { best })
    }

    /// Probabilities, in the order of [`Candidates::kept`]; f64, of sum 1.
    pub fn probabilities(&self) -> Vec<f64> {
        let largest = f64::from(self.likeliest().logit);
        let weight = |c: &TokenCandidate| libm::exp(f64::from(c.logit) - largest);
        let mut weights: Vec<f64> = self.kept.iter().map(weight).collect();
        let total = weights.iter().sum::<f64>();
        weights.iter_mut().for_each(|w| *w /= total);
        weights
    }

    /// The first token, in order of ids, at which the running sum of probabilities exceeds `uniform`, with its probability;
    /// rounding at the end falls to the last token that has one.
    pub(super) fn draw(&self, uniform: f64) -> (u32, f64) {
        let mut weighted: Vec<(u32, f64)> = self.kept.iter().map(|c| c.token).zip(self.probabilities()).collect();
        weighted.sort_unstable_by_key(|(token, _)| *token);
        let (mut reached, mut last) = (0.0, weighted[0]);
        for (token, probability) in weighted.into_iter().filter(|(_, probability)| *probability > 0.0) {
            reached += probability;
            last = (token, probability);
            if reached > uniform {
                break;
            }
        }
        last
    }
}

/// Whether `a` comes before `b`: its logit is larger, or its id is lower.
fn likelier(a: &TokenCandidate, b: &TokenCandidate) -> Ordering {
    b.logit.partial_cmp(&a.logit).unwrap_or(Ordering::Equal).then(a.token.cmp(&b.token))
}
