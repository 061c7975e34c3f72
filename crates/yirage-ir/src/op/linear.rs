//! `linear`: activations times a weight matrix.

use super::case::CaseValues;
use super::lower::Lowering;
use super::{NoGeneralForm, OpCase, OpDef, Role, Tolerance, activations, arity, times};
use crate::activation::ActivationFormat;
use crate::cost::{Cost, StepSizes};
use crate::dim::Dim;
use crate::dtype::DType;
use crate::graph::Graph;
use crate::op_struct;
use crate::quant::Format;
use crate::tensor::Tensor;
use crate::types::{Type, TypeError};

op_struct! {
    /// `(x [rows, groups*k], w [groups*n, k] stored) -> f32[rows, groups*n]`:
    /// `y[t, g*n + i] = sum_j x[t, g*k + j] * w[g*n + i, j]`.
    ///
    /// One group is the usual matrix product; with more, each group of inputs meets its own rows of the weight (the
    /// per-head projections of latent attention). `x` is f32 or in a layout of activations; each output is one sum over `j` in
    /// ascending chunks, whatever the batch.
    Linear {
        /// Number of groups.
        groups: u32,
    }
}

/// The format whose ceiling a product meets; none where a quantised weight meets f32 activations.
pub(super) fn matmul_format(x: &Type, w: &Type) -> Option<Format> {
    let DType::Stored(format) = w.dtype else { return None };
    (x.activation_format.is_some() || format.info().block == 1).then_some(format)
}

impl OpDef for Linear {
    const NAME: &'static str = "linear";
    const ROW_WISE: bool = false;

    fn activations(&self) -> &'static [usize] {
        &[0]
    }

    fn infer(&self, ins: &[Type]) -> Result<Vec<Type>, TypeError> {
        arity(ins, 2..=2)?;
        let ([rows, Dim::Const(width)], [Dim::Const(n), Dim::Const(k)]) = (&ins[0].shape[..], &ins[1].shape[..]) else {
            return Err(TypeError::new(format!("x is {}, w is {}: two matrices wanted", ins[0], ins[1])));
        };
        activations(&ins[0])?;
        let wanted = times(self.groups, *k, "x of all groups")?;
        if wanted == 0 || *n == 0 || *width != wanted || !n.is_multiple_of(self.groups) {
            return Err(TypeError::new(format!(
                "x is {} and w is {}: with {} groups x must be {wanted} wide and the rows of w divide by the groups",
                ins[0], ins[1], self.groups
            )));
        }
        Ok(vec![Type::new(DType::F32, [*rows, Dim::Const(*n)])])
    }

    fn takes_quantized(&self, input: usize) -> bool {
        input == 0
    }

    fn eval(&self, ins: &[&Tensor]) -> Vec<Tensor> {
        let (x, w, groups) = (ins[0], ins[1], self.groups as usize);
        let (t, n, k) = (x.rows(), w.rows(), w.width());
        let xs: Vec<Vec<f64>> = (0..t).map(|r| x.row_f64(r)).collect();
        let mut out = vec![0.0; t * n];
        for i in 0..n {
            let (row, at) = (w.row_f64(i), i / (n / groups) * k);
            for (r, x) in xs.iter().enumerate() {
                out[r * n + i] = row.iter().zip(&x[at..at + k]).map(|(a, b)| a * b).sum::<f64>() as f32;
            }
        }
        vec![Tensor::f32([t, n], out)]
    }

    fn role(&self, input: usize, _: &Tensor) -> Role {
        match input {
            1 => Role::Weight,
            _ => Role::Activation,
        }
    }

    fn lower(&self, ins: &[Type]) -> Result<Graph, NoGeneralForm> {
        let (mut l, x) = Lowering::new(Self::NAME, ins)?;
        let rows = l.shape(x[0])[0];
        let (input, w) = (l.f32(x[0])?, l.f32(x[1])?);
        if self.groups == 1 {
            let w = l.permute(w, &[1, 0])?;
            let y = l.contract(input, w)?;
            return l.finish(y);
        }
        let [Dim::Const(n), k] = l.shape(w)[..] else { return Err(NoGeneralForm::Beyond("the weight is no matrix")) };
        let groups = Dim::Const(self.groups);
        // A row is a batch of rows of one: the groups.
        let input = l.reshape(input, &[rows, groups, Dim::Const(1), k])?;
        let w = l.reshape(w, &[groups, Dim::Const(n / self.groups), k])?;
        let w = l.permute(w, &[0, 2, 1])?;
        let y = l.contract(input, w)?;
        let y = l.reshape(y, &[rows, Dim::Const(n)])?;
        l.finish(y)
    }

    fn cases() -> Vec<OpCase> {
        let mut rng = CaseValues::new(3);
        let mut cases = Vec::new();
        for &format in Format::ALL {
            let info = format.info();
            let k = if info.block == 256 { 512 } else { 96.max(info.block) };
            for (rows, n) in [(1, 33), (5, 16), (17, 80)] {
                let w = rng.weight(format, [n, k]);
                let x = rng.floats([rows, k]);
                let name = format!("{} {rows}x{n}x{k}", info.name);
                cases.push(OpCase::new(
                    format!("{name} f32"),
                    Linear { groups: 1 },
                    vec![x.clone(), w.clone()],
                    Tolerance::SumOfProducts { c: 16.0 },
                ));
                if info.block > 1 {
                    let quantise =
                        |x: &Tensor| super::Quantize { layout: ActivationFormat::Q8A, parts: 1 }.eval(&[x]).remove(0);
                    let tolerance = Tolerance::SumOfProducts { c: 16.0 };
                    let ins = vec![quantise(&x), w];
                    cases.push(OpCase::new(format!("{name} q8a"), Linear { groups: 1 }, ins, tolerance));
                    let ins = vec![quantise(&rng.outliers([rows, 512])), rng.weight(format, [n, 512])];
                    cases.push(OpCase::new(format!("{name} q8a outliers"), Linear { groups: 1 }, ins, tolerance));
                }
            }
        }
        for (rows, n, k) in [(0, 8, 32), (1, 1, 1), (3, 7, 5), (2, 130, 1000)] {
            let ins = vec![rng.floats([rows, k]), rng.weight(Format::F32, [n, k])];
            let name = format!("f32 {rows}x{n}x{k}");
            cases.push(OpCase::new(name, Linear { groups: 1 }, ins, Tolerance::SumOfProducts { c: 32.0 }));
        }
        let grouped = vec![rng.floats([3, 4 * 24]), rng.weight(Format::F32, [4 * 40, 24])];
        cases.push(OpCase::new("grouped", Linear { groups: 4 }, grouped, Tolerance::SumOfProducts { c: 16.0 }));
        cases
    }

    fn work(&self, ins: &[Type], step: &StepSizes<'_>) -> Cost {
        let rows = ins[0].shape[0].get(&step.dims);
        let ops = 2.0 * rows as f64 * ins[1].elems(&step.dims) as f64;
        // Slices of a row stay f32, and so does their arithmetic.
        let format = matmul_format(&ins[0], &ins[1]).filter(|_| self.groups == 1);
        Cost { ops, format, ..Cost::reading(2, rows) }
    }
}
