//! `sample`: from logits to tokens.

mod adjust;
mod cases;
mod choose;
mod fault;
mod input;
mod random;
mod sequence;
mod weight;

use super::{NoGeneralForm, OpCase, OpDef, Role};
use crate::cost::{Cost, Reads, StepSizes};
use crate::dim::{Dim, Sym};
use crate::dtype::DType;
use crate::graph::Graph;
use crate::op_struct;
use crate::tensor::Tensor;
use crate::types::{Type, TypeError};

pub use choose::GREEDY_BELOW;
pub use fault::SampleFault;
pub use input::SampleInput;
pub use random::{philox4x32_10, uniform};
pub use weight::{CHUNK, MASS_UNIT, exp, logprob, nucleus_floor, weight};

op_struct! {
    /// `(logits f32[Rows, vocabulary], row i32[Seqs], ...) -> (token i32[Seqs], fault i32[Seqs, 3] [, logprob f32[Seqs]
    /// [, top i32[Seqs, top], top_logprob f32[Seqs, top]]])`: one token for each sequence, from row `row[s]`.
    ///
    /// The flags say which steps the op can do, and so which inputs it has ([`SampleInput`], in their order); a sequence
    /// that does not want a step says so by its values, and gets the same token as from an op without it. The steps:
    ///
    /// 1. `mask`: logits whose bit in `allowed` is 0 become -infinity;
    /// 2. `bias`: entry `(s, token)` of `bias_at` adds its value;
    /// 3. `penalties`: entry `(s, token, uses)` of `history` divides a positive logit by `repetition` and multiplies
    ///    another by it, then, if `uses` is above 0, subtracts `frequency * uses` and `presence`;
    /// 4. without `draw`, or at a temperature below [`GREEDY_BELOW`]: the largest logit, the lower token of equals;
    /// 5. each token's weight is `exp((logit - largest) / temperature)`, or 0 below `min_p`;
    /// 6. `top_k` above 0 keeps so many likeliest tokens, the lower of equals;
    /// 7. `top_p` below 1 keeps of these the fewest likeliest whose weights reach that share;
    /// 8. the first token, in order of ids, at which the running sum of weights exceeds the random number's share.
    ///
    /// The random number is that of `key` ([`uniform`]); nothing depends on what else is in the batch. Weights and the
    /// sums of whole rows are computed in f32 in a fixed order ([`weight`], [`CHUNK`]), and a nucleus is measured in
    /// integers, so that the tokens are the same on every device.
    ///
    /// Log-probabilities are of the logits as given, before step 1: the chosen token's and the `top` likeliest, -1 and
    /// -infinity where there are fewer. A row that gives no token gives -1 and says why in `fault`: [`SampleFault`].
    Sample {
        /// Whether tokens are drawn; else all sequences take the largest logit.
        draw: bool,
        /// Whether a mask of allowed tokens is given.
        mask: bool,
        /// Whether biases are given.
        bias: bool,
        /// Whether penalties and the tokens' history are given.
        penalties: bool,
        /// Whether log-probabilities are wanted.
        logprobs: bool,
        /// Likeliest tokens whose log-probabilities are wanted.
        top: u32,
    }
}

impl Sample {
    /// The largest logit and nothing else.
    pub fn greedy() -> Sample {
        Sample { draw: false, mask: false, bias: false, penalties: false, logprobs: false, top: 0 }
    }

    /// The inputs, in order.
    pub fn inputs(&self) -> Vec<SampleInput> {
        let has = |slot: &SampleInput| match slot {
            SampleInput::Logits | SampleInput::Row => true,
            SampleInput::Allowed => self.mask,
            SampleInput::BiasAt | SampleInput::Bias => self.bias,
            SampleInput::Repetition | SampleInput::Frequency | SampleInput::Presence | SampleInput::History => {
                self.penalties
            }
            _ => self.draw,
        };
        SampleInput::ALL.into_iter().filter(has).collect()
    }

    fn at<'a>(&self, ins: &[&'a Tensor], slot: SampleInput) -> &'a Tensor {
        let place = self.inputs().iter().position(|s| *s == slot);
        ins[place.expect("a step reads the slots of its own flag")]
    }
}

