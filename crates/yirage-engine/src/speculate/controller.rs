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
//! Estimates can be wrong, so there is an account besides for each way to guess, in units of plain steps. Each plain step
//! pays in [`ALLOWANCE`]; each step with drafts pays in what it gained or takes out what it lost, by measured time. Drafts,
//! trials of sizes nobody has measured included, need an account that is not overdrawn. What guessing can lose is
//! thereby bounded: the allowance, the credit at the beginning, one step, and what the first step of each size takes more
//! than others, which nobody can know before. Sizes are tried in doublings, so that one step cannot be much. One exception:
//! an overdrawn account still lets through drafts that win even if half of what is expected of them comes true. No account
//! bounds these; they end when the measured share of right ones falls.
//!
//! This module deliberately knows no clock (it is told seconds), no tokens and no sequences beyond their number.

use super::costs::Curve;
use std::collections::BTreeMap;

/// What a plain step allows to be lost on trials, in plain steps.
pub const ALLOWANCE: f64 = 0.01;

/// Credit at the beginning, in plain steps.
const INITIAL_CREDIT: f64 = 0.75;

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

/// Of what drafts are expected to give, the share that must be enough for them while the account is overdrawn: a few long
/// guesses that were wrong do not end short ones that are right.
const CAUTION: f64 = 0.5;

/// Numbers of sequences whose costs are kept; of more the nearest is used.
const CURVES: u32 = 64;

/// One sequence's guess.
#[derive(Clone, Debug, PartialEq)]
pub struct DraftProposal {
    /// For each draft, the chance that it is right if all before it are.
    pub chances: Vec<f64>,
    /// Whether a draft model makes the drafts, which takes time.
    pub model: bool,
    /// Seconds that the draft model needs before its first draft, beyond what one token more takes.
    pub backlog: f64,
}

/// What a step was and took.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct DecodeStepMeasurement {
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
pub struct DraftLengthController {
    /// Seconds of a step by its rows, for each number of sequences.
    steps: BTreeMap<u32, Curve>,
    /// Seconds of the draft model for a draft of each, for each number of sequences.
    model: BTreeMap<u32, Curve>,
    /// What a draft is taken to cost until one is measured, in plain steps of one sequence.
    model_share: f64,
    /// The accounts, of lookups and of the draft model: neither pays for what the other loses.
    credit: [f64; 2],
    since_plain: u32,
}

/// A draft of a wish, as it is weighed.
struct DraftCandidate {
    wish: usize,
    worth: f64,
}

impl DraftLengthController {
    /// Without measurements. A step of the draft model is expected to take `model_share` of the model's: what it reads of
    /// memory.
    pub fn new(model_share: f64) -> DraftLengthController {
        let (steps, model) = (BTreeMap::new(), BTreeMap::new());
        DraftLengthController { steps, model, model_share, credit: [INITIAL_CREDIT; 2], since_plain: 0 }
    }

    /// Which of several ways to guess, each with a wish for every sequence, a step of `seqs` decoding sequences takes, and
    /// how many drafts of each wish it verifies; none where it takes none.
    pub fn decide(&self, seqs: u32, ways: &[Vec<DraftProposal>]) -> Option<(usize, Vec<usize>)> {
        let plain = self.plain_seconds(seqs).filter(|_| self.since_plain < REFRESH)?;
        let best = |(way, wishes): (usize, &Vec<DraftProposal>)| Some((way, self.best(seqs, wishes, plain, 1.0)?));
        let wanted: Vec<_> = ways.iter().enumerate().filter_map(best).collect();
        if wanted.is_empty() {
            let trial = |(way, wishes): (usize, &Vec<DraftProposal>)| Some((way, self.trial(seqs, wishes, plain)?));
            return ways.iter().enumerate().find_map(trial);
        }
        let pay = |(way, (rate, lengths)): (usize, (f64, Vec<usize>))| {
            let paid = self.credit[account(&ways[way], &lengths)] > 0.0;
            let best = if paid { Some((rate, lengths)) } else { self.best(seqs, &ways[way], plain, CAUTION) };
            Some((way, best?))
        };
        let payable = wanted.into_iter().filter_map(pay);
        // Of equals the first.
        let (way, (_, lengths)) = payable.rev().max_by(|(_, (a, _)), (_, (b, _))| a.total_cmp(b))?;
        Some((way, lengths))
    }

