//! `sample`: from logits to tokens.

use super::case::Values;
use super::{Case, NoGeneralForm, OpDef, Role, Tolerance, Work};
use crate::dim::{Dim, Dims, Sym};
use crate::dtype::DType;
use crate::graph::Graph;
use crate::op_struct;
use crate::tensor::{Data, Tensor};
use crate::types::{Type, TypeError};

op_struct! {
    /// `(logits f32[Rows, vocabulary], row i32[Seqs], ...) -> (token i32[Seqs], fault i32[Seqs, 3] [, logprob f32[Seqs]
    /// [, top i32[Seqs, top], top_logprob f32[Seqs, top]]])`: one token for each sequence, from row `row[s]`.
    ///
    /// The flags say which steps the op can do, and so which inputs it has ([`SampleSlot`], in their order); a sequence
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
    /// -infinity where there are fewer. A row that gives no token gives -1 and says why in `fault`: [`Fault`].
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

/// Temperatures below this mean 0: dividing by them would overflow, and the result is the largest logit anyway.
pub const GREEDY_BELOW: f32 = 1e-5;

/// Logits whose weights are added in f32 before they go into the f64 total: logit i of a chunk goes to partial sum
/// `i % 16`, and the partial sums are added in their order.
pub const CHUNK: usize = 1024;

/// Top-p measures weights in units of 2^-40 of the likeliest token's: integers, whose sum does not depend on its order
/// and fits 64 bits for a vocabulary of 2^22 tokens.
pub const MASS_UNIT: f64 = (1u64 << 40) as f64;

/// An input of [`Sample`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[allow(missing_docs)] // the op's documentation says what each is
pub enum SampleSlot {
    Logits,
    Row,
    Temperature,
    TopK,
    TopP,
    MinP,
    Key,
    Allowed,
    BiasAt,
    Bias,
    Repetition,
    Frequency,
    Presence,
    History,
}

impl SampleSlot {
    const ALL: [SampleSlot; 14] = {
        use SampleSlot::*;
        [
            Logits,
            Row,
            Temperature,
            TopK,
            TopP,
            MinP,
            Key,
            Allowed,
            BiasAt,
            Bias,
            Repetition,
            Frequency,
            Presence,
            History,
        ]
    };

    /// The name of the slot in graphs of the op.
    pub fn name(self) -> &'static str {
        match self {
            SampleSlot::Logits => "logits",
            SampleSlot::Row => "row",
            SampleSlot::Temperature => "temperature",
            SampleSlot::TopK => "top_k",
            SampleSlot::TopP => "top_p",
            SampleSlot::MinP => "min_p",
            SampleSlot::Key => "key",
            SampleSlot::Allowed => "allowed",
            SampleSlot::BiasAt => "bias_at",
            SampleSlot::Bias => "bias",
            SampleSlot::Repetition => "repetition",
            SampleSlot::Frequency => "frequency",
            SampleSlot::Presence => "presence",
            SampleSlot::History => "history",
        }
    }

    /// The type for a vocabulary. Entries of the history are counted by `Tokens`, biases by `Blocks`; both come in the
    /// order of their sequences.
    pub fn ty(self, vocabulary: u32) -> Type {
        let rows = |dtype: DType, sym: Sym, width: u32| Type::new(dtype, [Dim::Sym(sym), Dim::Const(width)]);
        let each = |dtype: DType, sym: Sym| Type::new(dtype, [sym]);
        match self {
            SampleSlot::Logits => rows(DType::F32, Sym::Rows, vocabulary),
            SampleSlot::Row | SampleSlot::TopK => each(DType::I32, Sym::Seqs),
            // Seed, index of the choice and position as words: two, two and one, the lower of a pair first.
            SampleSlot::Key => rows(DType::U32, Sym::Seqs, 5),
            SampleSlot::Allowed => rows(DType::U32, Sym::Seqs, vocabulary.div_ceil(32)),
            SampleSlot::BiasAt => rows(DType::I32, Sym::Blocks, 2),
            SampleSlot::Bias => each(DType::F32, Sym::Blocks),
            SampleSlot::History => rows(DType::I32, Sym::Tokens, 3),
            _ => each(DType::F32, Sym::Seqs),
        }
    }
}

