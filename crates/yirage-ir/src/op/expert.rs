//! `expert_linear`, `expert_bias`, `expert_sum`: what chosen experts do with a token.
//!
//! A choice of [`NO_EXPERT`] is none: it adds nothing and costs nothing. So a rank that holds some of the experts leaves out
//! those of the others.

use super::case::CaseValues;
use super::linear::matmul_format;
use super::lower::Lowering;
use super::{NoGeneralForm, OpCase, OpDef, Quantize, Role, Tolerance, activations, arity, f32_rows, times};
use crate::activation::ActivationFormat;
use crate::cost::{Cost, Reads, StepSizes};
use crate::dim::{Dim, Sym};
use crate::dtype::DType;
use crate::graph::{Graph, ValueId};
use crate::op_struct;
use crate::quant::Format;
use crate::tensor::Tensor;
use crate::types::{Type, TypeError};

op_struct! {
    /// `(x [Tokens, k] or [Tokens, top_k*k], w [experts, n, k] stored, chosen i32[Tokens, top_k])
    /// -> f32[Tokens, top_k*n]`: part r of token t is `w[chosen[t, r]]` times the token's row (shared by its experts)
    /// or times part r of it, and 0 where `chosen[t, r]` is -1. Each output is the same sum as `linear`'s.
    ExpertLinear {
        /// Experts a token meets.
        top_k: u32,
        /// Whether all experts of a token read the same row.
        shared: bool,
    }
}

op_struct! {
    /// `(x f32[Tokens, top_k*n], bias [experts, n], chosen i32[Tokens, top_k]) -> f32[Tokens, top_k*n]`:
    /// part r of token t plus `bias[chosen[t, r]]`, which is 0 for a choice of -1.
    ExpertBias {
        /// Experts a token meets.
        top_k: u32,
    }
}

op_struct! {
    /// `(x f32[Tokens, top_k*n], weights f32[Tokens, top_k]) -> f32[Tokens, n]`: the parts of a token, each times its
    /// weight, added in rank order.
    ExpertSum {
        /// Experts a token meets.
        top_k: u32,
    }
}

/// The number of an expert that is none.
pub const NO_EXPERT: i32 = -1;

fn check_chosen(ty: &Type, top_k: u32) -> Result<(), TypeError> {
    if ty.dtype == DType::I32 && ty.shape.len() == 2 && ty.shape[1] == Dim::Const(top_k) {
        return Ok(());
    }
    Err(TypeError::new(format!("chosen is {ty}, i32[Tokens, {top_k}] wanted")))
}

/// What the chosen experts give, `[Tokens, top_k, n]`, and 0 of those that are none.
fn unless_none(l: &mut Lowering, chosen: ValueId, given: ValueId) -> Result<ValueId, NoGeneralForm> {
    let shape = [l.shape(chosen), vec![Dim::Const(1)]].concat();
    let chosen = l.reshape(chosen, &shape)?;
    l.map(&format!("select(eq(x0, {NO_EXPERT}i), 0.0, x1)"), &[chosen, given])
}

/// Activations of cases as the two experts of a token read them.
fn quantised(x: &Tensor, shared: bool) -> Tensor {
    Quantize { layout: ActivationFormat::Q8A, parts: if shared { 1 } else { 2 } }.eval(&[x]).remove(0)
}

impl OpDef for ExpertLinear {
    const NAME: &'static str = "expert_linear";
    const ROW_WISE: bool = false;

