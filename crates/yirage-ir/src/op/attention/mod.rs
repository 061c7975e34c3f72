//! `attention`: scaled dot-product attention (Vaswani et al., 2017), grouped heads (Ainslie et al., 2023), over a
//! paged cache or over the step's own keys and values.

mod general;

use super::case::CaseValues;
use super::kv_append::{OTHER_LENGTHS, kv_cache_shape, whole_blocks};
use super::{NoGeneralForm, OpCase, OpDef, Role, Tolerance, arity, f32_rows, per_row, plus, times, vector};
use crate::attr::F32;
use crate::cost::{Cost, Reads, SequenceSpan, StepSizes};
use crate::dim::{Dim, Sym};
use crate::dtype::DType;
use crate::graph::Graph;
use crate::op_struct;
use crate::quant::Format;
use crate::tensor::Tensor;
use crate::types::{Type, TypeError};

op_struct! {
    /// Cached: `(q f32[Tokens, heads*k_width], state, positions i32[Tokens], seqs i32[Tokens],
    /// table i32[Seqs, Blocks] [, sinks [heads]]) -> f32[Tokens, heads*v_width]`. Token t of sequence `s = seqs[t]`
    /// attends positions 0 to `positions[t]` of its sequence, the last `window` of them if a window is set; position
    /// p lies in block `table[s, p / n]` at `p % n`, of blocks of n positions. Blocks wholly before the window may be -1.
    ///
    /// Not cached: `(q, k f32[Tokens, kv_heads*k_width], v, positions, seqs [, sinks])`: tokens attend all tokens of
    /// the same sequence in the step (both directions), or those at no later position if `causal`.
    ///
    /// Scores are `scale * q.k`, then `softcap * tanh(score / softcap)` if set; a sink joins a head's softmax as one
    /// more score without a value. Query head h reads key head `h / (heads / kv_heads)`.
    Attention {
        /// Query heads.
        heads: u32,
        /// Key and value heads.
        kv_heads: u32,
        /// Elements of a key head.
        k_width: u32,
        /// Elements of a value head.
        v_width: u32,
        /// Factor of the scores.
        scale: F32,
        /// Cap of the scores; 0 is none.
        softcap: F32,
        /// Positions a token sees, itself included, and as many behind it where later ones are not hidden; 0 is all.
        window: u32,
        /// Whether later positions are hidden.
        causal: bool,
        /// Whether keys and values come from a cache state.
        cached: bool,
        /// Whether a value is the first `v_width` elements of its key (latent attention).
        v_in_k: bool,
    }
}

impl Attention {
    /// Number of inputs without sinks.
    fn base_inputs(&self) -> usize {
        5
    }

    /// Elements of a head that a cache keeps: its key and its value, unless that is part of the key.
    fn cached_width(&self) -> Result<u32, TypeError> {
        if self.v_in_k { Ok(self.k_width) } else { plus(self.k_width, self.v_width, "key and value") }
    }

    fn check_keys(&self, ins: &[Type]) -> Result<(), TypeError> {
        if self.cached {
            let width = self.cached_width()?;
            let (heads, w) = kv_cache_shape(&ins[1])?;
            if (heads, w) != (self.kv_heads, width) {
                return Err(TypeError::new(format!("state is {}, {} heads of {width} wanted", ins[1], self.kv_heads)));
            }
            whole_blocks(&ins[1], "a key", self.k_width)?;
            whole_blocks(&ins[1], "key and value", width)?;
            if ins[4].dtype != DType::I32 || ins[4].shape.len() != 2 {
                return Err(TypeError::new(format!("table is {}, i32[Seqs, Blocks] wanted", ins[4])));
            }
            return Ok(());
        }
        let (k, v) = (f32_rows(&ins[1], "k")?, f32_rows(&ins[2], "v")?);
        let wanted = (times(self.kv_heads, self.k_width, "keys")?, times(self.kv_heads, self.v_width, "values")?);
        if (k, v) != wanted || self.v_in_k {
            return Err(TypeError::new(format!("k of {k} and v of {v} do not match {self:?}")));
        }
        Ok(())
    }

    /// Scores to weights, in f64; the sink takes part in the sum alone.
    fn softmax(&self, scores: &mut [f64], sink: Option<f64>) {
        let max = scores.iter().copied().chain(sink).fold(f64::NEG_INFINITY, f64::max);
        let mut sum = sink.map_or(0.0, |s| (s - max).exp());
        for s in scores.iter_mut() {
            *s = (*s - max).exp();
            sum += *s;
        }
        scores.iter_mut().for_each(|s| *s /= sum);
    }

