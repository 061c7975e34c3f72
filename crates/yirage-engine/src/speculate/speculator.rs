//! Joins the proposers, the controller and the engine: which drafts go into the next step, and what became of them.

use super::acceptance::{Acceptance, DraftSource};
use super::controller::{DecodeStepMeasurement, DraftLengthController, DraftProposal, StepCost};
use super::draft::{DraftJob, DraftModel, DraftSequence};
use super::lookup::Lookup;
use crate::error::EngineError;
use crate::options::{Speculation, SpeculationControl};
use crate::sampling::{CheckedParams, TokenCounts};
use crate::scheduler::SeqId;
use std::collections::HashMap;
use std::ops::Range;
use std::time::Instant;

/// What a decoding sequence is to the speculator.
pub(crate) struct DecodingSequence<'a> {
    pub(crate) seq: SeqId,
    /// Drafts that could become tokens.
    pub(crate) draft_capacity: usize,
    pub(crate) params: &'a CheckedParams,
    pub(crate) counts: &'a TokenCounts,
}

/// What is kept of a sequence.
struct SpeculationState {
    lookup: Option<Lookup>,
    /// All its tokens; only kept for a draft model.
    tokens: Vec<u32>,
    /// Positions it will have when it is whole.
    whole: u32,
    /// Distinguishes cached beginnings.
    salt: Vec<u8>,
    acceptance: Acceptance,
    /// Whether the drafts of the step in flight are the draft model's.
    by_model: bool,
    /// Seconds that its tokens would have taken one by one, and those they took.
    plain: f64,
    spent: f64,
}

impl SpeculationState {
    /// What a draft model sees of it.
    fn seen(&self, seq: SeqId) -> DraftSequence<'_> {
        DraftSequence { seq, tokens: &self.tokens, whole: self.whole, salt: &self.salt }
    }
}

/// Guesses for an engine.
pub(crate) struct Speculator {
    options: Speculation,
    controller: DraftLengthController,
    /// Acceptance over all sequences.
    all: Acceptance,
    own: HashMap<SeqId, SpeculationState>,
    model: Option<DraftModel>,
    /// Seconds and tokens of the draft model's reading.
    read: (f64, usize),
    /// Of the drafts for the next step: the most of a sequence that the draft model made, its seconds, and those of its
    /// reading.
    draft_timing: (u32, f64, f64),
}

impl Speculator {
    pub(crate) fn new(options: Speculation) -> Speculator {
        Speculator {
            options,
            controller: DraftLengthController::new(0.0),
            all: Acceptance::default(),
            own: HashMap::new(),
            model: None,
            read: (0.0, 0),
            draft_timing: (0, 0.0, 0.0),
        }
    }

    /// Takes a draft model whose weights are `share` times those of the model.
    pub(crate) fn set_model(&mut self, model: DraftModel, share: f64) {
        (self.model, self.controller) = (Some(model), DraftLengthController::new(share));
    }

    pub(crate) fn model(&self) -> Option<&DraftModel> {
        self.model.as_ref()
    }

    /// Whether nothing is ever guessed.
    pub(crate) fn is_off(&self) -> bool {
        self.options.most == 0 || !(self.options.lookup || self.model.is_some())
    }

    /// What steps took: [`DraftLengthController::measured`].
    pub(crate) fn measured(&self) -> Vec<StepCost> {
        self.controller.measured().collect()
    }

    /// Takes a new sequence, which will have `whole` positions; `salt` distinguishes its cached beginnings.
    pub(crate) fn add(&mut self, seq: SeqId, prompt: &[u32], whole: u32, salt: Vec<u8>) {
        if self.is_off() {
            return;
        }
        if self.model.is_some() {
            // A draft model that one text switched off is tried again with others.
            self.all.fade(DraftSource::MODEL);
        }
        let own = SpeculationState {
            lookup: self.options.lookup.then(|| Lookup::new(prompt)),
            tokens: if self.model.is_some() { prompt.to_vec() } else { Vec::new() },
            whole,
            salt,
            acceptance: Acceptance::default(),
            by_model: false,
            plain: 0.0,
            spent: 0.0,
        };
        self.own.insert(seq, own);
    }

    /// Takes a sequence's next token.
    pub(crate) fn push(&mut self, seq: SeqId, token: u32) {
        let Some(own) = self.own.get_mut(&seq) else { return };
        if let Some(seen) = own.lookup.as_mut().and_then(|lookup| lookup.push(token)) {
            own.acceptance.observe(&mut self.all, DraftSource::copied(seen.length), seen.right);
        }
        if self.model.is_some() {
            own.tokens.push(token);
        }
    }