    fn activations(&self) -> &'static [usize] {
        &[0]
    }

    fn infer(&self, ins: &[Type]) -> Result<Vec<Type>, TypeError> {
        arity(ins, 3..=3)?;
        check_chosen(&ins[2], self.top_k)?;
        let [Dim::Const(_), Dim::Const(n), Dim::Const(k)] = ins[1].shape[..] else {
            return Err(TypeError::new(format!("w is {}, [experts, n, k] wanted", ins[1])));
        };
        if n == 0 || k == 0 || self.top_k == 0 {
            return Err(TypeError::new(format!("w is {} for {self:?}: sizes above 0 wanted", ins[1])));
        }
        let want = if self.shared { k } else { times(k, self.top_k, "x of all experts")? };
        activations(&ins[0])?;
        if ins[0].shape.len() != 2 || ins[0].shape[1] != Dim::Const(want) {
            return Err(TypeError::new(format!("x is {}, [Tokens, {want}] wanted", ins[0])));
        }
        Ok(vec![Type::rows(ins[0].shape[0], times(n, self.top_k, "results of all experts")?)])
    }

    fn takes_quantized(&self, input: usize) -> bool {
        input == 0
    }

    fn eval(&self, ins: &[&Tensor]) -> Vec<Tensor> {
        let (x, w, chosen, top_k) = (ins[0], ins[1], ins[2].ints(), self.top_k as usize);
        let (n, k) = (w.shape[1], w.shape[2]);
        let mut out = Vec::with_capacity(chosen.len() * n);
        for t in 0..x.rows() {
            let row = x.row_f64(t);
            for r in 0..top_k {
                let part = if self.shared { &row[..] } else { &row[r * k..][..k] };
                if chosen[t * top_k + r] == NO_EXPERT {
                    out.extend(std::iter::repeat_n(0.0, n));
                    continue;
                }
                let first = chosen[t * top_k + r] as usize * n;
                for i in 0..n {
                    out.push(w.row_f64(first + i).iter().zip(part).map(|(a, b)| a * b).sum::<f64>() as f32);
                }
            }
        }
        vec![Tensor::f32([x.rows(), top_k * n], out)]
    }

    fn role(&self, input: usize, _: &Tensor) -> Role {
        match input {
            0 => Role::Activation,
            1 => Role::Weight,
            _ => Role::StepInput(&[Sym::Tokens]),
        }
    }

    fn lower(&self, ins: &[Type]) -> Result<Graph, NoGeneralForm> {
        let (mut l, x) = Lowering::new(Self::NAME, ins)?;
        let (rows, top_k, one) = (l.shape(x[0])[0], Dim::Const(self.top_k), Dim::Const(1));
        let [_, Dim::Const(n), k] = ins[1].shape[..] else {
            return Err(NoGeneralForm::Beyond("the weight is no stack of matrices"));
        };
        let plain = matches!(ins[1].dtype, DType::Stored(f) if f.info().block == 1);
        let w = if plain { l.gather(x[1], x[2])? } else { l.f32(x[1])? };
        let w = l.f32(w)?;
        let w = l.permute(w, &[0, 1, 3, 2])?;
        let input = l.f32(x[0])?;
        let input = l.reshape(input, &[rows, if self.shared { one } else { top_k }, one, k])?;
        let y = l.contract(input, w)?;
        let y = l.reshape(y, &[rows, top_k, Dim::Const(n)])?;
        let y = unless_none(&mut l, x[2], y)?;
        let y = l.reshape(y, &[rows, Dim::Const(self.top_k * n)])?;
        l.finish(y)
    }

    fn cases() -> Vec<OpCase> {
        let mut rng = CaseValues::new(17);
        let mut cases = Vec::new();
        for format in [Format::F32, Format::BF16, Format::Q4_0, Format::Q8_0, Format::Q4_K, Format::MXFP4] {
            let k = if format.info().block == 256 { 512 } else { 320 };
            for shared in [true, false] {
                let w = rng.weight(format, [5, 24, k]);
                let x = rng.outliers([4, if shared { k } else { 2 * k }]);
                let chosen = Tensor::i32([4, 2], vec![0, 4, 3, 1, 2, 0, 4, 3]);
                let op = ExpertLinear { top_k: 2, shared };
                let name = format!("{} shared {shared}", format.info().name);
                let tolerance = Tolerance::SumOfProducts { c: 16.0 };
                if format.info().block > 1 {
                    let q = quantised(&x, shared);
                    let ins = vec![q, w.clone(), chosen.clone()];
                    cases.push(OpCase::new(format!("{name} q8a"), op.clone(), ins, tolerance));
                }
                cases.push(OpCase::new(format!("{name} f32"), op, vec![x, w, chosen], tolerance));
            }
        }
        for shared in [true, false] {
            let w = rng.weight(Format::F32, [5, 24, 96]);
            let x = rng.outliers([4, if shared { 96 } else { 192 }]);
            let chosen = Tensor::i32([4, 2], vec![NO_EXPERT, 4, 3, NO_EXPERT, NO_EXPERT, NO_EXPERT, 4, 3]);
            let (op, tolerance) = (ExpertLinear { top_k: 2, shared }, Tolerance::SumOfProducts { c: 16.0 });
            cases.push(OpCase::new(format!("few shared {shared} f32"), op, vec![x, w, chosen], tolerance));
        }
        // Experts with many tokens, with one, and with none; and tokens with experts that are none.
        let crowd: Vec<i32> =
            (0..41).flat_map(|t| [if t % 7 == 0 { 3 } else { 1 }, if t == 20 { 0 } else { 4 }]).collect();
        let own = crowd.iter().map(|&e| if e < 3 { e } else { NO_EXPERT }).collect();
        for (who, chosen) in [("crowded", crowd), ("crowded some none", own), ("crowded all none", vec![NO_EXPERT; 82])]
        {
            for shared in [true, false] {
                let w = rng.weight(Format::Q4_K, [5, 72, 512]);
                let x = rng.outliers([41, if shared { 512 } else { 1024 }]);
                let q = quantised(&x, shared);
                let op = ExpertLinear { top_k: 2, shared };
                let chosen = Tensor::i32([41, 2], chosen.clone());
                let tolerance = Tolerance::SumOfProducts { c: 16.0 };
                let ins = vec![q, w.clone(), chosen.clone()];
                cases.push(OpCase::new(format!("{who} shared {shared} q8a"), op.clone(), ins, tolerance));
                cases.push(OpCase::new(format!("{who} shared {shared} f32"), op, vec![x, w, chosen], tolerance));
            }
        }
        cases
    }

    fn work(&self, ins: &[Type], step: &StepSizes<'_>) -> Cost {
        let (of, tokens) = (ins[1].shape[0].get(&step.dims).max(1) as f64, ins[0].shape[0].get(&step.dims) as f64);
        let (chosen, one) = (f64::from(self.top_k), ins[1].elems(&step.dims) as f64 / of);
        // Experts that at least one of the tokens is expected to choose, if they choose evenly.
        let met = of * (1.0 - (1.0 - chosen / of).max(0.0).powf(tokens));
        Cost {
            ops: 2.0 * one * chosen * tokens,
            format: matmul_format(&ins[0], &ins[1]),
            reads: vec![Reads::Whole, Reads::Parts(met), Reads::Whole],
        }
    }
}

