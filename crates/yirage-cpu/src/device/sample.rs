//! Tokens from logits, a sequence at a time.

use super::cpu::{Booked, Purpose, book};
use super::operand::{Env, Operand};
use super::program::{Binder, BoundOp, Kernel, Run};
use crate::isa::Isa;
use crate::sample::{Adjustments, Draw, Penalties, Sampled, Scratch, logprobs, sample};
use crate::walk::Work;
use std::sync::{Mutex, PoisonError};
use yirage_hal::HalError;
use yirage_ir::op::sample::{Fault, Sample, SampleSlot, uniform};
use yirage_ir::{Dims, Op};

/// A sampling op.
pub(super) struct SampleTokens {
    op: Sample,
    ins: Vec<(SampleSlot, Operand)>,
    outs: Vec<Operand>,
    vocabulary: usize,
    /// One a worker.
    scratch: Vec<Mutex<Scratch>>,
    _booked: Booked,
}

impl SampleTokens {
    pub(super) fn new(binder: &mut Binder, mut ops: Vec<BoundOp>) -> Result<SampleTokens, HalError> {
        let bound = ops.pop().ok_or_else(|| HalError::Load("no op to sample with".into()))?;
        let Op::Sample(op) = bound.op else { return Err(HalError::Load("not sampling".into())) };
        let ins: Vec<(SampleSlot, Operand)> = op.slots().into_iter().zip(bound.ins).collect();
        for (slot, operand) in &ins {
            if !matches!(operand, Operand::Slot { .. } | Operand::Arena { .. }) {
                return Err(HalError::Load(format!("{} is neither a slot nor computed", slot.name())));
            }
        }
        let vocabulary = ins[0].1.width();
        let (copies, selects) = (op.mask || op.bias || op.penalties, op.draw || op.top > 0);
        let scratch: Vec<Scratch> =
            (0..binder.shared.pool.count()).map(|_| Scratch::new(vocabulary, copies, selects)).collect();
        let bytes = scratch.iter().map(Scratch::bytes).sum::<usize>() as u64;
        let booked = book(binder.shared, Purpose::Arena, bytes);
        let scratch = scratch.into_iter().map(Mutex::new).collect();
        Ok(SampleTokens { op, ins, outs: bound.outs, vocabulary, scratch, _booked: booked })
    }