    /// Whether an MTP head reads the model's hidden states.
    pub(crate) fn reads_hidden(&self) -> bool {
        self.model.as_ref().is_some_and(DraftModel::reads_hidden)
    }

    /// Takes the model's hidden states of a sequence's positions from `start` on: the rows `tokens` of all of a step.
    pub(crate) fn observe_hidden(&mut self, seq: SeqId, start: usize, tokens: Range<usize>, all: &[f32]) {
        if let (Some(model), Some(own)) = (&mut self.model, self.own.get(&seq)) {
            model.observe_hidden(own.seen(seq), start, tokens, all);
        }
    }

    /// Has an MTP head read what waits, so that rows neither pile up nor are a step's burden later.
    fn read_waiting(&mut self) -> Result<(), EngineError> {
        let Some(model) = self.model.as_mut().filter(|model| model.reads_hidden()) else { return Ok(()) };
        let mut waiting: Vec<SeqId> = self.own.keys().copied().filter(|&seq| model.has_waiting(seq)).collect();
        waiting.sort_unstable();
        let seen: Vec<DraftSequence<'_>> =
            waiting.iter().filter_map(|&seq| Some(self.own.get(&seq)?.seen(seq))).collect();
        let started = Instant::now();
        model.read(&seen)?;
        self.draft_timing.2 += started.elapsed().as_secs_f64();
        Ok(())
    }

    /// Forgets a sequence; the factor by which guessing is estimated to have made it faster, if it decoded.
    pub(crate) fn remove(&mut self, seq: SeqId) -> Option<f64> {
        if let Some(model) = &mut self.model {
            model.forget(seq);
        }
        let own = self.own.remove(&seq)?;
        (own.spent > 0.0).then(|| own.plain / own.spent)
    }

