//! `layer_norm`: mean and variance normalisation (Ba, Kiros and Hinton, 2016).

use super::case::CaseValues;
use super::lower::Lowering;
use super::{NoGeneralForm, OpCase, OpDef, ReduceKind, Role, Tolerance, arity, f32_rows, vector};
use crate::attr::F32;
use crate::graph::Graph;
use crate::op_struct;
use crate::tensor::Tensor;
use crate::types::{Type, TypeError};

op_struct! {
    /// `(x f32[rows, width], w [width], b [width]) -> f32[rows, width]`:
    /// `(x - mean) / sqrt(variance + eps) * w + b`; `b` may be absent.
    LayerNorm {
        /// Added to the variance.
        eps: F32,
    }
}

impl OpDef for LayerNorm {
    const NAME: &'static str = "layer_norm";
    const ROW_WISE: bool = true;

    fn activations(&self) -> &'static [usize] {
        &[0]
    }

    fn infer(&self, ins: &[Type]) -> Result<Vec<Type>, TypeError> {
        arity(ins, 2..=3)?;
        let width = f32_rows(&ins[0], "x")?;
        vector(&ins[1], width, "w")?;
        if let Some(b) = ins.get(2) {
            vector(b, width, "b")?;
        }
        Ok(vec![ins[0].clone()])
    }

    fn eval(&self, ins: &[&Tensor]) -> Vec<Tensor> {
        let (w, width) = (ins[1].row_f64(0), ins[0].width());
        let b = ins.get(2).map_or_else(|| vec![0.0; width], |b| b.row_f64(0));
        let mut out = Vec::with_capacity(ins[0].floats().len());
        for r in 0..ins[0].rows() {
            let x = ins[0].row_f64(r);
            let mean = x.iter().sum::<f64>() / width as f64;
            let variance = x.iter().map(|v| (v - mean) * (v - mean)).sum::<f64>() / width as f64;
            let inverse = 1.0 / (variance + f64::from(self.eps.0)).sqrt();
            out.extend((0..width).map(|i| ((x[i] - mean) * inverse * w[i] + b[i]) as f32));
        }
        vec![Tensor::f32(ins[0].shape.clone(), out)]
    }

    fn whole(&self, input: usize, _: &Type) -> bool {
        input > 0
    }

    fn role(&self, input: usize, _: &Tensor) -> Role {
        match input {
            1 | 2 => Role::Weight,
            _ => Role::Activation,
        }
    }

    fn lower(&self, ins: &[Type]) -> Result<Graph, NoGeneralForm> {
        let (mut l, x) = Lowering::new(Self::NAME, ins)?;
        let mean = l.reduce_last(ReduceKind::Mean, x[0])?;
        let centred = l.map("sub(x0, x1)", &[x[0], mean])?;
        let variance = l.reduce_last(ReduceKind::MeanSquare, centred)?;
        let normal = format!("mul(mul(x0, rsqrt(add(x1, {}))), x2)", self.eps);
        let y = match x.get(2) {
            None => l.map(&normal, &[centred, variance, x[1]])?,
            Some(&b) => l.map(&format!("add({normal}, x3)"), &[centred, variance, x[1], b])?,
        };
        l.finish(y)
    }

    fn cases() -> Vec<OpCase> {
        let mut rng = CaseValues::new(6);
        let close = Tolerance::Close { abs: 5e-6, rel: 5e-6 };
        let mut cases = Vec::new();
        for (rows, width) in [(1, 64), (5, 768), (3, 31), (2, 1), (0, 16)] {
            let ins = vec![rng.floats([rows, width]), rng.floats([width]), rng.floats([width])];
            cases.push(OpCase::new(format!("{rows}x{width}"), LayerNorm { eps: F32(1e-5) }, ins, close));
        }
        let ins = vec![rng.floats([3, 200]), rng.floats([200])];
        cases.push(OpCase::new("no bias", LayerNorm { eps: F32(1e-5) }, ins, close));
        cases
    }
}