/// Why a row gives no token.
#[derive(Clone, Copy, Debug)]
pub enum Fault {
    /// A logit is NaN or +infinity as given.
    Given {
        /// The first such token.
        token: u32,
        /// Its logit.
        value: f32,
    },
    /// A logit is NaN or +infinity after bias and penalties.
    Adjusted {
        /// The first such token.
        token: u32,
        /// Its logit.
        value: f32,
    },
    /// Every token is masked or has the logit -infinity; or there is no such row.
    Nothing,
}

impl Fault {
    /// The words of a row of the output `fault`: which fault (0 is none), the token, the bits of its logit.
    pub fn words(fault: Option<Fault>) -> [i32; 3] {
        let at = |kind: i32, token: u32, value: f32| [kind, token as i32, value.to_bits() as i32];
        match fault {
            None => [0; 3],
            Some(Fault::Given { token, value }) => at(1, token, value),
            Some(Fault::Adjusted { token, value }) => at(2, token, value),
            Some(Fault::Nothing) => [3, 0, 0],
        }
    }

    /// The inverse of [`Fault::words`].
    pub fn parse(words: [i32; 3]) -> Option<Fault> {
        let (token, value) = (words[1] as u32, f32::from_bits(words[2] as u32));
        match words[0] {
            0 => None,
            1 => Some(Fault::Given { token, value }),
            2 => Some(Fault::Adjusted { token, value }),
            _ => Some(Fault::Nothing),
        }
    }
}

/// e^x for x <= 0 to about 1e-7 relative, and exactly 0 below -87. Plain multiplications and additions only, so every
/// device gives the same bits. The polynomial is that of the Cephes library's `expf` (S. Moshier, 1989).
pub fn exp(x: f32) -> f32 {
    // Adding and subtracting 1.5 * 2^23 rounds to the nearest integer, which is then in the low bits.
    const ROUND: f32 = 12_582_912.0;
    let clamped = if x > -87.0 { x } else { -87.0 };
    let shifted = clamped * std::f32::consts::LOG2_E + ROUND;
    let whole = shifted - ROUND;
    let r = clamped - whole * 0.693_359_4 + whole * 2.121_944_4e-4;
    let mut poly = 1.987_569_1e-4;
    for factor in [1.398_199_9e-3, 8.333_452e-3, 4.166_579_6e-2, 1.666_666_5e-1, 0.5] {
        poly = poly * r + factor;
    }
    let power = f32::from_bits(shifted.to_bits().wrapping_sub(ROUND.to_bits()).wrapping_add(127) << 23);
    let value = (poly * r * r + r + 1.0) * power;
    if x > -87.0 { value } else { 0.0 }
}

/// The weight of a logit: `exp((logit - max) * inverse)`, or 0 below `floor`. The likeliest token has weight 1.
pub fn weight(logit: f32, max: f32, inverse: f32, floor: f32) -> f32 {
    let weight = exp((logit - max) * inverse);
    if weight >= floor { weight } else { 0.0 }
}

/// The logit below which no token can be among those that `top_p` keeps of a whole row, given the sum of its weights.
///
/// The kept tokens all lie above `(1 - p) * total / vocabulary`, because the tokens below that have less than 1 - p of
/// the total together. A quarter of it is used, so that rounding cannot lose one.
pub fn nucleus_floor(max: f32, temperature: f32, top_p: f32, total: f64, vocabulary: usize) -> f64 {
    let least = 0.25 * (1.0 - f64::from(top_p)) * total / vocabulary as f64;
    f64::from(max) + least.ln() * f64::from(temperature)
}

/// The log-probability of a logit in a row with this largest logit and sum of weights at temperature 1.
pub fn logprob(logit: f32, max: f32, total: f64) -> f32 {
    (f64::from(logit) - f64::from(max) - total.ln()) as f32
}

/// The block of four random words at `counter` of the stream with `key`: Philox4x32-10, a bijection of 128-bit counters
/// that passes BigCrush (Salmon, Moraes, Dror and Shaw: "Parallel random numbers: as easy as 1, 2, 3", SC 2011).
pub fn philox4x32_10(counter: [u32; 4], key: [u32; 2]) -> [u32; 4] {
    let (mut words, mut key) = (counter, key);
    for _ in 0..10 {
        let low = u64::from(words[0]) * 0xD251_1F53;
        let high = u64::from(words[2]) * 0xCD9E_8D57;
        words =
            [(high >> 32) as u32 ^ words[1] ^ key[0], high as u32, (low >> 32) as u32 ^ words[3] ^ key[1], low as u32];
        key = [key[0].wrapping_add(0x9E37_79B9), key[1].wrapping_add(0xBB67_AE85)];
    }
    words
}