    fn score(&self, q: &[f32], k: &[f32]) -> f64 {
        let dot: f64 = q.iter().zip(k).map(|(a, b)| f64::from(*a) * f64::from(*b)).sum();
        let (s, cap) = (dot * f64::from(self.scale.0), f64::from(self.softcap.0));
        if cap > 0.0 { cap * (s / cap).tanh() } else { s }
    }
}

/// Where the keys and values of one (token, head) lie: one slice a visible position, in ascending order.
struct Visible<'a> {
    keys: Vec<&'a [f32]>,
    values: Vec<&'a [f32]>,
}

impl OpDef for Attention {
    const NAME: &'static str = "attention";
    const ROW_WISE: bool = false;

    fn activations(&self) -> &'static [usize] {
        if self.cached { &[0] } else { &[0, 1, 2] }
    }

    fn infer(&self, ins: &[Type]) -> Result<Vec<Type>, TypeError> {
        let base = self.base_inputs();
        arity(ins, base..=base + 1)?;
        let q = f32_rows(&ins[0], "q")?;
        let sizes = [self.heads, self.kv_heads, self.k_width, self.v_width];
        let heads_fit = sizes.iter().all(|&n| n > 0) && self.heads.is_multiple_of(self.kv_heads);
        if !heads_fit || q != times(self.heads, self.k_width, "queries")? || (self.cached && !self.causal) {
            return Err(TypeError::new(format!("q is {} for {self:?}", ins[0])));
        }
        if self.v_in_k && self.v_width > self.k_width {
            return Err(TypeError::new(format!("values of {} do not lie in keys of {}", self.v_width, self.k_width)));
        }
        self.check_keys(ins)?;
        let at = if self.cached { 2 } else { 3 };
        per_row(&ins[at], &ins[0], "positions")?;
        per_row(&ins[at + 1], &ins[0], "seqs")?;
        if let Some(sinks) = ins.get(base) {
            vector(sinks, self.heads, "sinks")?;
        }
        Ok(vec![Type::rows(ins[0].shape[0], times(self.heads, self.v_width, "values of all heads")?)])
    }

    fn eval(&self, ins: &[&Tensor]) -> Vec<Tensor> {
        let at = if self.cached { 2 } else { 3 };
        let (q, positions, seqs) = (ins[0].floats(), ins[at].ints(), ins[at + 1].ints());
        let sinks = ins.get(self.base_inputs()).map(|s| s.row_f64(0));
        let (heads, kw, vw) = (self.heads as usize, self.k_width as usize, self.v_width as usize);
        let mut out = vec![0f32; positions.len() * heads * vw];
        for t in 0..positions.len() {
            for h in 0..heads {
                let seen = self.visible(ins, positions, seqs, t, h / (heads / self.kv_heads as usize));
                let query = &q[(t * heads + h) * kw..][..kw];
                let mut scores: Vec<f64> = seen.keys.iter().map(|k| self.score(query, k)).collect();
                self.softmax(&mut scores, sinks.as_ref().map(|s| s[h]));
                for (i, o) in out[(t * heads + h) * vw..][..vw].iter_mut().enumerate() {
                    *o = scores.iter().zip(&seen.values).map(|(s, v)| s * f64::from(v[i])).sum::<f64>() as f32;
                }
            }
        }
        vec![Tensor::f32([positions.len(), heads * vw], out)]
    }

    fn role(&self, input: usize, like: &Tensor) -> Role {
        match input {
            1 if self.cached => Role::KvCache,
            4 if self.cached => Role::StepInput(&[Sym::Seqs, Sym::Blocks]),
            5 => Role::Weight,
            _ if like.dtype == DType::I32 => Role::StepInput(&[Sym::Tokens]),
            _ => Role::Activation,
        }
    }

    fn lower(&self, ins: &[Type]) -> Result<Graph, NoGeneralForm> {
        if self.cached {
            return Err(NoGeneralForm::Beyond("a cache in blocks is a state, not a value"));
        }
        let Some(Dim::Const(tokens)) = ins[0].shape.first() else {
            return Err(NoGeneralForm::Beyond("scores have the tokens twice, and only one dimension may be symbolic"));
        };
        general::lower(self, ins, *tokens)
    }

    fn cases() -> Vec<OpCase> {
        let mut cases = cached_cases();
        cases.extend(dense_cases());
        cases
    }

    fn work(&self, ins: &[Type], step: &StepSizes<'_>) -> Cost {
        let ops = step.spans.iter().map(|span| self.span_ops(span)).sum();
        let positions = step.spans.iter().map(|span| self.positions_read(span)).sum();
        let mut cost = Cost { ops, ..Cost::reading(ins.len(), ins[0].shape[0].get(&step.dims)) };
        if self.cached {
            cost.reads[1] = Reads::Positions(positions);
        }
        cost
    }
}