impl OpDef for Sample {
    const NAME: &'static str = "sample";
    const ROW_WISE: bool = false;

    fn infer(&self, ins: &[Type]) -> Result<Vec<Type>, TypeError> {
        let slots = self.inputs();
        let Some([Dim::Sym(Sym::Rows), Dim::Const(vocabulary)]) = ins.first().map(|t| &t.shape[..]) else {
            return Err(TypeError::new("the first input must be logits, f32[Rows, vocabulary]"));
        };
        if ins.len() != slots.len() {
            return Err(TypeError::new(format!("{} inputs given, {} wanted: {slots:?}", ins.len(), slots.len())));
        }
        if *vocabulary == 0 || self.top > *vocabulary || (self.top > 0 && !self.logprobs) {
            return Err(TypeError::new(format!("{self:?} for a vocabulary of {vocabulary}")));
        }
        for (ty, slot) in ins.iter().zip(slots) {
            let wanted = slot.ty(*vocabulary);
            if *ty != wanted {
                return Err(TypeError::new(format!("{} is {ty}, {wanted} wanted", slot.name())));
            }
        }
        let mut outs = vec![Type::new(DType::I32, [Sym::Seqs]), Type { dtype: DType::I32, ..Type::rows(Sym::Seqs, 3) }];
        if self.logprobs {
            outs.push(Type::new(DType::F32, [Sym::Seqs]));
        }
        if self.top > 0 {
            outs.push(Type { dtype: DType::I32, ..Type::rows(Sym::Seqs, self.top) });
            outs.push(Type::rows(Sym::Seqs, self.top));
        }
        Ok(outs)
    }

    fn eval(&self, ins: &[&Tensor]) -> Vec<Tensor> {
        let seqs = self.at(ins, SampleInput::Row).ints().len();
        let top = self.top as usize;
        let (mut tokens, mut faults, mut logprobs) = (Vec::new(), Vec::new(), Vec::new());
        let (mut top_tokens, mut top_logprobs) = (vec![-1; seqs * top], vec![f32::NEG_INFINITY; seqs * top]);
        for s in 0..seqs {
            let sampled = self.sequence(ins, s);
            faults.extend(SampleFault::words(sampled.as_ref().err().copied()));
            tokens.push(sampled.as_ref().map_or(-1, |x| x.token as i32));
            logprobs.push(sampled.as_ref().map_or(f32::NEG_INFINITY, |x| x.logprob));
            for (i, (token, logprob)) in sampled.into_iter().flat_map(|x| x.top).enumerate() {
                (top_tokens[s * top + i], top_logprobs[s * top + i]) = (token, logprob);
            }
        }
        let mut outs = vec![Tensor::i32([seqs], tokens), Tensor::i32([seqs, 3], faults)];
        if self.logprobs {
            outs.push(Tensor::f32([seqs], logprobs));
        }
        if self.top > 0 {
            outs.push(Tensor::i32([seqs, top], top_tokens));
            outs.push(Tensor::f32([seqs, top], top_logprobs));
        }
        outs
    }

    fn role(&self, input: usize, _: &Tensor) -> Role {
        match self.inputs().get(input) {
            Some(SampleInput::Logits) => Role::StepInput(&[Sym::Rows]),
            Some(SampleInput::History) => Role::StepInput(&[Sym::Tokens]),
            Some(SampleInput::BiasAt | SampleInput::Bias) => Role::StepInput(&[Sym::Blocks]),
            _ => Role::StepInput(&[Sym::Seqs]),
        }
    }

    fn lower(&self, _: &[Type]) -> Result<Graph, NoGeneralForm> {
        Err(NoGeneralForm::Beyond("it sorts, and draws from a stream of random numbers"))
    }

    fn cases() -> Vec<OpCase> {
        cases::cases()
    }

    fn work(&self, ins: &[Type], step: &StepSizes<'_>) -> Cost {
        let mut cost = Cost::reading(ins.len(), step.dims.seqs as usize);
        // Of the logits the row of each sequence.
        cost.reads[0] = Reads::Parts(f64::from(step.dims.seqs));
        cost
    }
}
