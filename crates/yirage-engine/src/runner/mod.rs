//! The runner: turns a batch into step inputs, picks the plan, runs it.
//!
//! It knows the names of the graph's step inputs and nothing else of the graph; how long each sequence will be, where rotary
//! embeddings depend on it; and that a model may be in stages, of which each is given the rows of the one before it.

mod bucket_executors;
mod microbatches;

use crate::embedded::{EmbeddedTokens, slot_id};
use crate::error::EngineError;
use crate::sampling::Logits;
use crate::scheduler::{Batch, BatchEntry, SeqId};
use bucket_executors::BucketExecutors;
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

/// What a step reads beside its batch.
struct StepContext<'c, 's> {
    /// Positions that a sequence will have when it is whole.
    length: &'c dyn Fn(SeqId) -> u32,
    /// A sequence's scales of adapters.
    scales: &'c dyn Fn(SeqId) -> &'s [f32],
    rows: GivenRows<'c>,
    /// The batch's tokens, where the device has them and the host does not.
    ids: Option<ResidentOutput>,
}

/// A stage of a model as it was loaded; all of a model where it is not cut.
pub(crate) struct RunnerStage<'a> {
    pub(crate) device: &'a dyn Device,
    /// The step input in which it is given the rows of the stage before it; none of the first.
    pub(crate) reads: Option<&'a str>,
    /// One for each bucket, the smallest first.
    pub(crate) plans: &'a [VerifiedPlan],
    pub(crate) bindings: &'a Bindings,
}

/// Executors of one model, smallest bucket first.
pub(crate) struct Runner {
    executors: Vec<BucketExecutors>,
    inputs: RunnerInputs,
    ran: usize,
    rows: usize,
    outputs: Outputs,
}

impl Runner {
    pub(crate) fn new(
        stages: &[RunnerStage<'_>],
        inputs: RunnerInputs,
        forced: Option<ExecutorKind>,
    ) -> Result<Runner, EngineError> {
        let buckets = stages.first().map_or(0, |stage| stage.plans.len());
        // The largest first, in whose memory the others run.
        let load = |bucket| BucketExecutors::new(stages, bucket, forced);
        let mut executors = (0..buckets).rev().map(load).collect::<Result<Vec<_>, HalError>>()?;
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
    /// scales of adapters. Of several stages all but the last have ended when this returns.
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
        let fits = |e: &BucketExecutors| dims.exceeds(&e.bucket()).is_none();
        let none = || HalError::Step(format!("no plan takes a step of {dims:?}"));
        self.ran = self.executors.iter().position(fits).ok_or_else(none)?;
        self.rows = dims.rows as usize;
        let context = StepContext { length: &length, scales: &scales, rows, ids };
        Ok(self.executors[self.ran].submit(batch, &self.inputs, &context, reads)?)
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
        Ok(Logits::Resident { logits: self.executors[self.ran].last().resident_output(LOGITS)?, rows: self.rows })
    }

    /// For each plan, of each bucket all stages' in turn: the largest step it takes, its executor, and why it is that one.
    pub(crate) fn executors(&self) -> Vec<(Dims, ExecutorKind, SelectionReason)> {
        let of = |e: &Executor| (e.bucket(), e.chosen().0, e.chosen().1);
        self.executors.iter().flat_map(BucketExecutors::stages).map(of).collect()
    }

    /// The executors that were left out since the last call, each of a plan for so many tokens, and why.
    pub(crate) fn take_left_out(&mut self) -> Vec<String> {
        let of = |executor: &mut Executor| {
            let tokens = executor.bucket().tokens;
            let told =
                |(kind, why)| format!("the executor `{kind}` is left out for steps of up to {tokens} tokens: {why}");
            executor.take_left_out().into_iter().map(told).collect::<Vec<String>>()
        };
        self.executors.iter_mut().flat_map(BucketExecutors::stages_mut).flat_map(of).collect()
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

/// Sets the step inputs of an executor for a batch, as far as its plan reads them.
fn set_inputs(
    executor: &mut Executor,
    (batch, dims): (&Batch, &Dims),
    inputs: &RunnerInputs,
    context: &StepContext<'_, '_>,
) {
    let entries = &batch.entries;
    if context.ids.is_none() {
        executor.set("ids", entries.iter().flat_map(|e| e.tokens.iter().map(|&t| slot_id(t))));
    }
    executor.set("positions", entries.iter().flat_map(positions));
    executor.set("seqs", entries.iter().enumerate().flat_map(|(i, e)| e.tokens.iter().map(move |_| i as i32)));
    executor.set("rows", wanted_rows(entries));
    if let Some(width) = inputs.embedded.filter(|_| executor.has_step_input("given")) {
        let row = |token| context.rows.embedded.row(token).filter(|_| context.ids.is_none());
        let given = given_rows(entries, width as usize, row);
        executor.set_floats("given", given.0);
        executor.set_floats("is_given", given.1);
    }
    if inputs.previous_hidden {
        executor.set_floats(PREVIOUS_HIDDEN, context.rows.previous_hidden.iter().copied());
    }
    if let Some(dynamic) = inputs.dynamic_rope.as_ref().filter(|_| executor.has_step_input("rope.cos")) {
        let (cos, sin) = rotations(dynamic, entries, context.length);
        executor.set_floats("rope.cos", cos);
        executor.set_floats("rope.sin", sin);
    }
    if inputs.scales > 0 && executor.has_step_input(LORA_SCALES) {
        executor.set_floats(LORA_SCALES, scale_rows(entries, inputs.scales, context.scales));
    }
    for g in 0..inputs.groups {
        executor.set(&format!("slots.{g}"), entries.iter().flat_map(|e| e.slots[g].iter().map(|&s| s as i32)));
        let width = dims.blocks as usize;
        executor.set(&format!("table.{g}"), entries.iter().flat_map(|e| padded(&e.tables[g], width)));
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