impl Attention {
    /// Cached positions that a span's tokens see between them, each counted once.
    fn positions_read(&self, span: &SequenceSpan) -> f64 {
        let end = f64::from(span.start) + f64::from(span.tokens);
        match self.window {
            _ if span.tokens == 0 => 0.0,
            0 => end,
            window => end.min(f64::from(window) + f64::from(span.tokens) - 1.0),
        }
    }

    /// Multiplications and additions of scores and sums of values, for each pair of a token and a position that it sees.
    fn span_ops(&self, span: &SequenceSpan) -> f64 {
        let (start, tokens) = (u128::from(span.start), u128::from(span.tokens));
        let window = if self.window == 0 { u128::MAX } else { u128::from(self.window) };
        // What the first n positions of a sequence see: one more each, until the window is full.
        let seen =
            |n: u128| if n <= window { n * (n + 1) / 2 } else { window * (window + 1) / 2 + (n - window) * window };
        let pairs = match self.causal {
            true => seen(start + tokens) - seen(start),
            // Those that are seen before each and behind it, and itself once.
            false => 2 * seen(tokens) - tokens,
        };
        let width = f64::from(self.k_width) + f64::from(self.v_width);
        2.0 * pairs as f64 * f64::from(self.heads) * width
    }

    fn visible<'a>(&self, ins: &[&'a Tensor], positions: &[i32], seqs: &[i32], t: usize, head: usize) -> Visible<'a> {
        let (kw, vw, kv_heads) = (self.k_width as usize, self.v_width as usize, self.kv_heads as usize);
        let mut seen = Visible { keys: Vec::new(), values: Vec::new() };
        // A window that is longer than positions can be hides nothing.
        let window = i32::try_from(self.window).unwrap_or(0);
        let first = if window > 0 { positions[t].saturating_sub(window - 1) } else { 0 };
        if self.cached {
            let (cells, table) = (ins[1].floats(), ins[4]);
            let (length, width) = (ins[1].shape[1], ins[1].width());
            for p in first.max(0) as usize..=positions[t] as usize {
                let block = table.ints()[seqs[t] as usize * table.width() + p / length] as usize;
                let cell = &cells[((block * length + p % length) * kv_heads + head) * width..][..width];
                seen.keys.push(&cell[..kw]);
                seen.values.push(if self.v_in_k { &cell[..vw] } else { &cell[kw..] });
            }
            return seen;
        }
        let last = match window {
            _ if self.causal => positions[t],
            1.. => positions[t].saturating_add(window - 1),
            _ => i32::MAX,
        };
        for other in 0..positions.len() {
            let hidden = positions[other] > last || positions[other] < first;
            if seqs[other] == seqs[t] && !hidden {
                seen.keys.push(&ins[1].floats()[(other * kv_heads + head) * kw..][..kw]);
                seen.values.push(&ins[2].floats()[(other * kv_heads + head) * vw..][..vw]);
            }
        }
        seen
    }
}

/// That of f32 arithmetic.
const CLOSE: Tolerance = Tolerance::Close { abs: 1e-5, rel: 1e-5 };

fn cached_cases() -> Vec<OpCase> {
    let mut rng = CaseValues::new(14);
    let mut cases = Vec::new();
    let base = Attention {
        heads: 4,
        kv_heads: 2,
        k_width: 16,
        v_width: 16,
        scale: F32(0.25),
        softcap: F32(0.0),
        window: 0,
        causal: true,
        cached: true,
        v_in_k: false,
    };
    let variants = [
        ("plain", base.clone()),
        ("one head each", Attention { kv_heads: 4, ..base.clone() }),
        ("seven heads a key", Attention { heads: 7, kv_heads: 1, k_width: 64, v_width: 64, ..base.clone() }),
        ("odd widths", Attention { k_width: 13, v_width: 7, ..base.clone() }),
        ("wide", Attention { heads: 2, kv_heads: 1, k_width: 256, v_width: 256, ..base.clone() }),
        ("softcap", Attention { softcap: F32(3.0), ..base.clone() }),
        ("window 5", Attention { window: 5, ..base.clone() }),
        ("window 33", Attention { window: 33, ..base.clone() }),
        ("latent", Attention { kv_heads: 1, k_width: 24, v_width: 16, v_in_k: true, ..base.clone() }),
    ];
    for format in [Format::F32, Format::F16, Format::BF16] {
        variants.iter().for_each(|(name, op)| push_both(&mut cases, &mut rng, format, name, op));
    }
    let base = Attention { k_width: 32, v_width: 32, ..base };
    let variants = [
        ("plain", base.clone()),
        ("seven heads a key", Attention { heads: 7, kv_heads: 1, k_width: 64, v_width: 64, ..base.clone() }),
        ("unequal widths", Attention { k_width: 96, v_width: 32, ..base.clone() }),
        ("wide values", Attention { heads: 3, kv_heads: 1, v_width: 160, ..base.clone() }),
        ("wide", Attention { heads: 2, kv_heads: 1, k_width: 256, v_width: 256, ..base.clone() }),
        ("softcap", Attention { softcap: F32(3.0), ..base.clone() }),
        ("window 5", Attention { window: 5, ..base.clone() }),
        ("window 33", Attention { window: 33, ..base.clone() }),
        ("latent", Attention { kv_heads: 1, k_width: 96, v_width: 40, v_in_k: true, ..base.clone() }),
    ];
    variants.iter().for_each(|(name, op)| push_both(&mut cases, &mut rng, Format::Q8_0, name, op));
    push_lengths(&mut cases, &mut rng, &base);
    cases
}