    /// The words of an input; none if the op does not have it.
    ///
    /// # Safety
    /// A computed input is written.
    unsafe fn words<'a>(&self, env: &'a Env, slot: SampleSlot) -> &'a [i32] {
        let operand = self.ins.iter().find(|(s, _)| *s == slot).map(|(_, operand)| operand);
        // SAFETY: the caller's contract.
        operand.map_or(&[], |operand| unsafe { operand.ints(env) })
    }

    /// The float of sequence `s`.
    unsafe fn float(&self, env: &Env, slot: SampleSlot, s: usize) -> f32 {
        // SAFETY: the caller's contract.
        f32::from_bits(unsafe { self.words(env, slot) }[s] as u32)
    }

    unsafe fn adjustments<'a>(&self, env: &'a Env, s: usize) -> Adjustments<'a> {
        let mut adjustments = Adjustments::default();
        // SAFETY: the caller's contract.
        unsafe {
            if self.op.mask {
                let width = self.vocabulary.div_ceil(32);
                adjustments.allowed = Some(unsigned(&self.words(env, SampleSlot::Allowed)[s * width..][..width]));
            }
            if self.op.bias {
                let (at, bias) = (self.words(env, SampleSlot::BiasAt), floats(self.words(env, SampleSlot::Bias)));
                let own = of_sequence::<2>(at, s);
                adjustments.bias = &bias[own.clone()];
                adjustments.bias_at = &at[own.start * 2..own.end * 2];
            }
            if self.op.penalties {
                let history = self.words(env, SampleSlot::History);
                let own = of_sequence::<3>(history, s);
                adjustments.history = &history[own.start * 3..own.end * 3];
                adjustments.penalties = Some(Penalties {
                    repetition: self.float(env, SampleSlot::Repetition, s),
                    frequency: self.float(env, SampleSlot::Frequency, s),
                    presence: self.float(env, SampleSlot::Presence, s),
                });
            }
        }
        adjustments
    }

    unsafe fn draw(&self, env: &Env, s: usize) -> Option<Draw> {
        if !self.op.draw {
            return None;
        }
        // SAFETY: the caller's contract.
        unsafe {
            let key = unsigned(&self.words(env, SampleSlot::Key)[s * 5..][..5]);
            Some(Draw {
                temperature: self.float(env, SampleSlot::Temperature, s),
                top_k: usize::try_from(self.words(env, SampleSlot::TopK)[s]).unwrap_or(0),
                top_p: self.float(env, SampleSlot::TopP, s),
                min_p: self.float(env, SampleSlot::MinP, s),
                uniform: uniform([key[0], key[1], key[2], key[3], key[4]]),
            })
        }
    }

    /// Samples sequence `s`.
    unsafe fn sequence(&self, env: &Env, isa: Isa, s: usize, scratch: &mut Scratch) {
        // SAFETY: the caller's contract; outputs of different sequences are disjoint.
        unsafe {
            let logits = floats(self.words(env, SampleSlot::Logits));
            let row = usize::try_from(self.words(env, SampleSlot::Row)[s]).unwrap_or(usize::MAX);
            let row = row.checked_mul(self.vocabulary).and_then(|at| logits.get(at..)?.get(..self.vocabulary));
            let (adjustments, draw) = (self.adjustments(env, s), self.draw(env, s));
            let sampled =
                row.ok_or(Fault::Nothing).and_then(|row| Ok((row, sample(isa, row, &adjustments, draw, scratch)?)));
            let words = Fault::words(sampled.as_ref().err().copied());
            std::ptr::copy_nonoverlapping(words.as_ptr(), self.outs[1].floats(env).cast::<i32>().add(3 * s), 3);
            let token = sampled.as_ref().map_or(-1, |(_, sampled)| sampled.token as i32);
            self.outs[0].floats(env).cast::<i32>().add(s).write(token);
            if self.op.logprobs {
                self.report(env, isa, s, sampled.ok(), scratch);
            }
        }
    }

    /// Writes the log-probabilities of sequence `s`.
    unsafe fn report(&self, env: &Env, isa: Isa, s: usize, sampled: Option<(&[f32], Sampled)>, scratch: &mut Scratch) {
        let top = self.op.top as usize;
        // SAFETY: the caller's contract; outputs of different sequences are disjoint.
        unsafe {
            let (tokens, values): (&mut [i32], &mut [f32]) = match &self.outs[3..] {
                [tokens, values] => (
                    std::slice::from_raw_parts_mut(tokens.floats(env).cast::<i32>().add(s * top), top),
                    std::slice::from_raw_parts_mut(values.floats(env).add(s * top), top),
                ),
                _ => (&mut [], &mut []),
            };
            tokens.fill(-1);
            values.fill(f32::NEG_INFINITY);
            let own = sampled.map(|(row, sampled)| logprobs(isa, row, sampled, scratch, tokens, values));
            self.outs[2].floats(env).add(s).write(own.unwrap_or(f32::NEG_INFINITY));
        }
    }
}

impl Kernel for SampleTokens {
    fn workers(&self, dims: &Dims) -> usize {
        dims.seqs as usize
    }

    unsafe fn run(&self, _: u32, run: &Run<'_>, work: Work<'_>) {
        let seqs = self.outs[0].rows().map_or(0, |d| d.get(run.env.dims));
        let mut scratch = self.scratch[work.worker].lock().unwrap_or_else(PoisonError::into_inner);
        work.drain(seqs, |some| {
            for s in some {
                // SAFETY: the caller's contract; workers take different sequences.
                unsafe { self.sequence(&run.env, run.isa, s, &mut scratch) };
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

/// Words as the floats whose bits they are.
fn floats(words: &[i32]) -> &[f32] {
    // SAFETY: both are plain 32-bit words of the same size and alignment.
    unsafe { std::slice::from_raw_parts(words.as_ptr().cast(), words.len()) }
}

/// Words without sign.
fn unsigned(words: &[i32]) -> &[u32] {
    // SAFETY: as above.
    unsafe { std::slice::from_raw_parts(words.as_ptr().cast(), words.len()) }
}
