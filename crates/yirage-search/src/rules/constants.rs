//! Constants: what can be computed now, and functions of constants that do nothing.

use super::shapes::is;
use crate::rule::Rule;
use yirage_compile::terms::{MapArg, MapFunc, Terms, Val};
use yirage_ir::Op;
use yirage_ir::attr::List;
use yirage_ir::expr::{Func, Scalar};
use yirage_ir::op::{Fill, Reduce, ReduceKind};

pub(super) const FOLD: Rule = Rule::local(
    "fold constants",
    "x * 1, x / 1, x + 0 and x - 0 are x; two constants become one where no rounding tells; \
     a constant everywhere is the constant",
    fold,
    &[
        "graph g { input %x: f32[M, K] input %z: f32[M, K] %p = map{expr=\"mul(add(x0, 0.0), 1.0)\"}(%x): f32[M, K]
           %y = map{expr=\"mul(x0, x1)\"}(%p, %z): f32[M, K] output %y }",
        "graph g { input %x: f32[M, K] %y = map{expr=\"mul(mul(x0, 0.5), 3.0)\"}(%x): f32[M, K] output %y }",
        "graph g { input %x: f32[M, K] %c = fill{value=2.0, shape=\"[M, K]\"}(): f32[M, K]
           %y = map{expr=\"add(x0, x1)\"}(%x, %c): f32[M, K] output %y }",
        "graph g { input %x: f32[M, K] %c = fill{value=2.0, shape=\"[8, M]\"}(): f32[8, M]
           %s = reduce{kind=\"sum\", axes=\"[0]\", keep=false}(%c): f32[M]
           %d = view{form=\"reshape(M, 1)\"}(%s): f32[M, 1]
           %y = map{expr=\"div(x0, x1)\"}(%x, %d): f32[M, K] output %y }",
    ],
);

fn fold(t: &mut Terms, v: Val) -> Vec<Option<Val>> {
    vec![neutral(t, v), two(t, v), filled(t, v), of_fill(t, v), reduced(t, v)]
}

/// A function with a constant that changes nothing.
fn neutral(t: &mut Terms, v: Val) -> Option<Val> {
    let call = t.call(v)?;
    let MapFunc::Func(func) = call.step else { return None };
    let neutral = match func {
        Func::Mul | Func::Div => 1.0,
        Func::Add | Func::Sub => 0.0,
        _ => return None,
    };
    let (x, c) = (call.args[0].val()?, call.args[1].float()?);
    (c == neutral).then_some(x)
}

/// `(x op c) op d` with one constant, where that is exact.
fn two(t: &mut Terms, v: Val) -> Option<Val> {
    let (func, x, c, d) = [Func::Mul, Func::Add].into_iter().find_map(|func| {
        let outer = t.func(v, func)?;
        let inner = t.func(outer[0].val()?, func)?;
        Some((func, inner[0].val()?, inner[1].float()?, outer[1].float()?))
    })?;
    let (c, d) = (f64::from(c), f64::from(d));
    let exact = if func == Func::Mul { c * d } else { c + d };
    // Both are exact in f64 for a product; a sum that f64 rounds is no f32 either.
    let whole = f64::from(exact as f32) == exact && exact.is_finite();
    let lossless = func == Func::Mul || exact - c == d;
    if whole && lossless { t.map2(func, x, exact as f32) } else { None }
}

fn fill(t: &Terms, v: Val) -> Option<(Scalar, Vec<u32>)> {
    match t.producing_op(v)? {
        (Op::Fill(fill), _) => Some((fill.value, fill.shape.0.clone())),
        _ => None,
    }
}

/// A function of a value and of one that is the same everywhere, where the shape stays.
fn filled(t: &mut Terms, v: Val) -> Option<Val> {
    let call = t.call(v)?;
    let constant = |a: &MapArg| a.val().and_then(|x| fill(t, x)).map_or(*a, |(c, _)| MapArg::Const(c));
    let args: Vec<MapArg> = call.args.iter().map(constant).collect();
    if args == call.args {
        return None;
    }
    match t.step(call.step, &args)? {
        MapArg::Val(y) => Some(y).filter(|&y| is(t, y, t.shape(v))),
        MapArg::Const(value) => full(t, value, v),
    }
}

/// The constant in the shape of a value.
fn full(t: &mut Terms, value: Scalar, like: Val) -> Option<Val> {
    let shape = t.shape(like).iter().map(|d| d.as_const().and_then(|n| u32::try_from(n).ok()));
    let shape = shape.collect::<Option<Vec<u32>>>()?;
    t.op(Fill { value, shape: List(shape) }, &[])
}

/// A view of one value everywhere.
fn of_fill(t: &mut Terms, v: Val) -> Option<Val> {
    let (_, x) = t.view(v)?;
    let (value, _) = fill(t, x)?;
    full(t, value, v)
}

/// A reduction of one value everywhere.
fn reduced(t: &mut Terms, v: Val) -> Option<Val> {
    let Some((Op::Reduce(Reduce { kind, axes, .. }), &[x])) = t.producing_op(v) else { return None };
    let (kind, axes) = (*kind, axes.0.clone());
    let (Scalar::F32(value), shape) = fill(t, x)? else { return None };
    let count = axes.iter().try_fold(1u32, |n, &axis| n.checked_mul(*shape.get(axis as usize)?))?;
    let value = match kind {
        ReduceKind::Sum => f64::from(value.0) * f64::from(count),
        ReduceKind::Mean | ReduceKind::Max | ReduceKind::Min if count > 0 => f64::from(value.0),
        _ => return None,
    };
    if f64::from(value as f32) != value {
        return None;
    }
    full(t, (value as f32).into(), v)
}

pub(super) const DIVISION: Rule = Rule::local(
    "divide by constant",
    "x / c = x * (1 / c) where 1 / c is exact; x / s = x * (1 / s) where s is smaller than x, both ways",
    division,
    &[
        "graph g { input %x: f32[M, K] %y = map{expr=\"div(x0, 8.0)\"}(%x): f32[M, K] output %y }",
        "graph g { input %x: f32[M, K] input %s: f32[M, 1]
           %y = map{expr=\"div(x0, add(square(x1), 1.0))\"}(%x, %s): f32[M, K] output %y }",
        "graph g { input %x: f32[M, K] input %s: f32[M, 1]
           %y = map{expr=\"mul(x0, recip(add(square(x1), 1.0)))\"}(%x, %s): f32[M, K] output %y }",
    ],
);

fn division(t: &mut Terms, v: Val) -> Vec<Option<Val>> {
    vec![by_constant(t, v), by_value(t, v), to_division(t, v)]
}

fn by_constant(t: &mut Terms, v: Val) -> Option<Val> {
    let args = t.func(v, Func::Div)?;
    let (x, c) = (args[0].val()?, args[1].float()?);
    let inverse = c.recip();
    // Powers of two alone have an exact inverse.
    let exact = inverse.is_normal() && f64::from(c) * f64::from(inverse) == 1.0 && inverse.to_bits() << 9 == 0;
    if exact { t.map2(Func::Mul, x, inverse) } else { None }
}

fn by_value(t: &mut Terms, v: Val) -> Option<Val> {
    let args = t.func(v, Func::Div)?;
    let (x, s) = (args[0].val()?, args[1].val()?);
    if is(t, s, t.shape(v)) {
        return None;
    }
    let inverse = t.map(Func::Recip, &[s.into()])?;
    t.map2(Func::Mul, x, inverse)
}

fn to_division(t: &mut Terms, v: Val) -> Option<Val> {
    let args = t.func(v, Func::Mul)?;
    let (x, s) = (args[0].val()?, args[1].val()?);
    let (x, s) = match (t.unary(s, Func::Recip), t.unary(x, Func::Recip)) {
        (Some(s), _) => (x, s),
        (None, Some(x)) => (s, x),
        (None, None) => return None,
    };
    t.map2(Func::Div, x, s)
}