impl OpDef for ExpertBias {
    const NAME: &'static str = "expert_bias";
    const ROW_WISE: bool = true;

    fn activations(&self) -> &'static [usize] {
        &[0]
    }

    fn infer(&self, ins: &[Type]) -> Result<Vec<Type>, TypeError> {
        arity(ins, 3..=3)?;
        check_chosen(&ins[2], self.top_k)?;
        let row = f32_rows(&ins[0], "x")?;
        match ins[1].shape[..] {
            [Dim::Const(_), Dim::Const(n)] if n.checked_mul(self.top_k) == Some(row) => Ok(vec![ins[0].clone()]),
            _ => Err(TypeError::new(format!("x is {}, bias {}: they do not match", ins[0], ins[1]))),
        }
    }

    fn eval(&self, ins: &[&Tensor]) -> Vec<Tensor> {
        let (n, chosen) = (ins[1].width(), ins[2].ints());
        let mut out = ins[0].floats().to_vec();
        for (part, &e) in out.chunks_exact_mut(n).zip(chosen).filter(|(_, e)| **e != NO_EXPERT) {
            part.iter_mut().zip(ins[1].row(e as usize)).for_each(|(x, b)| *x += b);
        }
        vec![Tensor::f32(ins[0].shape.clone(), out)]
    }

    fn whole(&self, input: usize, _: &Type) -> bool {
        input == 1
    }

    fn role(&self, input: usize, _: &Tensor) -> Role {
        match input {
            0 => Role::Activation,
            1 => Role::Weight,
            _ => Role::StepInput(&[Sym::Tokens]),
        }
    }

    fn lower(&self, ins: &[Type]) -> Result<Graph, NoGeneralForm> {
        let (mut l, x) = Lowering::new(Self::NAME, ins)?;
        let shape = l.shape(x[0]);
        let bias = l.gather(x[1], x[2])?;
        let bias = unless_none(&mut l, x[2], bias)?;
        let bias = l.reshape(bias, &shape)?;
        let y = l.map("add(x0, x1)", &[x[0], bias])?;
        l.finish(y)
    }

    fn cases() -> Vec<OpCase> {
        let mut rng = CaseValues::new(18);
        let ins = vec![rng.floats([3, 2 * 19]), rng.floats([4, 19]), Tensor::i32([3, 2], vec![3, 0, 1, 2, 0, 3])];
        let none = Tensor::i32([3, 2], vec![NO_EXPERT, 0, 1, NO_EXPERT, NO_EXPERT, NO_EXPERT]);
        let left_out = vec![rng.floats([3, 2 * 19]), ins[1].clone(), none];
        let case = |name, ins| OpCase::new(name, ExpertBias { top_k: 2 }, ins, Tolerance::Exact);
        vec![case("two of four", ins), case("some none", left_out)]
    }
}