    /// The drafts of most tokens a second, and that rate, if it is better than that of a plain step; of what drafts are
    /// expected to give the share `trust` counts.
    fn best(&self, seqs: u32, wishes: &[DraftProposal], plain: f64, trust: f64) -> Option<(f64, Vec<usize>)> {
        let known = self.steps.get(&curve(seqs)).and_then(|steps| steps.largest(TRIALS)).unwrap_or(seqs);
        let tried = known.saturating_sub(seqs) as usize;
        let most = (2 * tried + 1).max(seqs as usize);
        let (mut best, mut best_rate) = (None, MARGIN * f64::from(seqs) / plain);
        let mut weigh = |lengths: &[usize], tokens: f64| {
            let tokens = f64::from(seqs) + trust * (tokens - f64::from(seqs));
            let rate = tokens / self.seconds(seqs, wishes, lengths, plain);
            if lengths.iter().sum::<usize>() <= most && rate > best_rate {
                (best_rate, best) = (rate, Some(lengths.to_vec()));
            }
        };
        let (mut greedy, mut expected, mut longest) = (vec![0; wishes.len()], f64::from(seqs), 0);
        let order = by_worth(wishes);
        for candidate in order.iter().take(most) {
            let length = &mut greedy[candidate.wish];
            (*length, expected) = (*length + 1, expected + candidate.worth);
            let deeper = wishes[candidate.wish].model && *length > longest;
            longest += usize::from(deeper);
            weigh(&greedy, expected);
            if deeper {
                let level = level(wishes, &greedy);
                weigh(&level, tokens(seqs, wishes, &level));
            }
        }
        let explores = trust == 1.0 && order.len() >= most && self.explores(seqs, wishes, &greedy, plain, best_rate);
        Some((best_rate, best.map(|best| if explores { greedy } else { best })?))
    }

    /// Whether these drafts are tried though they are not expected to be best. A curve that rises may have a flat behind
    /// it, so while guessing wins a size that is not known is tried if it would be better at the price of the largest that
    /// is, and if the account can pay for it should a row cost as much as there and half of the guesses be wrong. Not
    /// where drafts cost time themselves: those rise for sure.
    fn explores(&self, seqs: u32, wishes: &[DraftProposal], lengths: &[usize], plain: f64, best_rate: f64) -> bool {
        let rows = seqs + lengths.iter().sum::<usize>() as u32;
        let Some(steps) = self.steps.get(&curve(seqs)).filter(|steps| steps.count(rows) < TRIALS) else { return false };
        let known = steps.largest(TRIALS).and_then(|known| Some((known, steps.seconds(known)?)));
        let tokens = tokens(seqs, wishes, lengths);
        account(wishes, lengths) == 0
            && known.is_some_and(|(known, seconds)| {
                let loss = seconds / plain * f64::from(rows) / f64::from(known) - 0.5 * tokens / f64::from(seqs);
                tokens / seconds > best_rate && loss <= self.credit[0]
            })
    }

    /// Seconds of a plain step of so many sequences; none before `TRIALS` were measured, since everything is compared
    /// with it.
    pub fn plain_seconds(&self, seqs: u32) -> Option<f64> {
        self.steps.get(&curve(seqs)).filter(|steps| steps.count(seqs) >= TRIALS)?.seconds(seqs)
    }

    /// Seconds expected of a step with these drafts, the draft model's included.
    fn seconds(&self, seqs: u32, wishes: &[DraftProposal], lengths: &[usize], plain: f64) -> f64 {
        let rows = seqs + lengths.iter().sum::<usize>() as u32;
        let step = self.steps.get(&curve(seqs)).and_then(|steps| steps.seconds(rows)).unwrap_or(plain);
        let asked = || wishes.iter().zip(lengths).filter(|(wish, length)| wish.model && **length > 0);
        let longest = asked().map(|(_, &length)| length as u32).max();
        let model = longest.map_or(0.0, |longest| self.model_seconds(seqs, longest, plain));
        step + model + asked().map(|(wish, _)| wish.backlog).sum::<f64>()
    }

    /// Seconds that the draft model takes for so many drafts, each of which is a step of it.
    fn model_seconds(&self, seqs: u32, drafts: u32, plain: f64) -> f64 {
        let one = self.model.get(&curve(seqs)).and_then(|model| model.seconds(1));
        one.unwrap_or(self.model_share * plain) * f64::from(drafts)
    }

    /// A step that is expected to lose a little, to learn what it costs or whether guesses have become better, if the
    /// account can pay for it: with one draft, or with one for each sequence that asks a draft model, whichever loses less.
    fn trial(&self, seqs: u32, wishes: &[DraftProposal], plain: f64) -> Option<Vec<usize>> {
        let unknown = self.steps.get(&curve(seqs)).is_none_or(|steps| steps.count(seqs + 1) < TRIALS);
        // What a lookup would have guessed is seen without trying; a draft model must be tried.
        let order = by_worth(wishes);
        let first = order.iter().find(|c| (unknown || wishes[c.wish].model) && c.worth >= LEAST_WORTH)?;
        let mut one = vec![0; wishes.len()];
        one[first.wish] = 1;
        let loss = |lengths: Vec<usize>| {
            let took = self.seconds(seqs, wishes, &lengths, plain) / plain;
            (took - tokens(seqs, wishes, &lengths) / f64::from(seqs), lengths)
        };
        let (one, all) = (loss(one.clone()), loss(level(wishes, &one)));
        let (least, lengths) = if all.0 < one.0 { all } else { one };
        (least <= self.credit[account(wishes, &lengths)]).then_some(lengths)
    }

