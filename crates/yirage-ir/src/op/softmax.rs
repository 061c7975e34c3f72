//! `softmax` of rows.

use super::case::CaseValues;
use super::lower::Lowering;
use super::{NoGeneralForm, OpCase, OpDef, ReduceKind, Tolerance, arity, f32_rows};
use crate::graph::Graph;
use crate::op_struct;
use crate::tensor::Tensor;
use crate::types::{Type, TypeError};

op_struct! {
    /// `x f32[rows, width] -> f32[rows, width]`: `exp(x - max) / sum exp(x - max)`.
    Softmax {}
}

impl OpDef for Softmax {
    const NAME: &'static str = "softmax";
    const ROW_WISE: bool = true;

    fn activations(&self) -> &'static [usize] {
        &[0]
    }

    fn infer(&self, ins: &[Type]) -> Result<Vec<Type>, TypeError> {
        arity(ins, 1..=1)?;
        f32_rows(&ins[0], "x")?;
        Ok(vec![ins[0].clone()])
    }

    fn eval(&self, ins: &[&Tensor]) -> Vec<Tensor> {
        let mut out = Vec::with_capacity(ins[0].floats().len());
        for r in 0..ins[0].rows() {
            let x = ins[0].row_f64(r);
            let max = x.iter().copied().fold(f64::NEG_INFINITY, f64::max);
            let exps: Vec<f64> = x.iter().map(|v| (v - max).exp()).collect();
            let sum: f64 = exps.iter().sum();
            out.extend(exps.iter().map(|e| (e / sum) as f32));
        }
        vec![Tensor::f32(ins[0].shape.clone(), out)]
    }

    fn lower(&self, ins: &[Type]) -> Result<Graph, NoGeneralForm> {
        let (mut l, x) = Lowering::new(Self::NAME, ins)?;
        let max = l.reduce_last(ReduceKind::Max, x[0])?;
        let exp = l.map("exp(sub(x0, x1))", &[x[0], max])?;
        let sum = l.reduce_last(ReduceKind::Sum, exp)?;
        let y = l.map("div(x0, x1)", &[exp, sum])?;
        l.finish(y)
    }

    fn cases() -> Vec<OpCase> {
        let mut rng = CaseValues::new(7);
        let close = Tolerance::Close { abs: 1e-7, rel: 1e-5 };
        [(1, 1), (3, 31), (2, 512), (4, 128), (0, 8)]
            .into_iter()
            .map(|(r, w)| {
                let mut x = rng.floats([r, w]);
                if let crate::tensor::Data::F32(v) = &mut x.data {
                    v.iter_mut().for_each(|v| *v *= 20.0);
                }
                OpCase::new(format!("{r}x{w}"), Softmax {}, vec![x], close)
            })
            .collect()
    }
}
