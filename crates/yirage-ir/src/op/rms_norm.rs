//! `rms_norm`: root-mean-square normalisation (Zhang and Sennrich, 2019), of whole rows or of each head.

use super::case::{CaseValues, with_extremes};
use super::lower::Lowering;
use super::{NoGeneralForm, OpCase, OpDef, ReduceKind, Role, Tolerance, arity, f32_rows, vector};
use crate::attr::F32;
use crate::dim::Dim;
use crate::graph::Graph;
use crate::op_struct;
use crate::tensor::Tensor;
use crate::types::{Type, TypeError};

op_struct! {
    /// `(x f32[rows, m*width], w [width]) -> f32` of x's shape: each group of `width` elements becomes
    /// `x / sqrt(mean(x^2) + eps) * w`, or `* (1 + w)` with a unit offset. Without `w` the weight is 1.
    RmsNorm {
        /// Added to the mean of squares.
        eps: F32,
        /// Elements normalised together: the row's width, or a head's.
        width: u32,
        /// Whether the stored weight is the distance from 1 (gemma).
        unit_offset: bool,
    }
}

impl OpDef for RmsNorm {
    const NAME: &'static str = "rms_norm";
    const ROW_WISE: bool = true;

    fn activations(&self) -> &'static [usize] {
        &[0]
    }

    fn infer(&self, ins: &[Type]) -> Result<Vec<Type>, TypeError> {
        arity(ins, 1..=2)?;
        let row = f32_rows(&ins[0], "x")?;
        if self.width == 0 || !row.is_multiple_of(self.width) {
            return Err(TypeError::new(format!("rows of {row} do not divide into groups of {}", self.width)));
        }
        if let Some(w) = ins.get(1) {
            vector(w, self.width, "w")?;
        }
        Ok(vec![ins[0].clone()])
    }

    fn eval(&self, ins: &[&Tensor]) -> Vec<Tensor> {
        let width = self.width as usize;
        let weight: Vec<f64> = match ins.get(1) {
            Some(w) => w.row_f64(0).into_iter().map(|w| if self.unit_offset { 1.0 + w } else { w }).collect(),
            None => vec![1.0; width],
        };
        let mut out = Vec::with_capacity(ins[0].floats().len());
        for group in ins[0].floats().chunks_exact(width) {
            let mean = group.iter().map(|&v| f64::from(v) * f64::from(v)).sum::<f64>() / width as f64;
            let inverse = 1.0 / (mean + f64::from(self.eps.0)).sqrt();
            out.extend(group.iter().zip(&weight).map(|(&v, w)| (f64::from(v) * inverse * w) as f32));
        }
        vec![Tensor::f32(ins[0].shape.clone(), out)]
    }

    fn whole(&self, input: usize, _: &Type) -> bool {
        input == 1
    }

    fn role(&self, input: usize, _: &Tensor) -> Role {
        match input {
            1 => Role::Weight,
            _ => Role::Activation,
        }
    }

    fn lower(&self, ins: &[Type]) -> Result<Graph, NoGeneralForm> {
        let (mut l, x) = Lowering::new(Self::NAME, ins)?;
        let shape = l.shape(x[0]);
        let row = ins[0].width().unwrap_or(0) as u32;
        let parts = if row == self.width {
            x[0]
        } else {
            l.reshape(x[0], &[shape[0], Dim::Const(row / self.width), Dim::Const(self.width)])?
        };
        let mean = l.reduce_last(ReduceKind::MeanSquare, parts)?;
        let normal = format!("mul(x0, rsqrt(add(x1, {})))", self.eps);
        let y = match (x.get(1), self.unit_offset) {
            (None, _) => l.map(&normal, &[parts, mean])?,
            (Some(&w), false) => l.map(&format!("mul({normal}, x2)"), &[parts, mean, w])?,
            (Some(&w), true) => l.map(&format!("mul({normal}, add(x2, 1.0))"), &[parts, mean, w])?,
        };
        let y = l.reshape(y, &shape)?;
        l.finish(y)
    }

    fn cases() -> Vec<OpCase> {
        let mut rng = CaseValues::new(5);
        let close = Tolerance::Close { abs: 2e-6, rel: 2e-6 };
        let mut cases = Vec::new();
        for (rows, row, width, unit_offset) in
            [(1, 64, 64, false), (5, 640, 640, true), (3, 96, 24, false), (2, 17, 17, true), (0, 8, 8, false)]
        {
            let op = RmsNorm { eps: F32(1e-6), width: width as u32, unit_offset };
            let ins = vec![rng.floats([rows, row]), rng.floats([width])];
            cases.push(OpCase::new(format!("{rows}x{row}/{width} offset {unit_offset}"), op, ins, close));
        }
        let op = RmsNorm { eps: F32(1e-5), width: 2048, unit_offset: false };
        cases.push(OpCase::new("no weight", op.clone(), vec![rng.floats([4, 2048])], close));
        let ins = vec![with_extremes(rng.floats([4, 2048])), rng.floats([2048])];
        cases.push(OpCase::new("extremes", op, ins, close));
        cases
    }
}