/// The number in [0, 1) with 53 random bits that a row of the slot `key` names: the words of the seed, of the index
/// among the request's choices and of the position. Equal keys give equal numbers, whatever else was drawn in between.
pub fn uniform(key: [u32; 5]) -> f64 {
    let words = philox4x32_10([key[4], 0, key[2], key[3]], [key[0], key[1]]);
    let bits = (u64::from(words[0]) << 32 | u64::from(words[1])) >> 11;
    bits as f64 / (1u64 << 53) as f64
}

impl Sample {
    /// The largest logit and nothing else.
    pub fn greedy() -> Sample {
        Sample { draw: false, mask: false, bias: false, penalties: false, logprobs: false, top: 0 }
    }

    /// The inputs, in order.
    pub fn slots(&self) -> Vec<SampleSlot> {
        let has = |slot: &SampleSlot| match slot {
            SampleSlot::Logits | SampleSlot::Row => true,
            SampleSlot::Allowed => self.mask,
            SampleSlot::BiasAt | SampleSlot::Bias => self.bias,
            SampleSlot::Repetition | SampleSlot::Frequency | SampleSlot::Presence | SampleSlot::History => {
                self.penalties
            }
            _ => self.draw,
        };
        SampleSlot::ALL.into_iter().filter(has).collect()
    }