/// The case without and with sinks.
fn push_both(cases: &mut Vec<OpCase>, rng: &mut CaseValues, format: Format, name: &str, op: &Attention) {
    for sinks in [false, true] {
        let mut ins = cached_inputs(rng, format, op);
        if sinks {
            ins.push(rng.floats([op.heads as usize]));
        }
        let name = format!("{name} {}{}", format.info().name, if sinks { " sinks" } else { "" });
        cases.push(OpCase::new(name, op.clone(), ins, CLOSE));
    }
}

/// Three sequences: one decoding at depth 70, a chunk of 9 at position 30, and one single first token; their blocks
/// lie scattered in the pool.
fn cached_inputs(rng: &mut CaseValues, format: Format, op: &Attention) -> Vec<Tensor> {
    let mut positions = vec![70];
    positions.extend(30..39);
    positions.push(0);
    let mut seqs = vec![0];
    seqs.extend([1; 9]);
    seqs.push(2);
    let tokens = positions.len();
    let width = if op.v_in_k { op.k_width } else { op.k_width + op.v_width } as usize;
    let freed = if op.window > 0 && op.window < 32 { -1 } else { 5 };
    let table = Tensor::i32([3, 3], vec![freed, 2, 7, 4, 1, -1, 6, -1, -1]);
    vec![
        rng.floats([tokens, (op.heads * op.k_width) as usize]),
        rng.kv_cache(format, [8, 32, op.kv_heads as usize, width]),
        Tensor::i32([tokens], positions),
        Tensor::i32([tokens], seqs),
        table,
    ]
}

/// Blocks of other lengths: the same three sequences.
fn push_lengths(cases: &mut Vec<OpCase>, rng: &mut CaseValues, op: &Attention) {
    for positions in OTHER_LENGTHS {
        for format in [Format::F32, Format::BF16, Format::Q8_0] {
            for (windows, window) in [("", 0), (" window 33", 33)] {
                let op = Attention { window, ..op.clone() };
                let mut ins = cached_inputs(rng, format, &op);
                let (heads, width) = (ins[1].shape[2], ins[1].shape[3]);
                ins[1] = rng.kv_cache(format, [12, positions, heads, width]);
                ins[4] = Tensor::i32([3, 5], vec![5, 2, 7, 11, 0, 4, 1, 9, -1, -1, 6, -1, -1, -1, -1]);
                let name = format!("blocks of {positions} {}{windows}", format.info().name);
                cases.push(OpCase::new(name, op, ins, CLOSE));
            }
        }
    }
}

fn dense_cases() -> Vec<OpCase> {
    let mut rng = CaseValues::new(15);
    let mut cases = Vec::new();
    let masks =
        [("both ways", false, 0), ("causal", true, 0), ("causal window", true, 3), ("window both ways", false, 3)];
    for (name, causal, window) in masks {
        let op = Attention {
            heads: 4,
            kv_heads: 2,
            k_width: 8,
            v_width: 12,
            scale: F32(0.35),
            softcap: F32(0.0),
            window,
            causal,
            cached: false,
            v_in_k: false,
        };
        let (tokens, seqs) = (11, vec![0, 0, 0, 0, 0, 0, 0, 1, 1, 1, 1]);
        let positions = (0..7).chain(0..4).collect();
        let ins = vec![
            rng.floats([tokens, 32]),
            rng.floats([tokens, 16]),
            rng.floats([tokens, 24]),
            Tensor::i32([tokens], positions),
            Tensor::i32([tokens], seqs),
        ];
        cases.push(OpCase::new(name, op, ins, CLOSE));
    }
    cases
}
