//! `unary`: element-wise functions of one value.

use super::case::{Values, with_extremes};
use super::{Case, OpDef, Tolerance, arity, f32_rows};
use crate::attr::F32;
use crate::attr_enum;
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

/// `x * sigmoid(x)`.
pub fn silu(x: f64) -> f64 {
    x / (1.0 + (-x).exp())
}

/// GELU by tanh.
pub fn gelu_tanh(x: f64) -> f64 {
    0.5 * x * (1.0 + ((2.0 / std::f64::consts::PI).sqrt() * (x + 0.044715 * x * x * x)).tanh())
}

/// GELU by the error function.
pub fn gelu_erf(x: f64) -> f64 {
    0.5 * x * erfc(-x / std::f64::consts::SQRT_2)
}

/// The complementary error function: a Taylor series near 0, else a continued fraction (Abramowitz and Stegun 7.1.6
/// and 7.1.14); relative error below 1e-13.
fn erfc(x: f64) -> f64 {
    if x < 0.0 {
        return 2.0 - erfc(-x);
    }
    let two_over_root_pi = std::f64::consts::FRAC_2_SQRT_PI;
    if x < 2.5 {
        let (mut term, mut sum) = (x, x);
        for n in 1..100 {
            term *= 2.0 * x * x / f64::from(2 * n + 1);
            sum += term;
        }
        return 1.0 - two_over_root_pi * (-x * x).exp() * sum;
    }
    let tail = (1..=80).rev().fold(x, |f, n| x + f64::from(n) / 2.0 / f);
    (-x * x).exp() / (tail * std::f64::consts::PI.sqrt())
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
            UnaryKind::Relu => x.max(0.0),
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gelu_erf_matches_tabulated_error_function() {
        // erf(1) = 0.8427007929497149, erf(0.5) = 0.5204998778130465, erfc(3) = 2.209049699858544e-5 (A&S table 7.1).
        let root = std::f64::consts::SQRT_2;
        assert!((gelu_erf(root) - 0.5 * root * 1.842_700_792_949_715).abs() < 1e-14);
        assert!((gelu_erf(root / 2.0) - 0.25 * root * 1.520_499_877_813_046_4).abs() < 1e-14);
        assert!((erfc(3.0) / 2.209_049_699_858_544e-5 - 1.0).abs() < 1e-12);
    }
}
