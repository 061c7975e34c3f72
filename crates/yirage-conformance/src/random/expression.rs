//! Expressions over inputs of any types: each input is read, and functions join them until one value is left.

use super::choices::Choices;
use super::draft::{BF16, F16, PLAIN};
use yirage_ir::expr::{Func, is_float};
use yirage_ir::{DType, Expr};

/// A part, and the type it is computed in.
struct TypedExpr {
    expr: Expr,
    dtype: DType,
}

/// Of floats alone.
const UNARY: [Func; 15] = [
    Func::Neg,
    Func::Silu,
    Func::Exp,
    Func::Relu,
    Func::Abs,
    Func::Square,
    Func::Tanh,
    Func::Sigmoid,
    Func::GeluErf,
    Func::GeluTanh,
    Func::Sqrt,
    Func::Log,
    Func::Rsqrt,
    Func::Recip,
    Func::Neg,
];
const WHOLE_UNARY: [Func; 4] = [Func::Abs, Func::Square, Func::Relu, Func::Neg];
const BINARY: [Func; 7] = [Func::Add, Func::Mul, Func::Sub, Func::Max, Func::Min, Func::Div, Func::Pow];
const COMPARE: [Func; 4] = [Func::Less, Func::LessEqual, Func::Equal, Func::NotEqual];

/// An expression that reads an input of each of these types.
pub(super) fn draw(choices: &mut Choices<'_>, ins: &[DType]) -> Expr {
    let mut parts: Vec<TypedExpr> = Vec::new();
    for (i, &dtype) in ins.iter().enumerate() {
        parts.push(TypedExpr { expr: Expr::input(i as u32), dtype: if is_float(dtype) { DType::F32 } else { dtype } });
    }
    let mut more = choices.below(6);
    while parts.len() > 1 || more > 0 {
        more = more.saturating_sub(1);
        let at = choices.below(parts.len());
        let part = parts.swap_remove(at);
        let joined = if parts.is_empty() || choices.one_in(3) {
            alone(choices, part)
        } else {
            let at = choices.below(parts.len());
            let other = parts.swap_remove(at);
            together(choices, part, other)
        };
        parts.push(joined);
    }
    let last = parts.swap_remove(0);
    if choices.one_in(3) { last.expr.cast(choices.choose(&PLAIN)) } else { last.expr }
}

fn float(part: TypedExpr) -> Expr {
    if part.dtype == DType::F32 { part.expr } else { part.expr.cast(DType::F32) }
}

fn constant(choices: &mut Choices<'_>, dtype: DType) -> Expr {
    match dtype {
        DType::I32 => Expr::constant(choices.choose(&[2, 1, -3, 0, i32::MAX])),
        DType::U32 => Expr::constant(choices.choose(&[2u32, 1, 0, u32::MAX])),
        DType::Bool => Expr::constant(true),
        _ => Expr::constant(choices.choose(&[0.5, 2.0, -1.25, 30.0, 0.0, 1.0, f32::INFINITY])),
    }
}

fn alone(choices: &mut Choices<'_>, part: TypedExpr) -> TypedExpr {
    match (choices.below(5), part.dtype) {
        (0 | 1, DType::F32) => TypedExpr { expr: Expr::call(choices.choose(&UNARY), &[part.expr]), dtype: DType::F32 },
        (0 | 1, dtype @ (DType::I32 | DType::U32)) => {
            let funcs = if dtype == DType::U32 { &WHOLE_UNARY[..3] } else { &WHOLE_UNARY[..] };
            TypedExpr { expr: Expr::call(choices.choose(funcs), &[part.expr]), dtype }
        }
        (2, dtype) if dtype != DType::Bool => {
            let bounds = [constant(choices, dtype), constant(choices, dtype)];
            let [low, high] = bounds;
            TypedExpr { expr: Expr::call(Func::Clamp, &[part.expr, low, high]), dtype }
        }
        (3, _) => {
            let to = choices.choose(&[F16, BF16, DType::F32, DType::I32, DType::U32, DType::Bool]);
            TypedExpr { expr: part.expr.cast(to), dtype: if is_float(to) { DType::F32 } else { to } }
        }
        (_, dtype) => {
            let other = constant(choices, dtype);
            together(choices, part, TypedExpr { expr: other, dtype })
        }
    }
}

fn together(choices: &mut Choices<'_>, a: TypedExpr, b: TypedExpr) -> TypedExpr {
    if a.dtype == DType::Bool && choices.one_in(2) {
        let (dtype, other) = (b.dtype, constant(choices, b.dtype));
        return TypedExpr { expr: Expr::call(Func::Select, &[a.expr, b.expr, other]), dtype };
    }
    let (a, b, dtype) = if a.dtype == b.dtype && a.dtype != DType::Bool {
        (a.expr, b.expr, a.dtype)
    } else {
        (float(a), float(b), DType::F32)
    };
    if choices.one_in(6) {
        return TypedExpr { expr: Expr::call(choices.choose(&COMPARE), &[a, b]), dtype: DType::Bool };
    }
    let funcs = if dtype == DType::F32 { &BINARY[..] } else { &BINARY[..5] };
    TypedExpr { expr: Expr::call(choices.choose(funcs), &[a, b]), dtype }
}
