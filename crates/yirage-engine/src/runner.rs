//! The runner: turns a batch into step inputs, picks the plan, runs it.
//!
//! It knows the names of the graph's step inputs and nothing else of the graph; and how long each sequence will be, where
//! rotary embeddings depend on it.

use crate::embedded::{EmbeddedTokens, slot_id};
use crate::error::EngineError;
use crate::sampling::Logits;
use crate::scheduler::{Batch, BatchEntry, SeqId};
use yirage_hal::{Bindings, Device, Executor, Flight, HalError, Outputs, ResidentOutput, SelectionReason};
use yirage_ir::Dims;
use yirage_model::arch::{LORA_SCALES, PREVIOUS_HIDDEN};
use yirage_model::rope::Dynamic;
use yirage_plan::{ExecutorKind, VerifiedPlan};

/// The output of a model's graph that is its logits.
pub(crate) const LOGITS: usize = 0;
/// The output that is its hidden states, where it was made with them.
pub(crate) const HIDDEN: usize = 1;

/// What a model's steps are given beside ids, positions and sequences.
pub(crate) struct RunnerInputs {
    /// Cache groups.
    pub(crate) groups: usize,
    /// The scaling of rotations by the lengths of sequences.
    pub(crate) dynamic_rope: Option<Dynamic>,
    /// Width of the rows that may take the place of tokens' embeddings.
    pub(crate) embedded: Option<u32>,
    /// Positions of a block of the cache.
    pub(crate) block: usize,
    /// Scales of adapters for each token; 0 for a graph without them.
    pub(crate) scales: usize,
    /// Whether the graph is an MTP head, which reads the model's hidden states.
    pub(crate) previous_hidden: bool,
}

/// Rows that a step is given, of which its tokens say nothing.
pub(crate) struct GivenRows<'r> {
    /// What the tokens beside the vocabulary stand for.
    pub(crate) embedded: &'r EmbeddedTokens,
    /// For an MTP head the hidden state of the position before each token.
    pub(crate) previous_hidden: Vec<f32>,
}

/// Executors of one model, smallest bucket first.
pub(crate) struct Runner {
    executors: Vec<Executor>,
    inputs: RunnerInputs,
    ran: usize,
    rows: usize,
    outputs: Outputs,
}

impl Runner {
    pub(crate) fn new(
        device: &dyn Device,
        plans: &[VerifiedPlan],
        bindings: &Bindings,
        inputs: RunnerInputs,
        forced: Option<ExecutorKind>,
    ) -> Result<Runner, EngineError> {
        let load = |plan| {
            let mut executor = Executor::new(device, plan, bindings)?;
            forced.map_or(Ok(()), |kind| executor.force(kind))?;
            Ok(executor)
        };
        // The largest first, in whose memory the others run.
        let mut executors = plans.iter().rev().map(load).collect::<Result<Vec<_>, HalError>>()?;
        executors.reverse();
        Ok(Runner { executors, inputs, ran: 0, rows: 0, outputs: Outputs::default() })
    }

    /// Runs a batch of plain tokens, for an MTP head with `previous_hidden`. All outputs but `reads` stay on the device.
    pub(crate) fn run(
        &mut self,
        batch: &Batch,
        length: impl Fn(SeqId) -> u32,
        previous_hidden: Vec<f32>,
        reads: &[usize],
    ) -> Result<(), EngineError> {
        let rows = GivenRows { embedded: &EmbeddedTokens::default(), previous_hidden };
        let flight = self.submit(batch, length, |_| &[], rows, reads, None)?;
        self.collect(flight)
    }

