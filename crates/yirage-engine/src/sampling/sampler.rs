//! The sampler: fills the slots of a sampling graph and runs it on the device.
//!
//! There is a graph for each set of steps that the sequences of a batch want, compiled when it is first wanted; a batch
//! that wants none runs the one that takes the largest logit and has no other slot than which rows to read.

use super::counts::TokenCounts;
use super::error::SampleError;
use super::key::RngKey;
use super::mask::TokenMask;
use super::params::{CheckedParams, SamplingParams};
use crate::plans::PlanProvider;
use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::sync::Arc;
use yirage_compile::CompileOptions;
use yirage_hal::{Bindings, Device, Executor, Flight, HalError, Outputs, ResidentOutput};
use yirage_ir::op::sample::{Sample, SampleFault, SampleInput};
use yirage_ir::{Dims, GraphBuilder};
use yirage_plan::{Precision, WeightPlan};

/// A token and its log-probability (natural logarithm).
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct TokenLogprob {
    /// The token's id.
    pub token: u32,
    /// Logarithm of its probability under the model, -infinity where the model gave that logit.
    pub logprob: f32,
}

/// Log-probabilities at one position, of the raw logits.
#[derive(Clone, Debug, PartialEq)]
pub struct PositionLogprobs {
    /// The sampled token's.
    pub chosen: TokenLogprob,
    /// The likeliest tokens', the likeliest first; as many as asked for.
    pub top: Vec<TokenLogprob>,
}

/// A sampled token.
#[derive(Clone, Debug, PartialEq)]
pub struct SamplerOutput {
    /// The token's id.
    pub token: u32,
    /// Log-probabilities, when the parameters ask for them.
    pub logprobs: Option<PositionLogprobs>,
}

/// A sequence to sample for.
#[derive(Clone, Copy, Debug)]
pub struct SamplerInput<'a> {
    /// Its row of the logits.
    pub row: usize,
    /// How its token is chosen.
    pub params: &'a CheckedParams,
    /// Its tokens so far.
    pub counts: &'a TokenCounts,
    /// Restricts the choice.
    pub allowed: Option<&'a TokenMask>,
    /// The position that the token will have.
    pub position: u32,
}

impl SamplerInput<'_> {
    /// The name of its random number.
    fn key(&self) -> RngKey {
        let SamplingParams { seed, choice, .. } = *self.params.get();
        RngKey { seed, choice, position: self.position }
    }
}

/// Where logits lie.
#[derive(Clone)]
pub enum Logits<'a> {
    /// Rows in the host's memory.
    Host(&'a [f32]),
    /// An output of an executor's last step on the same device: read where it lies.
    Resident {
        /// The output.
        logits: ResidentOutput,
        /// Rows that it has.
        rows: usize,
    },
}

/// Samples on a device. Keeps loaded plans only: the result never depends on what was sampled before.
pub struct Sampler {
    device: Arc<dyn Device>,
    seqs: u32,
    variants: HashMap<(usize, Sample), Executor>,
    plans: PlanProvider,
}

impl Sampler {
    /// A sampler for at most `seqs` sequences at a time.
    pub fn new(device: Arc<dyn Device>, seqs: u32) -> Self {
        Sampler::keeping(device, seqs, PlanProvider::default())
    }

    /// The same with plans that are kept.
    pub(crate) fn keeping(device: Arc<dyn Device>, seqs: u32, plans: PlanProvider) -> Self {
        Sampler { device, seqs, variants: HashMap::new(), plans }
    }

    /// Where plans come from.
    pub(crate) fn plans(&self) -> &PlanProvider {
        &self.plans
    }

    /// Compiles what greedy sampling needs, so that the first token does not wait for it and a device that cannot sample
    /// is known at once.
    ///
    /// # Errors
    /// What the compiler or the device says.
    pub fn prepare(&mut self, vocabulary: usize) -> Result<(), SampleError> {
        self.variant(&Sample::greedy(), vocabulary).map(|_| ())
    }

