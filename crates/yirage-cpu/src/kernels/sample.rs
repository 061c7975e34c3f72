//! Tokens from logits, a sequence at a time.

use super::operand_constraints::words;
use super::{BoundKernel, Kernel, not_for, single};
use crate::bind::{Binder, CpuRunContext, FloatRows, OutputRows, Site, Word, WordArray};
use crate::shared::{MemoryPurpose, MemoryReservation, book};
use crate::walk::StageWork;
use std::sync::{Mutex, PoisonError};
use yirage_cpu_kernels::sample::{Adjustments, DrawParams, Penalties, SamplingScratch, TokenChoice, logprobs, sample};
use yirage_hal::HalError;
use yirage_ir::op::sample::{SampleFault, SampleInput, uniform};
use yirage_ir::{Dims, Op};
use yirage_plan::rules::OpRule;
use yirage_plan::{Partitioning, Stage};

impl Kernel {
    pub(super) const SAMPLE: Kernel = Kernel {
        name: "cpu/sample@1",
        regions: &[],
        rules: || vec![OpRule::new("sample", vec![words()])],
        stages: &[Stage::always(Partitioning::WorkQueue)],
        scratch: false,
        bind,
    };
}

/// What draws read, an entry a sequence.
struct Draws {
    temperature: WordArray<f32>,
    top_k: WordArray<i32>,
    top_p: WordArray<f32>,
    min_p: WordArray<f32>,
    key: WordArray<u32>,
}

/// What penalties read: factors a sequence, and the history of all.
struct Histories {
    repetition: WordArray<f32>,
    frequency: WordArray<f32>,
    presence: WordArray<f32>,
    history: WordArray<i32>,
}

/// What is reported beside the token.
struct LogprobOutputs {
    own: OutputRows<f32>,
    top: Option<(OutputRows<i32>, OutputRows<f32>)>,
}

/// A sampling op.
struct SampleTokens {
    logits: FloatRows,
    row: WordArray<i32>,
    draws: Option<Draws>,
    allowed: Option<WordArray<u32>>,
    /// Where biases go, and what they are.
    bias: Option<(WordArray<i32>, WordArray<f32>)>,
    histories: Option<Histories>,
    token: OutputRows<i32>,
    fault: OutputRows<i32>,
    logprobs: Option<LogprobOutputs>,
    /// One a worker.
    scratch: Vec<Mutex<SamplingScratch>>,
    _booked: MemoryReservation,
}

fn bind(binder: &mut Binder<'_>, n: usize) -> Result<Box<dyn BoundKernel>, HalError> {
    let sites = binder.sites(n)?;
    let [site] = &single(sites, Kernel::SAMPLE.name)?;
    let Op::Sample(op) = site.op() else { return Err(not_for(Kernel::SAMPLE.name, site)) };
    let ins = Inputs { site, slots: op.inputs() };
    let logits = site.float_rows(0)?;
    let (copies, selects) = (op.mask || op.bias || op.penalties, op.draw || op.top > 0);
    let workers = 0..binder.shared.pool.count();
    let scratch: Vec<SamplingScratch> =
        workers.map(|_| SamplingScratch::new(logits.width(), copies, selects)).collect();
    let bytes = scratch.iter().map(SamplingScratch::bytes).sum::<usize>() as u64;
    Ok(Box::new(SampleTokens {
        logits,
        row: ins.array(SampleInput::Row)?,
        draws: op.draw.then(|| ins.draws()).transpose()?,
        allowed: op.mask.then(|| ins.array(SampleInput::Allowed)).transpose()?,
        bias: op
            .bias
            .then(|| Ok::<_, HalError>((ins.array(SampleInput::BiasAt)?, ins.array(SampleInput::Bias)?)))
            .transpose()?,
        histories: op.penalties.then(|| ins.histories()).transpose()?,
        token: site.out(0)?,
        fault: site.out(1)?,
        logprobs: op.logprobs.then(|| logprobs_of(site, op.top > 0)).transpose()?,
        scratch: scratch.into_iter().map(Mutex::new).collect(),
        _booked: book(binder.shared, MemoryPurpose::Arena, bytes),
    }))
}

/// The inputs of a sampling op by what they are.
struct Inputs<'a> {
    site: &'a Site,
    slots: Vec<SampleInput>,
}

impl Inputs<'_> {
    fn array<T: Word>(&self, slot: SampleInput) -> Result<WordArray<T>, HalError> {
        let missing = || HalError::Load(format!("`sample` has no input {}", slot.name()));
        self.site.array(self.slots.iter().position(|s| *s == slot).ok_or_else(missing)?)
    }

    fn draws(&self) -> Result<Draws, HalError> {
        Ok(Draws {
            temperature: self.array(SampleInput::Temperature)?,
            top_k: self.array(SampleInput::TopK)?,
            top_p: self.array(SampleInput::TopP)?,
            min_p: self.array(SampleInput::MinP)?,
            key: self.array(SampleInput::Key)?,
        })
    }

    fn histories(&self) -> Result<Histories, HalError> {
        Ok(Histories {
            repetition: self.array(SampleInput::Repetition)?,
            frequency: self.array(SampleInput::Frequency)?,
            presence: self.array(SampleInput::Presence)?,
            history: self.array(SampleInput::History)?,
        })
    }
}

fn logprobs_of(site: &Site, top: bool) -> Result<LogprobOutputs, HalError> {
    let top = if top { Some((site.out(3)?, site.out(4)?)) } else { None };
    Ok(LogprobOutputs { own: site.out(2)?, top })
}