impl OpDef for ExpertSum {
    const NAME: &'static str = "expert_sum";
    const ROW_WISE: bool = true;

    fn activations(&self) -> &'static [usize] {
        &[0]
    }

    fn infer(&self, ins: &[Type]) -> Result<Vec<Type>, TypeError> {
        arity(ins, 2..=2)?;
        let (row, k) = (f32_rows(&ins[0], "x")?, f32_rows(&ins[1], "weights")?);
        if k != self.top_k || k == 0 || !row.is_multiple_of(k) {
            return Err(TypeError::new(format!("x is {}, weights {}: they do not match", ins[0], ins[1])));
        }
        Ok(vec![Type::rows(ins[0].shape[0], row / k)])
    }

    fn eval(&self, ins: &[&Tensor]) -> Vec<Tensor> {
        let (top_k, n) = (self.top_k as usize, ins[0].width() / self.top_k as usize);
        let mut out = Vec::with_capacity(ins[0].rows() * n);
        for t in 0..ins[0].rows() {
            let (x, w) = (ins[0].row_f64(t), ins[1].row_f64(t));
            out.extend((0..n).map(|i| (0..top_k).map(|r| x[r * n + i] * w[r]).sum::<f64>() as f32));
        }
        vec![Tensor::f32([ins[0].rows(), n], out)]
    }

    fn lower(&self, ins: &[Type]) -> Result<Graph, NoGeneralForm> {
        let (mut l, x) = Lowering::new(Self::NAME, ins)?;
        let (rows, top_k) = (l.shape(x[0])[0], Dim::Const(self.top_k));
        let n = Dim::Const(ins[0].width().unwrap_or(0) as u32 / self.top_k);
        let parts = l.reshape(x[0], &[rows, top_k, n])?;
        let weights = l.reshape(x[1], &[rows, Dim::Const(1), top_k])?;
        let y = l.contract(weights, parts)?;
        let y = l.reshape(y, &[rows, n])?;
        l.finish(y)
    }

    fn cases() -> Vec<OpCase> {
        let mut rng = CaseValues::new(19);
        let ins = vec![rng.floats([3, 4 * 33]), rng.floats([3, 4])];
        vec![OpCase::new("four", ExpertSum { top_k: 4 }, ins, Tolerance::Close { abs: 1e-6, rel: 1e-6 })]
    }
}