    /// The executor of a variant, compiled when it is first wanted.
    fn variant(&mut self, op: &Sample, vocabulary: usize) -> Result<&mut Executor, SampleError> {
        match self.variants.entry((vocabulary, op.clone())) {
            Entry::Occupied(there) => Ok(there.into_mut()),
            Entry::Vacant(free) => Ok(free.insert(load(&*self.device, &self.plans, op, vocabulary, self.seqs)?)),
        }
    }

    /// Chooses a token for a row of logits. `counts` are the sequence's tokens so far, `allowed` restricts the choice,
    /// `position` is the position the token will have.
    ///
    /// # Errors
    /// [`SampleError`] when a logit is NaN or +infinity, when nothing is left to choose from, when the row has another
    /// length than the parameters were checked for, when these ask for samplers of the host, and when the device fails.
    pub fn sample(
        &mut self,
        logits: &[f32],
        params: &CheckedParams,
        counts: &TokenCounts,
        allowed: Option<&TokenMask>,
        position: u32,
    ) -> Result<SamplerOutput, SampleError> {
        if params.is_on_host() {
            return Err(SampleError::OnHost(params.get().chain.asked()));
        }
        if logits.len() != params.vocabulary() {
            return Err(SampleError::Vocabulary { expected: params.vocabulary(), got: logits.len() });
        }
        let pick = SamplerInput { row: 0, params, counts, allowed, position };
        let mut sampled = self.sample_all(Logits::Host(logits), params.vocabulary(), &[pick])?;
        sampled.pop().unwrap_or_else(|| Err(HalError::Step("one row was asked for, none was sampled".into()).into()))
    }