    /// Submits a batch. `ids` are its tokens where the device has them and the host does not. The host gets the outputs
    /// `reads` with [`Runner::collect`]. `length` gives the positions that a sequence will have when it is whole, `scales` its
    /// scales of adapters.
    pub(crate) fn submit<'s>(
        &mut self,
        batch: &Batch,
        length: impl Fn(SeqId) -> u32,
        scales: impl Fn(SeqId) -> &'s [f32],
        rows: GivenRows<'_>,
        reads: &[usize],
        ids: Option<ResidentOutput>,
    ) -> Result<Flight, EngineError> {
        let dims = dims_of(batch, self.inputs.block);
        let fits = |e: &Executor| dims.exceeds(&e.bucket()).is_none();
        let none = || HalError::Step(format!("no plan takes a step of {dims:?}"));
        self.ran = self.executors.iter().position(fits).ok_or_else(none)?;
        self.rows = dims.rows as usize;
        let executor = &mut self.executors[self.ran];
        let entries = &batch.entries;
        if ids.is_none() {
            executor.set("ids", entries.iter().flat_map(|e| e.tokens.iter().map(|&t| slot_id(t))));
        }
        executor.set("positions", entries.iter().flat_map(positions));
        executor.set("seqs", entries.iter().enumerate().flat_map(|(i, e)| e.tokens.iter().map(move |_| i as i32)));
        executor.set("rows", wanted_rows(entries));
        if let Some(width) = self.inputs.embedded {
            let given = given_rows(entries, width as usize, |token| rows.embedded.row(token).filter(|_| ids.is_none()));
            executor.set_floats("given", given.0);
            executor.set_floats("is_given", given.1);
        }
        if self.inputs.previous_hidden {
            executor.set_floats(PREVIOUS_HIDDEN, rows.previous_hidden);
        }
        if let Some(dynamic) = &self.inputs.dynamic_rope {
            let (cos, sin) = rotations(dynamic, entries, length);
            executor.set_floats("rope.cos", cos);
            executor.set_floats("rope.sin", sin);
        }
        let width = self.inputs.scales;
        if width > 0 {
            executor.set_floats(LORA_SCALES, scale_rows(entries, width, scales));
        }
        for g in 0..self.inputs.groups {
            executor.set(&format!("slots.{g}"), entries.iter().flat_map(|e| e.slots[g].iter().map(|&s| s as i32)));
            let width = dims.blocks as usize;
            executor.set(&format!("table.{g}"), entries.iter().flat_map(|e| padded(&e.tables[g], width)));
        }
        let given = ids.map(|ids| ("ids", ids));
        Ok(executor.submit(&dims, given.as_slice(), reads)?)
    }

    /// Waits for a batch. [`Runner::logits`] and [`Runner::hidden`] then have the rows of what was to be read, in the
    /// batch's order.
    pub(crate) fn collect(&mut self, flight: Flight) -> Result<(), EngineError> {
        self.outputs = Outputs::default();
        self.outputs = flight.wait()?;
        Ok(())
    }

    /// The logits of the step submitted last, where they lie.
    pub(crate) fn all_logits(&self) -> Result<Logits<'_>, HalError> {
        Ok(Logits::Resident { logits: self.executors[self.ran].resident_output(LOGITS)?, rows: self.rows })
    }

    /// For each plan: the largest step it takes, its executor, and why it is that one.
    pub(crate) fn executors(&self) -> Vec<(Dims, ExecutorKind, SelectionReason)> {
        let of = |e: &Executor| (e.bucket(), e.chosen().0, e.chosen().1);
        self.executors.iter().map(of).collect()
    }

    /// The executors that were left out since the last call, each of a plan for so many tokens, and why.
    pub(crate) fn take_left_out(&mut self) -> Vec<String> {
        let of = |executor: &mut Executor| {
            let tokens = executor.bucket().tokens;
            let told =
                |(kind, why)| format!("the executor `{kind}` is left out for steps of up to {tokens} tokens: {why}");
            executor.take_left_out().into_iter().map(told).collect::<Vec<String>>()
        };
        self.executors.iter_mut().flat_map(of).collect()
    }

    /// Row `row` of the last step's logits.
    pub(crate) fn logits(&self, row: usize) -> Result<&[f32], EngineError> {
        self.row(LOGITS, row)
    }

    /// Row `row` of the last step's hidden states, which the graph must have as an output.
    pub(crate) fn hidden(&self, row: usize) -> Result<&[f32], EngineError> {
        self.row(HIDDEN, row)
    }

    /// All rows of an output of the last step, one after the other.
    pub(crate) fn all_rows(&self, output: usize) -> Result<&[f32], EngineError> {
        Ok(self.outputs.floats(output)?)
    }

    fn row(&self, output: usize, row: usize) -> Result<&[f32], EngineError> {
        let (all, rows) = (self.outputs.floats(output)?, self.outputs.dims().rows as usize);
        let width = all.len() / rows.max(1);
        let range = row * width..(row + 1) * width;
        let missing = || HalError::Step(format!("row {row} of {rows} rows of output {output}"));
        Ok(all.get(range).ok_or_else(missing)?)
    }
}

