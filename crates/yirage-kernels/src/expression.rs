//! Expressions over elements, as registers.

use crate::elements::computed_as;
use crate::math;
use yirage_ir::expr::{Expr, Func, Scalar, Term};
use yirage_ir::{DType, Format};
use yirage_kir::{BinaryFunction, KernelWriter, Register, ScalarType, UnaryFunction};

/// The value of an expression whose inputs are these.
pub(crate) fn evaluate(w: &mut KernelWriter, expr: &Expr, inputs: &[Register]) -> Register {
    let mut values: Vec<Register> = Vec::with_capacity(expr.terms().len());
    for term in expr.terms() {
        let value = match *term {
            Term::Input(at) => inputs[at as usize],
            Term::Const(value) => constant(w, value),
            Term::Cast(to, x) => cast(w, to, values[x as usize]),
            Term::Call(func, args) => call(w, func, &args.map(|a| values[a as usize])[..func.arity()]),
        };
        values.push(value);
    }
    values[values.len() - 1]
}

/// A constant.
pub(crate) fn constant(w: &mut KernelWriter, value: Scalar) -> Register {
    match value {
        Scalar::F32(x) => w.f32(x.0),
        Scalar::I32(x) => w.i32(x),
        Scalar::U32(x) => w.u32(x),
        Scalar::Bool(x) => w.constant(x),
    }
}

/// A value as another type, as [`Scalar::cast`] says.
pub(crate) fn cast(w: &mut KernelWriter, to: DType, x: Register) -> Register {
    match (w.ty(x), to) {
        (ScalarType::F32, DType::I32) => math::to_i32(w, x),
        (ScalarType::F32, DType::U32) => math::to_u32(w, x),
        (ScalarType::F32, DType::Bool) => {
            let zero = w.f32(0.0);
            w.not_equal(x, zero)
        }
        (ScalarType::I32 | ScalarType::U32, DType::Bool) => w.convert(ScalarType::Bool, x),
        (_, DType::Stored(Format::F16)) => {
            let x = w.convert(ScalarType::F32, x);
            math::round_to_f16(w, x)
        }
        (_, DType::Stored(Format::BF16)) => {
            let x = w.convert(ScalarType::F32, x);
            math::round_to_bf16(w, x)
        }
        (_, to) => w.convert(computed_as(to), x),
    }
}

/// The value of a function of these.
pub(crate) fn call(w: &mut KernelWriter, func: Func, x: &[Register]) -> Register {
    match (func, w.ty(x[0])) {
        (Func::Select, _) => w.select(x[0], x[1], x[2]),
        (Func::Less, _) => w.less(x[0], x[1]),
        (Func::LessEqual, _) => w.less_equal(x[0], x[1]),
        (Func::Equal, _) => w.equal(x[0], x[1]),
        (Func::NotEqual, _) => w.not_equal(x[0], x[1]),
        (Func::Add, _) => w.add(x[0], x[1]),
        (Func::Sub, _) => w.sub(x[0], x[1]),
        (Func::Mul, _) => w.mul(x[0], x[1]),
        (Func::Square, _) => w.mul(x[0], x[0]),
        (Func::Neg, _) => w.unary(UnaryFunction::Neg, x[0]),
        (Func::Abs, ScalarType::U32) => x[0],
        (Func::Abs, _) => w.unary(UnaryFunction::Abs, x[0]),
        (func, ScalarType::F32) => float(w, func, x),
        (func, ty) => whole(w, func, x, ty),
    }
}

fn float(w: &mut KernelWriter, func: Func, x: &[Register]) -> Register {
    let one = w.f32(1.0);
    match func {
        Func::Div => w.div(x[0], x[1]),
        Func::Recip => w.div(one, x[0]),
        Func::Sqrt => w.unary(UnaryFunction::Sqrt, x[0]),
        Func::Rsqrt => {
            let root = w.unary(UnaryFunction::Sqrt, x[0]);
            w.div(one, root)
        }
        Func::Min => math::smaller(w, x[0], x[1]),
        Func::Max => math::larger(w, x[0], x[1]),
        Func::Clamp => {
            let above = math::larger(w, x[0], x[1]);
            math::smaller(w, above, x[2])
        }
        Func::Relu => {
            let zero = w.f32(0.0);
            math::larger(w, x[0], zero)
        }
        Func::Pow => math::pow(w, x[0], x[1]),
        Func::Exp => math::exp(w, x[0]),
        Func::Log => math::log(w, x[0]),
        Func::Tanh => math::tanh(w, x[0]),
        Func::Sigmoid => math::sigmoid(w, x[0]),
        Func::Silu => math::silu(w, x[0]),
        Func::GeluErf => math::gelu_erf(w, x[0]),
        Func::GeluTanh => math::gelu_tanh(w, x[0]),
        Func::Add | Func::Sub | Func::Mul | Func::Square | Func::Neg | Func::Abs | Func::Select => x[0],
        Func::Less | Func::LessEqual | Func::Equal | Func::NotEqual => x[0],
    }
}

/// Functions of whole numbers; others are not defined for them.
fn whole(w: &mut KernelWriter, func: Func, x: &[Register], ty: ScalarType) -> Register {
    let zero = if ty == ScalarType::I32 { w.i32(0) } else { w.u32(0) };
    match func {
        Func::Min => w.binary(BinaryFunction::Min, x[0], x[1]),
        Func::Max => w.binary(BinaryFunction::Max, x[0], x[1]),
        Func::Relu => w.binary(BinaryFunction::Max, x[0], zero),
        Func::Clamp => {
            let above = w.binary(BinaryFunction::Max, x[0], x[1]);
            w.binary(BinaryFunction::Min, above, x[2])
        }
        _ => x[0],
    }
}