    /// Chooses a token for each of `picks`, in their order.
    ///
    /// # Errors
    /// What concerns one row is its own result; the error is of the device.
    pub fn sample_all(
        &mut self,
        logits: Logits<'_>,
        vocabulary: usize,
        picks: &[SamplerInput<'_>],
    ) -> Result<Vec<Result<SamplerOutput, SampleError>>, SampleError> {
        if picks.is_empty() {
            return Ok(Vec::new());
        }
        self.submit(logits, vocabulary, picks)?.wait()
    }

    /// Begins to choose a token for each of `picks`, at least one.
    ///
    /// # Errors
    /// What the device says at once.
    pub(crate) fn submit(
        &mut self,
        logits: Logits<'_>,
        vocabulary: usize,
        picks: &[SamplerInput<'_>],
    ) -> Result<SamplingInFlight, SampleError> {
        let op = variant(picks, vocabulary);
        let executor = self.variant(&op, vocabulary)?;
        let dims = fill(executor, &op, vocabulary, &logits, picks);
        let given = match logits {
            Logits::Host(_) => None,
            Logits::Resident { logits, .. } => Some((SampleInput::Logits.name(), logits)),
        };
        let reads: Vec<usize> = (0..outputs_of(&op)).collect();
        let flight = executor.submit(&dims, given.as_slice(), &reads)?;
        let logprobs = picks.iter().map(|pick| pick.params.get().logprobs).collect();
        Ok(SamplingInFlight { flight, tokens: executor.resident_output(TOKENS)?, op, vocabulary, logprobs })
    }
}

/// The output of a sampling graph that is the tokens.
const TOKENS: usize = 0;

/// How many outputs the graph of `op` has.
fn outputs_of(op: &Sample) -> usize {
    2 + usize::from(op.logprobs) + if op.top > 0 { 2 } else { 0 }
}

/// Tokens that are being chosen.
pub(crate) struct SamplingInFlight {
    flight: Flight,
    tokens: ResidentOutput,
    op: Sample,
    vocabulary: usize,
    /// How many log-probabilities each row wants, if any.
    logprobs: Vec<Option<u32>>,
}

impl SamplingInFlight {
    /// The tokens on the device, for a step that is submitted before any other sampling.
    pub(crate) fn tokens(&self) -> ResidentOutput {
        self.tokens.clone()
    }

    /// Waits for the tokens, in the order of the picks.
    ///
    /// # Errors
    /// What concerns one row is its own result; the error is of the device.
    pub(crate) fn wait(self) -> Result<Vec<Result<SamplerOutput, SampleError>>, SampleError> {
        let SamplingInFlight { flight, op, vocabulary, logprobs, .. } = self;
        let outputs = flight.wait()?;
        logprobs.into_iter().enumerate().map(|(s, wanted)| read(&outputs, &op, vocabulary, s, wanted)).collect()
    }
}

/// The steps that any of the sequences wants.
fn variant(picks: &[SamplerInput<'_>], vocabulary: usize) -> Sample {
    let any = |wants: fn(&SamplerInput<'_>) -> bool| picks.iter().any(wants);
    let top = picks.iter().filter_map(|p| p.params.get().logprobs).max();
    // Few variants instead of one for each number.
    let rounded = |top: u32| if top == 0 { 0 } else { top.next_power_of_two().min(vocabulary as u32) };
    Sample {
        draw: any(|p| !p.params.is_greedy()),
        mask: any(|p| p.allowed.is_some()),
        bias: any(|p| !p.params.get().logit_bias.is_empty()),
        penalties: any(|p| p.params.has_penalties()),
        logprobs: top.is_some(),
        top: rounded(top.unwrap_or(0)),
    }
}

/// Compiles the graph of `op` and loads it.
fn load(
    device: &dyn Device,
    plans: &PlanProvider,
    op: &Sample,
    vocabulary: usize,
    seqs: u32,
) -> Result<Executor, SampleError> {
    let mut builder = GraphBuilder::new("sample");
    let slots = op.inputs().into_iter().map(|slot| builder.step_input(slot.name(), slot.ty(vocabulary as u32)));
    let ins = slots.collect::<Result<Vec<_>, _>>()?;
    let names = ["token", "fault", "logprob", "top", "top_logprob"];
    for output in builder.op_multi(&names[..outputs_of(op)], op.clone(), &ins)? {
        builder.output(output);
    }
    // Only outputs take memory, and they are one row a sequence: everything else may be as large as it comes.
    let most = i32::MAX as u32;
    let bucket = Dims { tokens: most, seqs, blocks: most, rows: most };
    let options = CompileOptions::new(Precision::Exact);
    let plan = plans.plan(&builder.finish(), bucket, &device.target(), &WeightPlan::default(), &options)?;
    Ok(Executor::new(device, &plan, &Bindings::default())?)
}

/// Sets the slots of a step and gives its sizes.
fn fill(
    executor: &mut Executor,
    op: &Sample,
    vocabulary: usize,
    logits: &Logits<'_>,
    picks: &[SamplerInput<'_>],
) -> Dims {
    let mut dims = Dims { seqs: picks.len() as u32, ..Dims::default() };
    dims.rows = match logits {
        Logits::Host(values) => {
            executor.set_floats(SampleInput::Logits.name(), values.iter().copied());
            (values.len() / vocabulary.max(1)) as u32
        }
        Logits::Resident { rows, .. } => *rows as u32,
    };
    for slot in op.inputs() {
        let name = slot.name();
        let params = || picks.iter().map(|p| p.params.get());
        match slot {
            SampleInput::Logits => {}
            SampleInput::Row => executor.set(name, picks.iter().map(|p| p.row as i32)),
            SampleInput::Temperature => executor.set_floats(name, params().map(|p| p.temperature)),
            SampleInput::TopK => executor.set(name, params().map(|p| i32::try_from(p.top_k).unwrap_or(i32::MAX))),
            SampleInput::TopP => executor.set_floats(name, params().map(|p| p.top_p)),
            SampleInput::MinP => executor.set_floats(name, params().map(|p| p.min_p)),
            SampleInput::Repetition => executor.set_floats(name, params().map(|p| p.repetition_penalty)),
            SampleInput::Frequency => executor.set_floats(name, params().map(|p| p.frequency_penalty)),
            SampleInput::Presence => executor.set_floats(name, params().map(|p| p.presence_penalty)),
            SampleInput::Key => {
                let words = picks.iter().flat_map(|p| p.key().words());
                executor.set(name, words.map(|word| word as i32));
            }
            SampleInput::Allowed => {
                let all = TokenMask::all(vocabulary);
                let words = picks.iter().flat_map(|p| p.allowed.unwrap_or(&all).words(vocabulary));
                executor.set(name, words.map(|word| word as i32));
            }
            SampleInput::BiasAt => {
                let of = |(s, p): (usize, &SamplerInput<'_>)| {
                    entries(s, p.params.get().logit_bias.iter().map(|&(token, _)| token))
                };
                executor.set(name, picks.iter().enumerate().flat_map(of));
            }
            SampleInput::Bias => {
                let values: Vec<f32> = params().flat_map(|p| p.logit_bias.iter().map(|&(_, bias)| bias)).collect();
                dims.blocks = values.len() as u32;
                executor.set_floats(name, values);
            }
            SampleInput::History => {
                let entries = history(picks);
                dims.tokens = (entries.len() / 3) as u32;
                executor.set(name, entries);
            }
        }
    }
    dims
}

/// (sequence, token) pairs.
fn entries(s: usize, tokens: impl Iterator<Item = u32>) -> Vec<i32> {
    tokens.flat_map(|token| [s as i32, token as i32]).collect()
}

/// (sequence, token, uses) triples of the sequences that have penalties.
fn history(picks: &[SamplerInput<'_>]) -> Vec<i32> {
    let penalised = picks.iter().enumerate().filter(|(_, p)| p.params.has_penalties());
    let of = |(s, p): (usize, &SamplerInput<'_>)| {
        let with_prompt = p.params.get().repetition_penalty != 1.0;
        let tokens = p.counts.history(with_prompt);
        tokens.flat_map(|(token, uses)| [s as i32, token as i32, uses as i32]).collect::<Vec<_>>()
    };
    penalised.flat_map(of).collect()
}

/// What a step gave sequence `s`, which wants so many log-probabilities.
fn read(
    outputs: &Outputs,
    op: &Sample,
    vocabulary: usize,
    s: usize,
    logprobs: Option<u32>,
) -> Result<Result<SamplerOutput, SampleError>, SampleError> {
    let fault = &outputs.ints(1)?[3 * s..][..3];
    match SampleFault::parse([fault[0], fault[1], fault[2]]) {
        None => {}
        Some(SampleFault::Nothing) => return Ok(Err(SampleError::NoCandidate { vocabulary })),
        Some(SampleFault::InputLogit { token, value }) => {
            let stage = "as the model gave it";
            return Ok(Err(SampleError::NotFinite { token: token as usize, value, stage }));
        }
        Some(SampleFault::Adjusted { token, value }) => {
            let stage = "after bias and penalties";
            return Ok(Err(SampleError::NotFinite { token: token as usize, value, stage }));
        }
    }
    let token = outputs.ints(TOKENS)?[s] as u32;
    let Some(count) = logprobs else { return Ok(Ok(SamplerOutput { token, logprobs: None })) };
    let chosen = TokenLogprob { token, logprob: outputs.floats(2)?[s] };
    let width = op.top as usize;
    let mut top = Vec::new();
    if width > 0 {
        let tokens = outputs.ints(3)?[s * width..][..width].iter();
        let logprobs = outputs.floats(4)?[s * width..][..width].iter();
        let wanted = tokens.zip(logprobs).take(count as usize).filter(|(token, _)| **token >= 0);
        top.extend(wanted.map(|(&token, &logprob)| TokenLogprob { token: token as u32, logprob }));
    }
    Ok(Ok(SamplerOutput { token, logprobs: Some(PositionLogprobs { chosen, top }) }))
}