    /// Drafts for the next step, which has these decoding sequences and computes prompts besides or not.
    pub(crate) fn propose(
        &mut self,
        views: &[DecodingSequence<'_>],
        beside_prompts: bool,
    ) -> Result<Vec<(SeqId, Vec<u32>)>, EngineError> {
        self.draft_timing = (0, 0.0, 0.0);
        self.read_waiting()?;
        if self.is_off() || views.is_empty() {
            return Ok(Vec::new());
        }
        let ways = self.draft_alternatives(views, beside_prompts);
        let all = |wishes: &Vec<DraftProposal>| wishes.iter().map(|wish| wish.chances.len()).collect();
        let decided = match self.options.control {
            // By lookup, or by both where there is a draft model.
            SpeculationControl::Most => {
                ways.iter().enumerate().take(2).next_back().map(|(way, wishes)| (way, all(wishes)))
            }
            SpeculationControl::Measured if beside_prompts => {
                Some((0, self.controller.decide_beside_prompts(&ways[0])))
            }
            SpeculationControl::Measured => self.controller.decide(views.len() as u32, &ways),
        };
        let Some((way, lengths)) = decided else { return Ok(Vec::new()) };
        let mut drafts = Vec::new();
        let mut jobs: Vec<(&DecodingSequence<'_>, usize)> = Vec::new();
        for ((view, wish), &length) in views.iter().zip(&ways[way]).zip(&lengths) {
            let Some(own) = self.own.get_mut(&view.seq).filter(|_| length > 0) else { continue };
            own.by_model = wish.model;
            match &own.lookup {
                _ if wish.model => jobs.push((view, length)),
                Some(lookup) => drafts.push((view.seq, lookup.guess(length))),
                None => {}
            }
        }
        drafts.extend(self.draft_with_model(&jobs)?);
        Ok(drafts)
    }

    /// The ways to guess: by lookup; by lookup where something is found and else by the draft model; by the draft model.
    fn draft_alternatives(&self, views: &[DecodingSequence<'_>], beside_prompts: bool) -> Vec<Vec<DraftProposal>> {
        let found: Vec<DraftProposal> = views.iter().map(|view| self.lookup_proposal(view)).collect();
        let Some(model) = self.model.as_ref().filter(|_| !beside_prompts) else { return vec![found] };
        let asked: Vec<DraftProposal> = views.iter().map(|view| self.model_proposal(model, view)).collect();
        let either = |(found, asked): (&DraftProposal, &DraftProposal)| {
            if found.chances.is_empty() { asked } else { found }.clone()
        };
        let either = found.iter().zip(&asked).map(either).collect();
        vec![found, either, asked]
    }

    /// Drafts that a sequence can make, and what is kept of it.
    fn draft_capacity(&self, view: &DecodingSequence<'_>) -> Option<(usize, &SpeculationState)> {
        Some((view.draft_capacity.min(self.options.most as usize), self.own.get(&view.seq)?))
    }

    /// What looking up would guess of a sequence.
    fn lookup_proposal(&self, view: &DecodingSequence<'_>) -> DraftProposal {
        let chances = self.draft_capacity(view).and_then(|(most, own)| {
            let least = (self.options.ngram as usize).max(1);
            let length = own.lookup.as_ref().map(Lookup::length).filter(|&length| length >= least)?;
            let share = |at| own.acceptance.rate(&self.all, DraftSource::copied(length + at));
            Some((0..most).map(share).collect())
        });
        DraftProposal { chances: chances.unwrap_or_default(), model: false, backlog: 0.0 }
    }

    /// What the draft model would guess of a sequence.
    fn model_proposal(&self, model: &DraftModel, view: &DecodingSequence<'_>) -> DraftProposal {
        let Some((most, own)) = self.draft_capacity(view) else {
            return DraftProposal { chances: Vec::new(), model: true, backlog: 0.0 };
        };
        if !model.can_draft(own.seen(view.seq)) {
            return DraftProposal { chances: Vec::new(), model: true, backlog: 0.0 };
        }
        // What it must read first. A prompt is read once for all tokens that may come.
        let unread = model.backlog(view.seq, &own.tokens);
        let per_token = if self.read.1 > 0 { self.read.0 / self.read.1 as f64 } else { 0.0 };
        let left = if model.knows(view.seq) { 1 } else { (own.whole as usize).saturating_sub(own.tokens.len()).max(1) };
        let chances = vec![own.acceptance.rate(&self.all, DraftSource::MODEL); most];
        DraftProposal { chances, model: true, backlog: unread as f64 * per_token / left as f64 }
    }

    fn draft_with_model(
        &mut self,
        jobs: &[(&DecodingSequence<'_>, usize)],
    ) -> Result<Vec<(SeqId, Vec<u32>)>, EngineError> {
        let Some(model) = self.model.as_mut().filter(|_| !jobs.is_empty()) else { return Ok(Vec::new()) };
        let own = &self.own;
        let jobs: Vec<DraftJob<'_>> = jobs
            .iter()
            .filter_map(|&(view, length)| {
                let of = own.get(&view.seq)?.seen(view.seq);
                let DecodingSequence { params, counts, .. } = *view;
                Some(DraftJob { of, length, params, counts })
            })
            .collect();
        let sequences: Vec<DraftSequence<'_>> = jobs.iter().map(|job| job.of).collect();
        let unread: usize = sequences.iter().map(|of| model.backlog(of.seq, of.tokens)).sum();
        let started = Instant::now();
        model.read(&sequences)?;
        let reading = started.elapsed().as_secs_f64();
        let drafts = model.draft(&jobs)?;
        let drafting = started.elapsed().as_secs_f64() - reading;
        self.read = (self.read.0 + reading, self.read.1 + unread);
        let longest = drafts.iter().map(Vec::len).max().unwrap_or(0);
        self.draft_timing = (longest as u32, drafting, self.draft_timing.2 + reading);
        Ok(jobs.iter().map(|job| job.of.seq).zip(drafts).collect())
    }

    /// Takes what became of the drafts of a sequence: how many there were, and how many of them were right.
    pub(crate) fn verified(&mut self, seq: SeqId, drafts: usize, right: usize) {
        // A lookup learns from every token.
        let Some(own) = self.own.get_mut(&seq).filter(|own| own.by_model) else { return };
        for at in 0..drafts.min(right + 1) {
            own.acceptance.observe(&mut self.all, DraftSource::MODEL, at < right);
        }
    }

    /// Takes what a step of decoding sequences took: (sequence, tokens computed, tokens given) each.
    pub(crate) fn ran(&mut self, seqs: &[(SeqId, u32, u32)], seconds: f64) {
        if self.is_off() || seqs.is_empty() {
            return;
        }
        let (model_drafts, model_seconds, reading) = std::mem::take(&mut self.draft_timing);
        let (rows, tokens) = seqs.iter().fold((0, 0), |(rows, tokens), of| (rows + of.1, tokens + of.2));
        let count = seqs.len() as u32;
        self.controller.ran(DecodeStepMeasurement { seqs: count, rows, tokens, seconds, model_drafts, model_seconds });
        let spent = (seconds + model_seconds + reading) / f64::from(count);
        let plain = self.controller.plain_seconds(count).filter(|_| rows > count).unwrap_or(seconds);
        for (seq, _, tokens) in seqs {
            if let Some(own) = self.own.get_mut(seq) {
                own.spent += spent;
                own.plain += plain / f64::from(count) * f64::from(*tokens);
            }
        }
    }
}
