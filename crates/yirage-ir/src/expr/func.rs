//! The functions of an expression: every one with its name, its number of arguments and its meaning.

use crate::dtype::DType;
use crate::quant::Format;

macro_rules! funcs {
    ($($(#[$doc:meta])* $variant:ident = $name:literal, $arity:literal;)*) => {
        /// A function of scalars.
        #[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
        pub enum Func { $($(#[$doc])* $variant),* }

        impl Func {
            /// All functions.
            pub const ALL: &'static [Func] = &[$(Func::$variant),*];

            /// The name in text forms.
            pub fn name(self) -> &'static str {
                match self { $(Func::$variant => $name),* }
            }

            /// How many arguments it takes.
            pub fn arity(self) -> usize {
                match self { $(Func::$variant => $arity),* }
            }
        }
    };
}

funcs! {
    /// `a + b`.
    Add = "add", 2;
    /// `a - b`.
    Sub = "sub", 2;
    /// `a * b`.
    Mul = "mul", 2;
    /// `a / b`.
    Div = "div", 2;
    /// `a` to the power `b`, as IEEE 754's `pow`.
    Pow = "pow", 2;
    /// The smaller; NaN where either is NaN.
    Min = "min", 2;
    /// The larger; NaN where either is NaN.
    Max = "max", 2;
    /// `-x`.
    Neg = "neg", 1;
    /// `|x|`.
    Abs = "abs", 1;
    /// `e^x`.
    Exp = "exp", 1;
    /// The natural logarithm; NaN below 0.
    Log = "log", 1;
    /// The square root; NaN below 0.
    Sqrt = "sqrt", 1;
    /// `1 / sqrt(x)`.
    Rsqrt = "rsqrt", 1;
    /// `1 / x`.
    Recip = "recip", 1;
    /// `x * x`.
    Square = "square", 1;
    /// `tanh x`.
    Tanh = "tanh", 1;
    /// `1 / (1 + e^-x)`.
    Sigmoid = "sigmoid", 1;
    /// `x / (1 + e^-x)`.
    Silu = "silu", 1;
    /// `0.5 x (1 + erf(x / sqrt 2))`.
    GeluErf = "gelu_erf", 1;
    /// `0.5 x (1 + tanh(sqrt(2/pi) (x + 0.044715 x^3)))` (Hendrycks and Gimpel, 2016).
    GeluTanh = "gelu_tanh", 1;
    /// `max(x, 0)`; NaN stays.
    Relu = "relu", 1;
    /// `min(max(x, low), high)`; NaN where any of the three is NaN.
    Clamp = "clamp", 3;
    /// `a < b`, false where either is NaN.
    Less = "lt", 2;
    /// `a <= b`, false where either is NaN.
    LessEqual = "le", 2;
    /// `a == b`, false where either is NaN.
    Equal = "eq", 2;
    /// `a != b`, true where either is NaN.
    NotEqual = "ne", 2;
    /// `c ? a : b`.
    Select = "select", 3;
}

/// What a function makes of the types of its arguments.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Signature {
    /// Numbers of one kind give that kind; floats of any width give f32.
    Numbers,
    /// Floats give f32.
    Floats,
    /// Two of one kind give a bool.
    Compare,
    /// A bool and two of one kind give that kind.
    Choose,
}

impl Func {
    /// The function called `name`.
    pub fn parse(name: &str) -> Option<Func> {
        Func::ALL.iter().copied().find(|f| f.name() == name)
    }

    pub(super) fn signature(self) -> Signature {
        match self {
            Func::Add | Func::Sub | Func::Mul | Func::Min | Func::Max | Func::Neg | Func::Abs | Func::Square => {
                Signature::Numbers
            }
            Func::Relu | Func::Clamp => Signature::Numbers,
            Func::Less | Func::LessEqual | Func::Equal | Func::NotEqual => Signature::Compare,
            Func::Select => Signature::Choose,
            _ => Signature::Floats,
        }
    }

    /// The value of a function of floats, in f64.
    pub fn of_floats(self, x: &[f64]) -> f64 {
        let nan = x.iter().any(|v| v.is_nan());
        match self {
            Func::Add => x[0] + x[1],
            Func::Sub => x[0] - x[1],
            Func::Mul => x[0] * x[1],
            Func::Div => x[0] / x[1],
            Func::Pow => x[0].powf(x[1]),
            Func::Min | Func::Max | Func::Clamp if nan => f64::NAN,
            Func::Min => x[0].min(x[1]),
            Func::Max => x[0].max(x[1]),
            Func::Clamp => x[0].max(x[1]).min(x[2]),
            Func::Neg => -x[0],
            Func::Abs => x[0].abs(),
            Func::Exp => x[0].exp(),
            Func::Log => x[0].ln(),
            Func::Sqrt => x[0].sqrt(),
            Func::Rsqrt => 1.0 / x[0].sqrt(),
            Func::Recip => 1.0 / x[0],
            Func::Square => x[0] * x[0],
            Func::Tanh => x[0].tanh(),
            Func::Sigmoid => 1.0 / (1.0 + (-x[0]).exp()),
            Func::Silu => silu(x[0]),
            Func::GeluErf => gelu_erf(x[0]),
            Func::GeluTanh => gelu_tanh(x[0]),
            Func::Relu if nan => f64::NAN,
            Func::Relu => x[0].max(0.0),
            Func::Less => f64::from(u8::from(x[0] < x[1])),
            Func::LessEqual => f64::from(u8::from(x[0] <= x[1])),
            Func::Equal => f64::from(u8::from(x[0] == x[1])),
            Func::NotEqual => f64::from(u8::from(x[0] != x[1])),
            Func::Select => x[if x[0] != 0.0 { 1 } else { 2 }],
        }
    }
}

/// Whether elements of this type are computed with as f32.
pub fn is_float(dtype: DType) -> bool {
    matches!(dtype, DType::Stored(Format::F32 | Format::F16 | Format::BF16))
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