    fn at<'a>(&self, ins: &[&'a Tensor], slot: SampleSlot) -> &'a Tensor {
        let place = self.slots().iter().position(|s| *s == slot);
        ins[place.expect("a step reads the slots of its own flag")]
    }

    /// Steps 1 to 3 for sequence `s`.
    fn adjust(&self, ins: &[&Tensor], s: usize, row: &mut [f32]) {
        if self.mask {
            let words = self.at(ins, SampleSlot::Allowed);
            let words = &words.bits()[s * words.width()..][..words.width()];
            let masked = row.iter_mut().enumerate().filter(|(token, _)| words[token / 32] >> (token % 32) & 1 == 0);
            masked.for_each(|(_, logit)| *logit = f32::NEG_INFINITY);
        }
        if self.bias {
            let at = self.at(ins, SampleSlot::BiasAt).ints().chunks_exact(2);
            for (at, bias) in at.zip(self.at(ins, SampleSlot::Bias).floats()) {
                if at[0] as usize == s
                    && let Some(logit) = row.get_mut(at[1] as usize)
                {
                    *logit += bias;
                }
            }
        }
        if self.penalties {
            let of = |slot| self.at(ins, slot).floats()[s];
            let (repetition, frequency, presence) =
                (of(SampleSlot::Repetition), of(SampleSlot::Frequency), of(SampleSlot::Presence));
            for entry in self.at(ins, SampleSlot::History).ints().chunks_exact(3).filter(|e| e[0] as usize == s) {
                let Some(logit) = row.get_mut(entry[1] as usize) else { continue };
                *logit = if *logit > 0.0 { *logit / repetition } else { *logit * repetition };
                if entry[2] > 0 {
                    *logit = *logit - frequency * entry[2] as f32 - presence;
                }
            }
        }
    }

    /// Steps 4 to 8 for sequence `s`.
    fn choose(&self, ins: &[&Tensor], s: usize, row: &[f32], best: u32) -> u32 {
        let float = |slot| self.at(ins, slot).floats()[s];
        if !self.draw || float(SampleSlot::Temperature) < GREEDY_BELOW {
            return best;
        }
        let (temperature, top_p) = (float(SampleSlot::Temperature), float(SampleSlot::TopP));
        let top_k = usize::try_from(self.at(ins, SampleSlot::TopK).ints()[s]).unwrap_or(0);
        let (max, inverse, floor) = (row[best as usize], 1.0 / temperature, float(SampleSlot::MinP));
        let weights: Vec<f32> = row.iter().map(|&x| weight(x, max, inverse, floor)).collect();
        let key = &self.at(ins, SampleSlot::Key).bits()[s * 5..][..5];
        let uniform = uniform([key[0], key[1], key[2], key[3], key[4]]);
        let limited = top_k > 0 && top_k < row.len();
        if !limited && top_p >= 1.0 {
            return draw_from_all(&weights, uniform).unwrap_or(best);
        }
        let mass = |token: &usize| (f64::from(weights[*token]) * MASS_UNIT + 0.5) as u64;
        let mut kept = by_likelihood(row);
        let total = if limited {
            kept.truncate(top_k);
            kept.iter().map(mass).sum::<u64>() as f64
        } else {
            let total = chunk_sums(&weights).iter().sum::<f64>();
            let lowest = nucleus_floor(max, temperature, top_p, total, row.len());
            kept.retain(|&token| f64::from(row[token]) >= lowest && weights[token] > 0.0);
            total * MASS_UNIT
        };
        if top_p < 1.0 {
            let (target, mut reached) = ((total * f64::from(top_p)).ceil() as u64, 0);
            let enough = kept.iter().position(|token| {
                reached += mass(token);
                reached >= target
            });
            kept.truncate(enough.map_or(kept.len(), |last| last + 1));
        }
        kept.sort_unstable();
        let target = uniform * kept.iter().map(|&t| f64::from(weights[t])).sum::<f64>();
        pick(kept.into_iter().map(|t| (t, weights[t])), target).unwrap_or(best)
    }

    fn sequence(&self, ins: &[&Tensor], s: usize) -> Result<Sampled, Fault> {
        let logits = self.at(ins, SampleSlot::Logits);
        let row = usize::try_from(self.at(ins, SampleSlot::Row).ints()[s]).ok().filter(|&r| r < logits.rows());
        let given = logits.row(row.ok_or(Fault::Nothing)?);
        let largest_given = largest(&given, |token, value| Fault::Given { token, value })?;
        let mut row = given.clone();
        self.adjust(ins, s, &mut row);
        let best = largest(&row, |token, value| Fault::Adjusted { token, value })?;
        let token = self.choose(ins, s, &row, best);
        let max = given[largest_given as usize];
        let weights: Vec<f32> = given.iter().map(|&x| weight(x, max, 1.0, 0.0)).collect();
        let total = chunk_sums(&weights).iter().sum::<f64>();
        let of = |token: usize| logprob(given[token], max, total);
        let top = by_likelihood(&given).into_iter().take(self.top as usize).map(|t| (t as i32, of(t))).collect();
        Ok(Sampled { token, logprob: of(token as usize), top })
    }
}

/// What a row gave.
struct Sampled {
    token: u32,
    logprob: f32,
    top: Vec<(i32, f32)>,
}

/// The first token with the largest logit.
fn largest(row: &[f32], fault: impl Fn(u32, f32) -> Fault) -> Result<u32, Fault> {
    if let Some(bad) = row.iter().position(|x| x.is_nan() || *x == f32::INFINITY) {
        return Err(fault(bad as u32, row[bad]));
    }
    by_likelihood(row).first().map(|&t| t as u32).ok_or(Fault::Nothing)
}

/// Tokens above -infinity, the likeliest first, the lower of equals first.
fn by_likelihood(row: &[f32]) -> Vec<usize> {
    let mut order: Vec<usize> = (0..row.len()).filter(|&t| row[t] > f32::NEG_INFINITY).collect();
    order.sort_by(|&a, &b| row[b].partial_cmp(&row[a]).unwrap_or(std::cmp::Ordering::Equal));
    order
}

fn chunk_sums(weights: &[f32]) -> Vec<f64> {
    let sum = |chunk: &[f32]| {
        let mut partial = [0f32; 16];
        chunk.iter().enumerate().for_each(|(i, w)| partial[i % 16] += w);
        partial.iter().map(|&p| f64::from(p)).sum::<f64>()
    };
    weights.chunks(CHUNK).map(sum).collect()
}

