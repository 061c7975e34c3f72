//! Functions written by others: SiLU and sigmoid by exponentials, roots, squares.

use crate::rule::Rule;
use yirage_compile::terms::{MapArg, Terms, Val};
use yirage_ir::expr::Func;

pub(super) const FORMS: Rule = Rule::local(
    "function forms",
    "x sigmoid(x) = silu(x) = x / (1 + exp(-x)); 1 / (1 + exp(-x)) = sigmoid(x); a / sqrt(b) = a rsqrt(b); \
     1 / sqrt(x) = rsqrt(x); x x = x^2; -(-x) = x; x + (-y) = x - y; exp(x) exp(y) = exp(x + y); |x|^2 = x^2",
    forms,
    &[
        "graph g { input %x: f32[M, K] %y = map{expr=\"mul(x0, sigmoid(x0))\"}(%x): f32[M, K] output %y }",
        "graph g { input %x: f32[M, K] %y = map{expr=\"div(x0, add(exp(neg(x0)), 1.0))\"}(%x): f32[M, K] output %y }",
        "graph g { input %x: f32[M, K] %y = map{expr=\"recip(add(exp(neg(x0)), 1.0))\"}(%x): f32[M, K] output %y }",
        "graph g { input %x: f32[M, K] %y = map{expr=\"div(1.0, add(exp(neg(x0)), 1.0))\"}(%x): f32[M, K] output %y }",
        "graph g { input %x: f32[M, K] input %z: f32[M, K]
           %y = map{expr=\"div(x0, sqrt(add(square(x1), 0.5)))\"}(%x, %z): f32[M, K] output %y }",
        "graph g { input %x: f32[M, K] %y = map{expr=\"recip(sqrt(add(mul(x0, x0), 0.5)))\"}(%x): f32[M, K] output %y }",
        "graph g { input %x: f32[M, K] input %z: f32[M, K]
           %y = map{expr=\"add(neg(neg(x0)), neg(x1))\"}(%x, %z): f32[M, K] output %y }",
        "graph g { input %x: f32[M, K] input %z: f32[M, K]
           %y = map{expr=\"mul(exp(x0), exp(x1))\"}(%x, %z): f32[M, K] output %y }",
        "graph g { input %x: f32[M, K] %y = map{expr=\"square(abs(x0))\"}(%x): f32[M, K] output %y }",
    ],
);

fn forms(t: &mut Terms, v: Val) -> Vec<Option<Val>> {
    let all = [silu, silu_by_exp, sigmoid, rsqrt, inverse_root, square, double_minus, difference, exponents, magnitude];
    all.into_iter().map(|form| form(t, v)).collect()
}

fn silu(t: &mut Terms, v: Val) -> Option<Val> {
    let args = t.func(v, Func::Mul)?;
    let (a, b) = (args[0].val()?, args[1].val()?);
    let x = if t.unary(b, Func::Sigmoid) == Some(a) { a } else { b };
    let s = if x == a { b } else { a };
    (t.unary(s, Func::Sigmoid)? == x).then_some(())?;
    t.map(Func::Silu, &[x.into()])
}

/// x, where a value is `1 + exp(-x)`.
fn one_and_exp(t: &Terms, v: Val) -> Option<Val> {
    let args = t.func(v, Func::Add)?;
    let exp = args[0].val().filter(|_| args[1].float() == Some(1.0))?;
    t.unary(t.unary(exp, Func::Exp)?, Func::Neg)
}

fn silu_by_exp(t: &mut Terms, v: Val) -> Option<Val> {
    let args = t.func(v, Func::Div)?;
    let x = args[0].val()?;
    (one_and_exp(t, args[1].val()?)? == x).then_some(())?;
    t.map(Func::Silu, &[x.into()])
}

fn sigmoid(t: &mut Terms, v: Val) -> Option<Val> {
    let divisor = t.unary(v, Func::Recip).or_else(|| {
        let args = t.func(v, Func::Div)?;
        args[1].val().filter(|_| args[0].float() == Some(1.0))
    })?;
    let x = one_and_exp(t, divisor)?;
    t.map(Func::Sigmoid, &[x.into()])
}

fn rsqrt(t: &mut Terms, v: Val) -> Option<Val> {
    let args = t.func(v, Func::Div)?;
    let x = t.unary(args[1].val()?, Func::Sqrt)?;
    let root = t.map(Func::Rsqrt, &[x.into()])?;
    if args[0].float() == Some(1.0) { Some(root) } else { t.map2(Func::Mul, args[0], root) }
}

fn inverse_root(t: &mut Terms, v: Val) -> Option<Val> {
    let x = t.unary(t.unary(v, Func::Recip)?, Func::Sqrt)?;
    t.map(Func::Rsqrt, &[x.into()])
}

fn square(t: &mut Terms, v: Val) -> Option<Val> {
    if let Some(args) = t.func(v, Func::Pow) {
        return if args[1].float() == Some(2.0) { t.map(Func::Square, &args[..1]) } else { None };
    }
    let args = t.func(v, Func::Mul)?;
    if args[0] == args[1] { t.map(Func::Square, &args[..1]) } else { None }
}

fn double_minus(t: &mut Terms, v: Val) -> Option<Val> {
    t.unary(t.unary(v, Func::Neg)?, Func::Neg)
}

fn difference(t: &mut Terms, v: Val) -> Option<Val> {
    let args = t.func(v, Func::Add)?;
    let (a, b) = (args[0].val()?, args[1].val()?);
    let (x, y) = match (t.unary(b, Func::Neg), t.unary(a, Func::Neg)) {
        (Some(y), _) => (a, y),
        (None, Some(y)) => (b, y),
        (None, None) => return None,
    };
    t.map2(Func::Sub, x, y)
}

fn exponents(t: &mut Terms, v: Val) -> Option<Val> {
    let args = t.func(v, Func::Mul)?;
    let (x, y) = (t.unary(args[0].val()?, Func::Exp)?, t.unary(args[1].val()?, Func::Exp)?);
    let sum = t.map(Func::Add, &[MapArg::Val(x), MapArg::Val(y)])?;
    t.map(Func::Exp, &[sum.into()])
}

fn magnitude(t: &mut Terms, v: Val) -> Option<Val> {
    let x = t.unary(t.unary(v, Func::Square)?, Func::Abs)?;
    t.map(Func::Square, &[x.into()])
}
