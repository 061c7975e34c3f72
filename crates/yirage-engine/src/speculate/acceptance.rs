//! How often guesses are right: shares of a sequence, leaning on those of all before it.
//!
//! Each token of a guess has a [`DraftSource`] of its own: a copied token that follows sixty agreeing ones is not like one that
//! follows two. The chance that a guess is right up to its n-th token is the product of its tokens' shares.
//!
//! This module deliberately knows no costs and no tokens.

/// Kinds there are.
const KINDS: usize = 10;

/// What weight the shares of all sequences have beside a sequence's own tokens.
const PRIOR_WEIGHT: f64 = 3.0;

/// How much of a sequence's past counts after each token; about the last twenty do.
const KEEP: f64 = 0.95;

/// The same for all sequences together.
const KEEP_ALL: f64 = 0.995;

/// Where a guessed token comes from, and how sure that source is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DraftSource(usize);

impl DraftSource {
    /// A token of a draft model.
    pub const MODEL: DraftSource = DraftSource(0);

    /// A token that followed `length` agreeing ones.
    pub fn copied(length: usize) -> DraftSource {
        let bounds = [3, 4, 6, 8, 12, 16, 24, 40];
        DraftSource(1 + bounds.iter().position(|&bound| length < bound).unwrap_or(bounds.len()))
    }

    /// The share that is assumed before anything is known: copies of little agreement are mostly wrong.
    fn initial(self) -> f64 {
        [0.7, 0.25, 0.35, 0.45, 0.55, 0.6, 0.7, 0.75, 0.8, 0.85][self.0]
    }
}

/// Right and all tokens of a kind; the past fades.
#[derive(Clone, Copy, Debug, Default)]
struct AcceptanceCount {
    right: f64,
    all: f64,
}

impl AcceptanceCount {
    fn push(&mut self, right: bool, keep: f64) {
        self.right = self.right * keep + f64::from(u8::from(right));
        self.all = self.all * keep + 1.0;
    }

    fn rate(self, prior: f64) -> f64 {
        (self.right + PRIOR_WEIGHT * prior) / (self.all + PRIOR_WEIGHT)
    }
}

/// Counts by kind: of one sequence, or of all.
#[derive(Clone, Copy, Debug, Default)]
pub struct Acceptance {
    counts: [AcceptanceCount; KINDS],
}

impl Acceptance {
    /// Takes one token's fate, for the sequence and for all.
    pub fn observe(&mut self, all: &mut Acceptance, kind: DraftSource, right: bool) {
        self.counts[kind.0].push(right, KEEP);
        all.counts[kind.0].push(right, KEEP_ALL);
    }

    /// Halves the weight of what was seen of a kind.
    pub fn fade(&mut self, kind: DraftSource) {
        let count = &mut self.counts[kind.0];
        (count.right, count.all) = (count.right / 2.0, count.all / 2.0);
    }

    /// The share of right tokens of a kind: the sequence's own, leaning on that of all, which leans on an assumption.
    pub fn rate(&self, all: &Acceptance, kind: DraftSource) -> f64 {
        let prior = all.counts[kind.0].rate(kind.initial());
        self.counts[kind.0].rate(prior)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_move_from_the_assumption_to_what_is_seen() {
        let (mut own, mut all) = (Acceptance::default(), Acceptance::default());
        let kind = DraftSource::copied(2);
        assert!((own.rate(&all, kind) - 0.25).abs() < 1e-12);
        for _ in 0..40 {
            own.observe(&mut all, kind, true);
        }
        assert!(own.rate(&all, kind) > 0.95);
        let other = Acceptance::default();
        let (a, b) = (other.rate(&all, kind), other.rate(&all, DraftSource::copied(30)));
        assert!(a > 0.85 && (b - 0.8).abs() < 1e-12, "{a} {b}: another sequence begins with what all have seen");
        for _ in 0..40 {
            own.observe(&mut all, kind, false);
        }
        assert!(own.rate(&all, kind) < 0.2, "{}: the past fades", own.rate(&all, kind));
    }

    #[test]
    fn longer_agreement_is_another_kind_and_lengths_are_bounded() {
        let kinds: Vec<DraftSource> = (2..100).map(DraftSource::copied).collect();
        assert!(kinds.windows(2).all(|pair| pair[0].0 <= pair[1].0));
        assert_eq!(kinds.last().map(|kind| kind.0), Some(KINDS - 1));
        assert_eq!(kinds[0].0, 1);
    }
}