    /// Drafts for each of `wishes` in a step that also computes prompts. Such a step is long anyway and what a row more
    /// costs in it is not known from decoding, so it takes drafts that are likelier right than not.
    pub fn decide_beside_prompts(&self, wishes: &[DraftProposal]) -> Vec<usize> {
        let length =
            |wish: &DraftProposal| if wish.model { 0 } else { worths(wish).take_while(|&worth| worth > 0.5).count() };
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
    pub fn ran(&mut self, ran: DecodeStepMeasurement) {
        let curve = curve(ran.seqs);
        let steps = self.steps.entry(curve).or_default();
        let counts = steps.measured(ran.rows, ran.seconds);
        // What it took, not what such steps used to take; but neither the first of a size nor a moment in which the machine
        // did something else is a loss of guessing.
        let took = steps.seconds(ran.rows).map_or(counts, |median| counts.min(DISTURBED * median));
        let mut model_seconds = ran.model_seconds;
        if ran.model_drafts > 0 {
            // The first draft touches memory for the first time too.
            if !self.model.contains_key(&curve) {
                let expected =
                    self.plain_seconds(ran.seqs).map(|plain| self.model_seconds(ran.seqs, ran.model_drafts, plain));
                model_seconds = model_seconds.min(expected.unwrap_or(f64::INFINITY));
            }
            self.model.entry(curve).or_default().measured(1, model_seconds / f64::from(ran.model_drafts));
        }
        if ran.rows == ran.seqs {
            self.since_plain = 0;
            self.credit = self.credit.map(|credit| (credit + ALLOWANCE).min(CREDIT.1));
            return;
        }
        self.since_plain += 1;
        let Some(plain) = self.plain_seconds(ran.seqs) else { return };
        let gained = f64::from(ran.tokens) / f64::from(ran.seqs) - (took + model_seconds) / plain;
        let credit = &mut self.credit[usize::from(ran.model_drafts > 0)];
        *credit = (*credit + gained).clamp(CREDIT.0, CREDIT.1);
    }
}

/// Under which number the costs of so many sequences are kept.
fn curve(seqs: u32) -> u32 {
    seqs.min(CURVES)
}

/// Which account pays for these drafts.
fn account(wishes: &[DraftProposal], lengths: &[usize]) -> usize {
    usize::from(wishes.iter().zip(lengths).any(|(wish, &length)| wish.model && length > 0))
}

/// As many drafts for each sequence that asks the draft model as for the one that asks most: it makes them together.
fn level(wishes: &[DraftProposal], lengths: &[usize]) -> Vec<usize> {
    let each = || wishes.iter().zip(lengths);
    let longest = each().filter(|(wish, _)| wish.model).map(|(_, &length)| length).max().unwrap_or(0);
    let of =
        |(wish, &length): (&DraftProposal, &usize)| if wish.model { longest.min(wish.chances.len()) } else { length };
    each().map(of).collect()
}

/// The chance of each draft of a wish that it and all before it are right.
fn worths(wish: &DraftProposal) -> impl Iterator<Item = f64> {
    wish.chances.iter().scan(1.0, |worth, chance| {
        *worth *= chance.clamp(0.0, 1.0);
        Some(*worth)
    })
}

/// Tokens expected of a step with these drafts.
fn tokens(seqs: u32, wishes: &[DraftProposal], lengths: &[usize]) -> f64 {
    f64::from(seqs) + wishes.iter().zip(lengths).flat_map(|(wish, &length)| worths(wish).take(length)).sum::<f64>()
}

/// Drafts of all wishes, the worthiest first; of one wish always in their order.
fn by_worth(wishes: &[DraftProposal]) -> Vec<DraftCandidate> {
    let of = |(wish, from): (usize, &DraftProposal)| {
        worths(from).map(|worth| DraftCandidate { wish, worth }).collect::<Vec<_>>()
    };
    let mut all: Vec<DraftCandidate> = wishes.iter().enumerate().flat_map(of).collect();
    // Stable, and the worths of a wish never rise.
    all.sort_by(|a, b| b.worth.total_cmp(&a.worth));
    all
}
