//! Reductions, and softmax, which is two of them.

use super::{OnnxNode, axes, axis};
use yirage_ir::attr::List;
use yirage_ir::expr::{Func, is_float};
use yirage_ir::op::{Reduce, ReduceKind};
use yirage_ir::{DType, Expr, ValueId};

pub(super) fn import(node: &mut OnnxNode<'_>) -> Option<Result<Vec<ValueId>, String>> {
    let x = || Expr::input(0);
    let square = || Expr::unary(Func::Square);
    let made = match node.case.op.as_str() {
        "ReduceSum" => reduce(node, &x(), ReduceKind::Sum, &x()),
        "ReduceMean" => reduce(node, &x(), ReduceKind::Mean, &x()),
        "ReduceMax" => reduce(node, &x(), ReduceKind::Max, &x()),
        "ReduceMin" => reduce(node, &x(), ReduceKind::Min, &x()),
        "ReduceProd" => reduce(node, &x(), ReduceKind::Prod, &x()),
        "ReduceSumSquare" => reduce(node, &square(), ReduceKind::Sum, &x()),
        "ReduceL2" => reduce(node, &square(), ReduceKind::Sum, &Expr::unary(Func::Sqrt)),
        "Softmax" => softmax(node),
        _ => return None,
    };
    Some(made.map(|y| vec![y]))
}

/// `after` of the reduction of `before`. Floats of 16 bits are computed with as f32 and rounded at the end; truth values
/// as whole numbers.
fn reduce(node: &mut OnnxNode<'_>, before: &Expr, kind: ReduceKind, after: &Expr) -> Result<ValueId, String> {
    let x = node.input(0)?;
    let (dtype, rank) = (node.dtype(x), node.shape(x).len());
    let given = node.case.whole("axes", 1).filter(|list| !list.is_empty());
    let reduced = match &given {
        Some(list) => axes(list, rank)?,
        None if node.case.attr("noop_with_empty_axes", 0) == 1 => Vec::new(),
        None => (0..rank).collect(),
    };
    let wide = match dtype {
        dtype if is_float(dtype) => DType::F32,
        DType::Bool => DType::U32,
        other => other,
    };
    let mut y = x;
    if *before != Expr::input(0) || wide != dtype {
        y = node.map(before, wide, &[y])?;
    }
    if !reduced.is_empty() {
        y = over(node, kind, &reduced, node.case.attr("keepdims", 1) != 0, y)?;
    }
    if *after != Expr::input(0) || wide != dtype || y == x {
        y = node.map(after, dtype, &[y])?;
    }
    Ok(y)
}

fn over(node: &mut OnnxNode<'_>, kind: ReduceKind, axes: &[usize], keep: bool, x: ValueId) -> Result<ValueId, String> {
    let axes = List(axes.iter().map(|&a| a as u32).collect());
    node.op(Reduce { kind, axes, keep }, &[x])
}

/// Before version 13 all dimensions from the axis on were one.
fn softmax(node: &mut OnnxNode<'_>) -> Result<ValueId, String> {
    let x = node.input(0)?;
    let (dtype, rank) = (node.dtype(x), node.shape(x).len());
    let first = axis(node.case.attr("axis", if node.case.opset < 13 { 1 } else { -1 }), rank)?;
    let reduced: Vec<usize> = if node.case.opset < 13 { (first..rank).collect() } else { vec![first] };
    let wide = if dtype == DType::F32 { x } else { node.map(&Expr::input(0), DType::F32, &[x])? };
    let max = over(node, ReduceKind::Max, &reduced, true, wide)?;
    let exp = Expr::call(Func::Exp, &[Expr::binary(Func::Sub)]);
    let exps = node.map(&exp, DType::F32, &[wide, max])?;
    let sum = over(node, ReduceKind::Sum, &reduced, true, exps)?;
    node.map(&Expr::binary(Func::Div), dtype, &[exps, sum])
}
