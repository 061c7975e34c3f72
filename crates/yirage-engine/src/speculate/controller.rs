//! How many drafts a step verifies: as many as make the expected tokens per second most, and none when guessing loses.
//!
//! A step of `s` sequences costs C(s) seconds and gives s tokens. With n drafts it costs C(s + n), to which a draft
//! model's own time comes, and gives one token more for each draft that is accepted. A draft is accepted if it and all
//! before it are right, so its worth is the product of its sequence's chances up to it. Taking drafts of all sequences
//! in order of worth gives the best n drafts for every n; each n is then weighed by its measured cost. That is the
//! optimum for any cost curve, also for the staircases of kernels that take tokens in tiles. (The expected gain for one
//! sequence and equal chances is that of Y. Leviathan et al., "Fast Inference from Transformers via Speculative
//! Decoding", 2023, section 3.2.)
//!
//! Estimates can be wrong, so there is an account besides, in units of plain steps. Each plain step pays in
//! [`ALLOWANCE`]; each step with drafts pays in what it gained or takes out what it lost, by measured time. Drafts,
//! trials of sizes nobody has measured included, need an account that is not overdrawn. What guessing can lose is
//! thereby bounded: the allowance, the credit at the beginning, and one step. Sizes are tried in doublings, so that one
//! step cannot be much.
//!
//! This module deliberately knows no clock (it is told seconds), no tokens and no sequences beyond their number.

use super::costs::Curve;
use std::collections::BTreeMap;

/// What a plain step allows to be lost on trials, in plain steps.
pub const ALLOWANCE: f64 = 0.01;

/// Credit at the beginning, in plain steps.
const INITIAL_CREDIT: f64 = 0.5;

/// Bounds of the account: gains of long ago are no licence to lose, and a bad moment is no sentence for ever.
const CREDIT: (f64, f64) = (-5.0, 3.0);

/// By how much a step with drafts must be expected to be better.
const MARGIN: f64 = 1.03;

/// Steps with drafts after which one without is taken, so that what drafts are compared with is not of long ago.
const REFRESH: u32 = 96;

/// How many times its median a step may take and still be taken at its word.
const DISTURBED: f64 = 3.0;

/// Measurements of one size after which it counts as known.
const TRIALS: usize = 2;

/// The worth below which a draft is not worth a trial.
const LEAST_WORTH: f64 = 0.4;

/// Numbers of sequences whose costs are kept; of more the nearest is used.
const CURVES: u32 = 64;

/// One sequence's guess.
#[derive(Clone, Debug, PartialEq)]
pub struct Wish {
    /// For each draft, the chance that it is right if all before it are.
    pub chances: Vec<f64>,
    /// Whether a draft model makes the drafts, which takes time.
    pub model: bool,
    /// Seconds that the draft model needs before its first draft, beyond what one token more takes.
    pub backlog: f64,
}

/// What a step was and took.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Ran {
    /// Sequences in it, all of which decode.
    pub seqs: u32,
    /// Tokens it computed, drafts included.
    pub rows: u32,
    /// Tokens it gave.
    pub tokens: u32,
    /// Seconds it took.
    pub seconds: f64,
    /// The most drafts that a draft model made for one of them, and the seconds that took; 0 if none did.
    pub model_drafts: u32,
    /// Seconds of the draft model.
    pub model_seconds: f64,
}

/// What steps of one size took.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct StepCost {
    /// Decoding sequences.
    pub seqs: u32,
    /// Tokens computed, drafts included.
    pub rows: u32,
    /// How often.
    pub steps: usize,
    /// The median of the newest, in seconds.
    pub seconds: f64,
}

/// Decides lengths from measured costs. Equal calls give equal answers.
#[derive(Clone, Debug)]
pub struct Controller {
    /// Seconds of a step by its rows, for each number of sequences.
    steps: BTreeMap<u32, Curve>,
    /// Seconds of the draft model by its drafts, for each number of sequences.
    model: BTreeMap<u32, Curve>,
    credit: f64,
    since_plain: u32,
}

impl Default for Controller {
    fn default() -> Self {
        Controller { steps: BTreeMap::new(), model: BTreeMap::new(), credit: INITIAL_CREDIT, since_plain: 0 }
    }
}

/// A draft of a wish, as it is weighed.
struct Candidate {
    wish: usize,
    worth: f64,
}

impl Controller {
    /// Drafts to verify for each of `wishes` in a step of `seqs` decoding sequences.
    pub fn decide(&self, seqs: u32, wishes: &[Wish]) -> Vec<usize> {
        let nothing = vec![0; wishes.len()];
        let Some(plain) = self.plain_seconds(seqs) else { return nothing };
        if self.since_plain >= REFRESH {
            return nothing;
        }
        let order = by_worth(wishes);
        let largest = self.steps.get(&curve(seqs)).and_then(Curve::largest).unwrap_or(seqs);
        let tried = largest.saturating_sub(seqs) as usize;
        let most = (2 * tried + 1).min(order.len());
        let mut lengths = nothing.clone();
        let (mut expected, mut best, mut best_rate) =
            (f64::from(seqs), nothing.clone(), MARGIN * f64::from(seqs) / plain);
        for (n, candidate) in order.iter().take(most).enumerate() {
            lengths[candidate.wish] += 1;
            expected += candidate.worth;
            let seconds = self.seconds(seqs, n as u32 + 1, wishes, &lengths, plain);
            if expected / seconds > best_rate {
                (best_rate, best) = (expected / seconds, lengths.clone());
            }
        }
        let wanted = best.iter().any(|&length| length > 0);
        match wanted {
            true if self.credit > 0.0 => best,
            true => nothing,
            false => self.trial(seqs, wishes, &order, plain).unwrap_or(nothing),
        }
    }