fn dims_of(batch: &Batch, block: usize) -> Dims {
    let ends = batch.entries.iter().map(|e| (e.start as usize + e.tokens.len()).div_ceil(block));
    Dims {
        tokens: batch.tokens() as u32,
        seqs: batch.entries.len() as u32,
        blocks: ends.max().unwrap_or(0) as u32,
        rows: batch.rows() as u32,
    }
}

fn positions(entry: &BatchEntry) -> impl Iterator<Item = i32> {
    (entry.start as i32..).take(entry.tokens.len())
}

/// The rows of every token that has one, zeros for the others; and which have one.
fn given_rows<'r>(
    entries: &[BatchEntry],
    width: usize,
    row: impl Fn(u32) -> Option<&'r [f32]>,
) -> (Vec<f32>, Vec<f32>) {
    let tokens: Vec<u32> = entries.iter().flat_map(|e| e.tokens.iter().copied()).collect();
    let (mut rows, mut is_given) = (vec![0.0; tokens.len() * width], vec![0.0; tokens.len()]);
    for ((token, to), is_given) in tokens.into_iter().zip(rows.chunks_exact_mut(width)).zip(&mut is_given) {
        if let Some(row) = row(token) {
            to.copy_from_slice(row);
            *is_given = 1.0;
        }
    }
    (rows, is_given)
}

/// Cosines and sines of every token, by the length of its sequence.
fn rotations(dynamic: &Dynamic, entries: &[BatchEntry], length: impl Fn(SeqId) -> u32) -> (Vec<f32>, Vec<f32>) {
    let (mut cos, mut sin) = (Vec::new(), Vec::new());
    for e in entries {
        let (c, s) = dynamic.frequencies(length(e.seq)).tables(e.start..e.start + e.tokens.len() as u32);
        cos.extend(c);
        sin.extend(s);
    }
    (cos, sin)
}

/// A row of so many scales for each token. A sequence that nothing is known of any more has none.
fn scale_rows<'s>(entries: &[BatchEntry], width: usize, scales: impl Fn(SeqId) -> &'s [f32]) -> Vec<f32> {
    let mut rows = Vec::with_capacity(entries.iter().map(|e| e.tokens.len()).sum::<usize>() * width);
    for entry in entries {
        let row = scales(entry.seq);
        for _ in &entry.tokens {
            rows.extend(row.iter().copied().chain(std::iter::repeat(0.0)).take(width));
        }
    }
    rows
}

/// Token rows of the batch whose logits are wanted.
fn wanted_rows(entries: &[BatchEntry]) -> Vec<i32> {
    let mut out = Vec::new();
    let mut first = 0;
    for e in entries {
        out.extend(e.rows.iter().map(|&r| first + r as i32));
        first += e.tokens.len() as i32;
    }
    out
}

/// A block table of exactly `width` entries.
fn padded(table: &[i32], width: usize) -> impl Iterator<Item = i32> {
    table.iter().copied().chain(std::iter::repeat(-1)).take(width)
}