impl SampleTokens {
    /// # Safety
    /// Computed inputs are written.
    unsafe fn adjustments<'a>(&'a self, run: &'a CpuRunContext<'_>, s: usize) -> Adjustments<'a> {
        let mut adjustments = Adjustments::default();
        // SAFETY: what `SampleTokens::adjustments` is promised; `yirage_plan::VerifiedPlan` proves it of programs.
        unsafe {
            if let Some(allowed) = &self.allowed {
                let width = self.logits.width().div_ceil(32);
                adjustments.allowed = Some(&allowed.all(run)[s * width..][..width]);
            }
            if let Some((at, bias)) = &self.bias {
                let (at, bias) = (at.all(run), bias.all(run));
                let own = of_sequence::<2>(at, s);
                adjustments.bias = &bias[own.clone()];
                adjustments.bias_at = &at[own.start * 2..own.end * 2];
            }
            if let Some(h) = &self.histories {
                let history = h.history.all(run);
                let own = of_sequence::<3>(history, s);
                adjustments.history = &history[own.start * 3..own.end * 3];
                adjustments.penalties = Some(Penalties {
                    repetition: h.repetition.all(run)[s],
                    frequency: h.frequency.all(run)[s],
                    presence: h.presence.all(run)[s],
                });
            }
        }
        adjustments
    }

    /// # Safety
    /// Computed inputs are written.
    unsafe fn draw(&self, run: &CpuRunContext<'_>, s: usize) -> Option<DrawParams> {
        let d = self.draws.as_ref()?;
        // SAFETY: what `SampleTokens::draw` is promised; `yirage_plan::VerifiedPlan` proves it of programs.
        unsafe {
            let key = &d.key.all(run)[s * 5..][..5];
            Some(DrawParams {
                temperature: d.temperature.all(run)[s],
                top_k: usize::try_from(d.top_k.all(run)[s]).unwrap_or(0),
                top_p: d.top_p.all(run)[s],
                min_p: d.min_p.all(run)[s],
                uniform: uniform([key[0], key[1], key[2], key[3], key[4]]),
            })
        }
    }

    /// Samples sequence `s`.
    ///
    /// # Safety
    /// Computed inputs are written; nobody else samples this sequence.
    unsafe fn sequence(&self, run: &CpuRunContext<'_>, s: usize, scratch: &mut SamplingScratch) {
        let vocabulary = self.logits.width();
        // SAFETY: what `SampleTokens::sequence` is promised; outputs of different sequences are disjoint;
        // `yirage_plan::VerifiedPlan` proves it of programs.
        unsafe {
            let logits = self.logits.all(run);
            let row = usize::try_from(self.row.all(run)[s]).unwrap_or(usize::MAX);
            let row = row.checked_mul(vocabulary).and_then(|at| logits.get(at..)?.get(..vocabulary));
            let (adjustments, draw) = (self.adjustments(run, s), self.draw(run, s));
            let sampled = row
                .ok_or(SampleFault::Nothing)
                .and_then(|row| Ok((row, sample(run.isa, row, &adjustments, draw, scratch)?)));
            self.fault.some(run, s..s + 1).copy_from_slice(&SampleFault::words(sampled.as_ref().err().copied()));
            self.token.some(run, s..s + 1).fill(sampled.as_ref().map_or(-1, |(_, sampled)| sampled.token as i32));
            if let Some(logprobs) = &self.logprobs {
                logprobs.report(run, s, sampled.ok(), scratch);
            }
        }
    }
}

impl LogprobOutputs {
    /// Writes the log-probabilities of sequence `s`.
    ///
    /// # Safety
    /// Nobody else samples this sequence.
    unsafe fn report(
        &self,
        run: &CpuRunContext<'_>,
        s: usize,
        sampled: Option<(&[f32], TokenChoice)>,
        scratch: &mut SamplingScratch,
    ) {
        // SAFETY: what `LogprobOutputs::report` is promised; outputs of different sequences are disjoint;
        // `yirage_plan::VerifiedPlan` proves it of programs.
        unsafe {
            let (tokens, values): (&mut [i32], &mut [f32]) = match &self.top {
                Some((tokens, values)) => (tokens.some(run, s..s + 1), values.some(run, s..s + 1)),
                None => (&mut [], &mut []),
            };
            tokens.fill(-1);
            values.fill(f32::NEG_INFINITY);
            let own = sampled.map(|(row, sampled)| logprobs(run.isa, row, sampled, scratch, tokens, values));
            self.own.some(run, s..s + 1).fill(own.unwrap_or(f32::NEG_INFINITY));
        }
    }
}

impl BoundKernel for SampleTokens {
    fn workers(&self, dims: &Dims) -> usize {
        dims.seqs as usize
    }

    unsafe fn run(&self, _: u32, run: &CpuRunContext<'_>, work: StageWork<'_>) {
        let mut scratch = self.scratch[work.worker].lock().unwrap_or_else(PoisonError::into_inner);
        work.for_each_item(run.size(self.token.rows()), |some| {
            for s in some {
                // SAFETY: what `BoundKernel::run` is promised; workers take different sequences;
                // `yirage_plan::VerifiedPlan` proves it of programs.
                unsafe { self.sequence(run, s, &mut scratch) };
            }
        });
    }
}

/// Which entries of `N` words, ordered by their first, are sequence `s`'s.
fn of_sequence<const N: usize>(words: &[i32], s: usize) -> std::ops::Range<usize> {
    let (entries, _) = words.as_chunks::<N>();
    let first = entries.partition_point(|e| (e[0] as usize) < s);
    first..first + entries[first..].partition_point(|e| e[0] as usize == s)
}