/// Step 8 over a whole row: whole chunks are passed over by their sums.
fn draw_from_all(weights: &[f32], uniform: f64) -> Option<u32> {
    let sums = chunk_sums(weights);
    let mut target = uniform * sums.iter().sum::<f64>();
    let mut last = None;
    for (at, &sum) in sums.iter().enumerate() {
        if sum > 0.0 {
            last = Some(at);
        }
        if target < sum {
            break;
        }
        target -= sum;
    }
    let first = last? * CHUNK;
    pick((first..weights.len().min(first + CHUNK)).map(|t| (t, weights[t])), target)
}

/// The first token at which the running sum of weights exceeds `target`; rounding at the end falls to the last token
/// that has a weight.
fn pick(weighted: impl Iterator<Item = (usize, f32)>, target: f64) -> Option<u32> {
    let (mut reached, mut last) = (0.0, None);
    for (token, weight) in weighted.filter(|(_, weight)| *weight > 0.0) {
        reached += f64::from(weight);
        last = Some(token as u32);
        if reached > target {
            break;
        }
    }
    last
}

impl OpDef for Sample {
    const NAME: &'static str = "sample";
    const ROW_WISE: bool = false;

    fn infer(&self, ins: &[Type]) -> Result<Vec<Type>, TypeError> {
        let slots = self.slots();
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
        let seqs = self.at(ins, SampleSlot::Row).ints().len();
        let top = self.top as usize;
        let (mut tokens, mut faults, mut logprobs) = (Vec::new(), Vec::new(), Vec::new());
        let (mut top_tokens, mut top_logprobs) = (vec![-1; seqs * top], vec![f32::NEG_INFINITY; seqs * top]);
        for s in 0..seqs {
            let sampled = self.sequence(ins, s);
            faults.extend(Fault::words(sampled.as_ref().err().copied()));
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
        match self.slots().get(input) {
            Some(SampleSlot::Logits) => Role::Slot(&[Sym::Rows]),
            Some(SampleSlot::History) => Role::Slot(&[Sym::Tokens]),
            Some(SampleSlot::BiasAt | SampleSlot::Bias) => Role::Slot(&[Sym::Blocks]),
            _ => Role::Slot(&[Sym::Seqs]),
        }
    }

    fn lower(&self, _: &[Type]) -> Result<Graph, NoGeneralForm> {
        Err(NoGeneralForm::Beyond("it sorts, and draws from a stream of random numbers"))
    }

    fn cases() -> Vec<Case> {
        let mut rng = Values::new(22);
        let mut cases = Vec::new();
        for flags in 0..32u32 {
            let flag = |bit: u32| flags >> bit & 1 == 1;
            let (draw, mask, bias, penalties) = (flag(0), flag(1), flag(2), flag(3));
            for (seqs, vocabulary) in [(5, 40), (24, 700), (24, 3001)] {
                let top = if flag(4) { 7 } else { 0 };
                let op = Sample { draw, mask, bias, penalties, logprobs: flag(4), top };
                let ins = op.slots().into_iter().map(|slot| input(&mut rng, slot, seqs, vocabulary)).collect();
                cases.push(Case::new(format!("{seqs} of {vocabulary}, flags {flags:05b}"), op, ins, Tolerance::Exact));
            }
        }
        cases
    }

    fn work(&self, ins: &[Type], dims: &Dims) -> Work {
        let row = ins[0].bytes(&Dims { rows: 1, ..*dims }) as f64;
        Work { flops: row / 4.0 * f64::from(dims.seqs), bytes: row * f64::from(dims.seqs) }
    }
}

/// A slot of a case: rows with equal logits, rows of no use, and every kind of parameter in one batch.
fn input(rng: &mut Values, slot: SampleSlot, seqs: usize, vocabulary: usize) -> Tensor {
    let mut numbers = |n: usize, of: &mut dyn FnMut(usize, f32) -> f32| {
        Tensor::f32([n], (0..n).map(|i| of(i, rng.float())).collect())
    };
    let cycle = |values: &'static [f32]| move |i: usize, _: f32| values[i % values.len()];
    let ints = |shape: [usize; 2], values: Vec<i32>| Tensor {
        dtype: DType::I32,
        shape: shape.into(),
        data: Data::I32(values),
    };
    match slot {
        SampleSlot::Logits => logits(numbers(6 * vocabulary, &mut |_, x| x), vocabulary),
        SampleSlot::Row => Tensor::i32([seqs], (0..seqs as i32).map(|s| if s == 3 { 99 } else { s % 6 }).collect()),
        SampleSlot::Temperature => numbers(seqs, &mut cycle(&[0.0, 0.4, 1.0, 3.0, 1.0])),
        SampleSlot::TopK => Tensor::i32([seqs], (0..seqs).map(|s| [0, 3, 0, 50, 1, 1 << 20, 0][s % 7]).collect()),
        SampleSlot::TopP => numbers(seqs, &mut cycle(&[1.0, 0.9, 0.5, 0.05])),
        SampleSlot::MinP => numbers(seqs, &mut cycle(&[0.0, 0.0, 0.2])),
        SampleSlot::Key => {
            let words = (0..5 * seqs).map(|_| rng.word()).collect();
            Tensor { dtype: DType::U32, shape: vec![seqs, 5], data: Data::U32(words) }
        }
        SampleSlot::Allowed => {
            let width = vocabulary.div_ceil(32);
            let word = |i: usize| if (i / width).is_multiple_of(2) { u32::MAX } else { rng.word() };
            let words = (0..seqs * width).map(word).collect();
            Tensor { dtype: DType::U32, shape: vec![seqs, width], data: Data::U32(words) }
        }
        SampleSlot::BiasAt => {
            ints([seqs, 2], (0..seqs).flat_map(|i| [i as i32 / 2 * 2, (i * 7 % vocabulary) as i32]).collect())
        }
        SampleSlot::Bias => numbers(seqs, &mut |i, x| if i == 2 { f32::INFINITY } else { 4.0 * x }),
        SampleSlot::History => {
            let entry = |i: usize| [i as i32 / 4, rng.below(vocabulary as u64 + 9) as i32, i as i32 % 3];
            ints([4 * seqs, 3], (0..4 * seqs).flat_map(entry).collect())
        }
        SampleSlot::Repetition => numbers(seqs, &mut cycle(&[1.0, 1.3, 0.5])),
        SampleSlot::Frequency => numbers(seqs, &mut cycle(&[0.0, 0.4])),
        SampleSlot::Presence => numbers(seqs, &mut cycle(&[0.0, 0.0, -1.0])),
    }
}

/// Six rows: two of numbers, one with many equal ones, one mostly -infinity, one all -infinity, one with a NaN.
fn logits(flat: Tensor, vocabulary: usize) -> Tensor {
    let mut values = flat.floats().to_vec();
    for (r, row) in values.chunks_exact_mut(vocabulary).enumerate() {
        row.iter_mut().for_each(|x| *x *= [3.0, 20.0, 8.0, 5.0, 1.0, 1.0][r]);
        match r {
            2 => row.iter_mut().for_each(|x| *x = x.round()),
            3 => row.iter_mut().enumerate().filter(|(i, _)| i % 19 != 4).for_each(|(_, x)| *x = f32::NEG_INFINITY),
            4 => row.fill(f32::NEG_INFINITY),
            5 => row[vocabulary / 2] = f32::NAN,
            _ => {}
        }
    }
    Tensor::f32([6, vocabulary], values)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn exp_is_close_to_the_real_one_everywhere() {
        let mut x = 0f32;
        while x > -87.0 {
            let (got, real) = (f64::from(exp(x)), f64::from(x).exp());
            assert!((got - real).abs() <= 2e-7 * real, "exp({x}) = {got}, really {real}");
            x -= 0.000_37;
        }
        assert_eq!(exp(0.0), 1.0);
        assert_eq!((exp(-87.5), exp(-1e30), exp(f32::NEG_INFINITY)), (0.0, 0.0, 0.0));
    }

    #[test]
    fn sums_of_all_lengths_match_f64() {
        for length in [0, 1, 15, 16, 17, 1023, 1024, 1025, 5000] {
            let row: Vec<f32> = (0..length).map(|at| ((at * 37) % 101) as f32 * 0.1 - 10.0).collect();
            let weights: Vec<f32> = row.iter().map(|&x| weight(x, 0.0, 1.0, 0.0)).collect();
            let real: f64 = row.iter().map(|&logit| f64::from(logit).exp()).sum();
            assert!((chunk_sums(&weights).iter().sum::<f64>() - real).abs() <= 1e-6 * real, "{length}");
        }
    }
}
