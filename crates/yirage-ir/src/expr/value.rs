//! Scalars, and the reference evaluation of expressions.

use super::{Expr, Func, Term, is_float};
use crate::attr::F32;
use crate::dtype::DType;
use crate::quant::Format;
use crate::tensor::round_to;

/// A value of one element. Floats of every width are held as f32, which holds them exactly.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Scalar {
    /// A float.
    F32(F32),
    /// A signed number.
    I32(i32),
    /// A number without sign.
    U32(u32),
    /// True or false.
    Bool(bool),
}

impl From<f32> for Scalar {
    fn from(x: f32) -> Scalar {
        // One NaN: the text form knows no other.
        Scalar::F32(F32(if x.is_nan() { f32::NAN } else { x }))
    }
}
impl From<i32> for Scalar {
    fn from(x: i32) -> Scalar {
        Scalar::I32(x)
    }
}
impl From<u32> for Scalar {
    fn from(x: u32) -> Scalar {
        Scalar::U32(x)
    }
}
impl From<bool> for Scalar {
    fn from(x: bool) -> Scalar {
        Scalar::Bool(x)
    }
}

impl Scalar {
    /// The same number; of all NaN the one that the text form knows.
    #[must_use]
    pub fn canonical(self) -> Scalar {
        if let Scalar::F32(x) = self { Scalar::from(x.0) } else { self }
    }

    /// The type it is computed with as.
    pub fn dtype(self) -> DType {
        match self {
            Scalar::F32(_) => DType::F32,
            Scalar::I32(_) => DType::I32,
            Scalar::U32(_) => DType::U32,
            Scalar::Bool(_) => DType::Bool,
        }
    }

    /// The number it is, exactly.
    pub fn as_f64(self) -> f64 {
        match self {
            Scalar::F32(x) => f64::from(x.0),
            Scalar::I32(x) => f64::from(x),
            Scalar::U32(x) => f64::from(x),
            Scalar::Bool(x) => f64::from(u8::from(x)),
        }
    }

    /// As another type: floats are rounded to nearest, ties to even; floats become whole numbers by cutting off, at the
    /// ends of the range the nearest, NaN 0; whole numbers wrap around; what is not 0 is true.
    #[must_use]
    pub fn cast(self, to: DType) -> Scalar {
        match (to, self) {
            (DType::I32, Scalar::F32(x)) => Scalar::I32(x.0 as i32),
            (DType::U32, Scalar::F32(x)) => Scalar::U32(x.0 as u32),
            (DType::I32, Scalar::U32(x)) => Scalar::I32(x as i32),
            (DType::U32, Scalar::I32(x)) => Scalar::U32(x as u32),
            (DType::I32, Scalar::Bool(x)) => Scalar::I32(i32::from(x)),
            (DType::U32, Scalar::Bool(x)) => Scalar::U32(u32::from(x)),
            (DType::Bool, Scalar::F32(x)) => Scalar::Bool(x.0 != 0.0),
            (DType::Bool, x) => Scalar::Bool(x.as_f64() != 0.0),
            (to, x) if is_float(to) => {
                let mut value = [x.as_f64() as f32];
                if to != DType::Stored(Format::F32) {
                    round_to(to, &mut value);
                }
                Scalar::from(value[0])
            }
            (_, same) => same,
        }
    }
}

impl Expr {
    /// The value for one element of each input; the inputs have the types that [`Expr::infer`] has passed.
    pub fn eval(&self, ins: &[Scalar]) -> Scalar {
        let mut values: Vec<Scalar> = Vec::with_capacity(self.terms().len());
        for term in self.terms() {
            let value = match *term {
                Term::Input(i) => ins[i as usize],
                Term::Const(value) => value,
                Term::Cast(to, x) => values[x as usize].cast(to),
                Term::Call(func, args) => call(func, &args.map(|a| values[a as usize])[..func.arity()]),
            };
            values.push(value);
        }
        values[values.len() - 1]
    }
}

pub(super) fn call(func: Func, args: &[Scalar]) -> Scalar {
    if func == Func::Select {
        return args[if args[0].as_f64() != 0.0 { 1 } else { 2 }];
    }
    let compared = matches!(func, Func::Less | Func::LessEqual | Func::Equal | Func::NotEqual);
    match args[0] {
        Scalar::I32(_) if !compared => Scalar::I32(whole(func, args) as i32),
        Scalar::U32(_) if !compared => Scalar::U32(whole(func, args) as u32),
        _ => {
            let x: Vec<f64> = args.iter().map(|a| a.as_f64()).collect();
            let value = func.of_floats(&x);
            if compared { Scalar::Bool(value != 0.0) } else { Scalar::from(value as f32) }
        }
    }
}

/// A function of whole numbers of 32 bits; the caller keeps the low 32 bits.
fn whole(func: Func, args: &[Scalar]) -> i64 {
    let x: Vec<i64> = args.iter().map(|a| a.as_f64() as i64).collect();
    match func {
        Func::Add => x[0] + x[1],
        Func::Sub => x[0] - x[1],
        Func::Mul => x[0].wrapping_mul(x[1]),
        Func::Square => x[0].wrapping_mul(x[0]),
        Func::Min => x[0].min(x[1]),
        Func::Max => x[0].max(x[1]),
        Func::Clamp => x[0].max(x[1]).min(x[2]),
        Func::Neg => -x[0],
        Func::Abs => x[0].abs(),
        Func::Relu => x[0].max(0),
        other => unreachable!("{} of whole numbers, which inference refuses", other.name()),
    }
}