    /// Seconds of a plain step of so many sequences; none before `TRIALS` were measured, since everything is compared
    /// with it.
    pub fn plain_seconds(&self, seqs: u32) -> Option<f64> {
        self.steps.get(&curve(seqs)).filter(|steps| steps.count(seqs) >= TRIALS)?.seconds(seqs)
    }

    /// Seconds expected of a step with these drafts, the draft model's included.
    fn seconds(&self, seqs: u32, drafts: u32, wishes: &[Wish], lengths: &[usize], plain: f64) -> f64 {
        let step = self.steps.get(&curve(seqs)).and_then(|steps| steps.seconds(seqs + drafts));
        let drafted = || wishes.iter().zip(lengths).filter(|(wish, length)| wish.model && **length > 0);
        let longest = drafted().map(|(_, &length)| length as u32).max();
        let model = longest.map_or(0.0, |longest| self.model_seconds(seqs, longest, plain));
        step.unwrap_or(plain) + model + drafted().map(|(wish, _)| wish.backlog).sum::<f64>()
    }

    /// Seconds that the draft model takes for so many drafts; until it is measured a quarter of a plain step each.
    fn model_seconds(&self, seqs: u32, drafts: u32, plain: f64) -> f64 {
        let known = self.model.get(&curve(seqs)).and_then(|model| {
            let largest = model.largest()?;
            let seconds = model.seconds(drafts)?;
            // Beyond the largest measured every draft costs as much as those did.
            Some(if drafts > largest {
                seconds.max(model.seconds(largest)? / f64::from(largest) * f64::from(drafts))
            } else {
                seconds
            })
        });
        known.unwrap_or(0.25 * plain * f64::from(drafts))
    }

    /// A step with one draft that is expected to lose a little, to learn what it costs or whether guesses have become
    /// better, if the account can pay for it.
    fn trial(&self, seqs: u32, wishes: &[Wish], order: &[Candidate], plain: f64) -> Option<Vec<usize>> {
        let unknown = self.steps.get(&curve(seqs)).is_none_or(|steps| steps.count(seqs + 1) < TRIALS);
        // What a lookup would have guessed is seen without trying; a draft model must be tried.
        let first = order.iter().find(|c| (unknown || wishes[c.wish].model) && c.worth >= LEAST_WORTH)?;
        let mut lengths = vec![0; wishes.len()];
        lengths[first.wish] = 1;
        let gained = (f64::from(seqs) + first.worth) / f64::from(seqs);
        let loss = self.seconds(seqs, 1, wishes, &lengths, plain) / plain - gained;
        (loss <= self.credit).then_some(lengths)
    }

    /// Drafts for each of `wishes` in a step that also computes prompts. Such a step is long anyway and what a row more
    /// costs in it is not known from decoding, so it takes drafts that are likelier right than not.
    pub fn decide_beside_prompts(&self, wishes: &[Wish]) -> Vec<usize> {
        let length = |wish: &Wish| if wish.model { 0 } else { worths(wish).take_while(|&worth| worth > 0.5).count() };
        wishes.iter().map(length).collect()
    }

    /// What steps of each size took so far.
    pub fn measured(&self) -> impl Iterator<Item = StepCost> {
        let of = |(&seqs, curve): (&u32, &Curve)| {
            curve.sizes().map(move |(rows, steps, seconds)| StepCost { seqs, rows, steps, seconds }).collect::<Vec<_>>()
        };
        self.steps.iter().flat_map(of)
    }

    /// Takes what a step was; steps that also computed prompts are not told.
    pub fn ran(&mut self, ran: Ran) {
        let curve = curve(ran.seqs);
        let steps = self.steps.entry(curve).or_default();
        steps.measured(ran.rows, ran.seconds);
        // What it took, not what such steps used to take; but a moment in which the machine did something else is no loss
        // of guessing.
        let took = steps.seconds(ran.rows).map_or(ran.seconds, |median| ran.seconds.min(DISTURBED * median));
        if ran.model_drafts > 0 {
            self.model.entry(curve).or_default().measured(ran.model_drafts, ran.model_seconds);
        }
        if ran.rows == ran.seqs {
            self.since_plain = 0;
            self.credit = (self.credit + ALLOWANCE).min(CREDIT.1);
            return;
        }
        self.since_plain += 1;
        let Some(plain) = self.plain_seconds(ran.seqs) else { return };
        let gained = f64::from(ran.tokens) / f64::from(ran.seqs) - (took + ran.model_seconds) / plain;
        self.credit = (self.credit + gained).clamp(CREDIT.0, CREDIT.1);
    }
}

/// Under which number the costs of so many sequences are kept.
fn curve(seqs: u32) -> u32 {
    seqs.min(CURVES)
}

/// The chance of each draft of a wish that it and all before it are right.
fn worths(wish: &Wish) -> impl Iterator<Item = f64> {
    wish.chances.iter().scan(1.0, |worth, chance| {
        *worth *= chance.clamp(0.0, 1.0);
        Some(*worth)
    })
}

/// Drafts of all wishes, the worthiest first; of one wish always in their order.
fn by_worth(wishes: &[Wish]) -> Vec<Candidate> {
    let of = |(wish, from): (usize, &Wish)| worths(from).map(|worth| Candidate { wish, worth }).collect::<Vec<_>>();
    let mut all: Vec<Candidate> = wishes.iter().enumerate().flat_map(of).collect();
    // Stable, and the worths of a wish never rise.
    all.sort_by(|a, b| b.worth.total_cmp(&a.worth));
    all
}
