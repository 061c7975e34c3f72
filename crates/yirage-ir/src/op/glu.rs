//! `glu`: gated linear units (Shazeer, 2020).

use super::case::Values;
use super::lower::Lowering;
use super::{Case, Map, NoGeneralForm, OpDef, Tolerance, arity, f32_rows};
use crate::attr_enum;
use crate::expr::{Func, gelu_erf, gelu_tanh, silu};
use crate::graph::Graph;
use crate::op_struct;
use crate::tensor::Tensor;
use crate::types::{Type, TypeError};

attr_enum! {
    /// Which gate.
    GluKind {
        /// `silu(gate) * up`.
        Silu = "silu",
        /// `gelu_tanh(gate) * up`.
        GeluTanh = "gelu_tanh",
        /// `gelu_erf(gate) * up`.
        GeluErf = "gelu_erf",
        /// gpt-oss: gate at most 7, up within 7 of 0, `(up + 1) * gate * sigmoid(1.702 gate)`.
        GptOss = "gpt_oss",
    }
}

op_struct! {
    /// `(gate f32[rows, width], up f32[rows, width]) -> f32[rows, width]`.
    Glu {
        /// The gate's function.
        kind: GluKind,
    }
}

impl OpDef for Glu {
    const NAME: &'static str = "glu";
    const ROW_WISE: bool = true;

    fn infer(&self, ins: &[Type]) -> Result<Vec<Type>, TypeError> {
        arity(ins, 2..=2)?;
        f32_rows(&ins[0], "gate")?;
        if ins[0] != ins[1] {
            return Err(TypeError::new(format!("gate is {} and up is {}: they must agree", ins[0], ins[1])));
        }
        Ok(vec![ins[0].clone()])
    }

    fn eval(&self, ins: &[&Tensor]) -> Vec<Tensor> {
        let apply = |g: f64, u: f64| match self.kind {
            GluKind::Silu => silu(g) * u,
            GluKind::GeluTanh => gelu_tanh(g) * u,
            GluKind::GeluErf => gelu_erf(g) * u,
            GluKind::GptOss => {
                // As functions of elements do, and unlike Rust's: NaN stays.
                let (g, u) = (Func::Min.of_floats(&[g, 7.0]), Func::Clamp.of_floats(&[u, -7.0, 7.0]));
                (u + 1.0) * g / (1.0 + (-1.702 * g).exp())
            }
        };
        let pairs = ins[0].floats().iter().zip(ins[1].floats());
        let out = pairs.map(|(&g, &u)| apply(f64::from(g), f64::from(u)) as f32).collect();
        vec![Tensor::f32(ins[0].shape.clone(), out)]
    }

    fn lower(&self, ins: &[Type]) -> Result<Graph, NoGeneralForm> {
        let (mut l, x) = Lowering::new(Self::NAME, ins)?;
        let map = match self.kind {
            GluKind::Silu => Map::gated(Func::Silu),
            GluKind::GeluTanh => Map::gated(Func::GeluTanh),
            GluKind::GeluErf => Map::gated(Func::GeluErf),
            GluKind::GptOss => Map::clipped_gate(),
        };
        let y = l.op(map, &x)?;
        l.finish(y)
    }

    fn cases() -> Vec<Case> {
        let mut rng = Values::new(10);
        let mut cases = Vec::new();
        for &kind in GluKind::ALL {
            for (rows, width) in [(1, 64), (4, 77), (0, 8)] {
                let mut ins = vec![rng.floats([rows, width]), rng.floats([rows, width])];
                for t in &mut ins {
                    if let crate::tensor::Data::F32(v) = &mut t.data {
                        v.iter_mut().for_each(|v| *v *= 10.0);
                    }
                }
                let close = Tolerance::Close { abs: 1e-5, rel: 1e-5 };
                cases.push(Case::new(format!("{kind} {rows}x{width}"), Glu { kind }, ins, close));
            }
        }
        cases
    }
}
