//! `unary`: element-wise functions of one value.

use super::case::{Values, with_extremes};
use super::lower::Lowering;
use super::{Case, Map, NoGeneralForm, OpDef, Tolerance, arity, f32_rows};
use crate::attr::F32;
use crate::attr_enum;
use crate::expr::{Func, gelu_erf, gelu_tanh, silu};
use crate::graph::Graph;
use crate::op_struct;
use crate::tensor::Tensor;
use crate::types::{Type, TypeError};

attr_enum! {
    /// Which function.
    UnaryKind {
        /// `c * x`.
        Scale = "scale",
        /// `x * sigmoid(x)`.
        Silu = "silu",
        /// `0.5 x (1 + tanh(sqrt(2/pi) (x + 0.044715 x^3)))` (Hendrycks and Gimpel, 2016).
        GeluTanh = "gelu_tanh",
        /// `0.5 x (1 + erf(x / sqrt 2))`.
        GeluErf = "gelu_erf",
        /// `tanh x`.
        Tanh = "tanh",
        /// `1 / (1 + exp(-x))`.
        Sigmoid = "sigmoid",
        /// `max(x, 0)`.
        Relu = "relu",
        /// `c * tanh(x / c)`.
        Softcap = "softcap",
        /// `e^x`.
        Exp = "exp",
        /// `x^2`.
        Square = "square",
        /// The square root; NaN below 0.
        Sqrt = "sqrt",
        /// `1 / sqrt(x + c)`.
        Rsqrt = "rsqrt",
    }
}

op_struct! {
    /// `x f32[rows, width] -> f32[rows, width]`, element by element.
    Unary {
        /// The function.
        kind: UnaryKind,
        /// The constant of `scale`, `softcap` and `rsqrt`; 0 for the others.
        c: F32,
    }
}

impl Unary {
    /// A function without a constant.
    pub fn new(kind: UnaryKind) -> Unary {
        Unary { kind, c: F32(0.0) }
    }

    fn apply(&self, x: f64) -> f64 {
        let c = f64::from(self.c.0);
        match self.kind {
            UnaryKind::Scale => c * x,
            UnaryKind::Silu => silu(x),
            UnaryKind::GeluTanh => gelu_tanh(x),
            UnaryKind::GeluErf => gelu_erf(x),
            UnaryKind::Tanh => x.tanh(),
            UnaryKind::Sigmoid => 1.0 / (1.0 + (-x).exp()),
            UnaryKind::Relu => Func::Relu.of_floats(&[x]),
            UnaryKind::Softcap => c * (x / c).tanh(),
            UnaryKind::Exp => x.exp(),
            UnaryKind::Square => x * x,
            UnaryKind::Sqrt => x.sqrt(),
            UnaryKind::Rsqrt => 1.0 / (x + c).sqrt(),
        }
    }
}

impl OpDef for Unary {
    const NAME: &'static str = "unary";
    const ROW_WISE: bool = true;

    fn infer(&self, ins: &[Type]) -> Result<Vec<Type>, TypeError> {
        arity(ins, 1..=1)?;
        f32_rows(&ins[0], "x")?;
        if self.kind == UnaryKind::Softcap && (self.c.0.is_nan() || self.c.0 <= 0.0) {
            return Err(TypeError::new(format!("softcap of {}: a positive cap is wanted", self.c)));
        }
        Ok(vec![ins[0].clone()])
    }

    fn eval(&self, ins: &[&Tensor]) -> Vec<Tensor> {
        let out = ins[0].floats().iter().map(|&x| self.apply(f64::from(x)) as f32).collect();
        vec![Tensor::f32(ins[0].shape.clone(), out)]
    }

    fn lower(&self, ins: &[Type]) -> Result<Graph, NoGeneralForm> {
        let (mut l, x) = Lowering::new(Self::NAME, ins)?;
        let c = self.c.0;
        let y = match self.kind {
            UnaryKind::Scale => l.op(Map::scale(c), &x)?,
            UnaryKind::Softcap => l.op(Map::softcap(c), &x)?,
            UnaryKind::Rsqrt => l.op(Map::inverse_root(c), &x)?,
            kind => l.map(&format!("{kind}(x0)"), &x)?,
        };
        l.finish(y)
    }

    fn cases() -> Vec<Case> {
        let mut rng = Values::new(8);
        let mut cases = Vec::new();
        for &kind in UnaryKind::ALL {
            let c = F32(match kind {
                UnaryKind::Scale | UnaryKind::Softcap => 30.0,
                UnaryKind::Rsqrt => 0.125,
                _ => 0.0,
            });
            let mut x = rng.floats([3, 67]);
            if let crate::tensor::Data::F32(v) = &mut x.data {
                v.iter_mut().for_each(|v| *v *= 8.0);
            }
            let close = match kind {
                UnaryKind::Scale | UnaryKind::Relu | UnaryKind::Square | UnaryKind::Sqrt => Tolerance::Exact,
                UnaryKind::Silu => Tolerance::Close { abs: 1e-7, rel: 1e-7 },
                _ => Tolerance::Close { abs: 1e-6, rel: 1e-5 },
            };
            cases.push(Case::new(format!("{kind}"), Unary { kind, c }, vec![x.clone()], close));
            cases.push(Case::new(format!("{kind} extremes"), Unary { kind, c }, vec![with_extremes(x)], close));
        }
        cases
    }
}
