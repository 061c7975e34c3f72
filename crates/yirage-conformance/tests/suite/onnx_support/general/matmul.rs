//! Products of matrices.

use super::OnnxNode;
use yirage_ir::expr::{Func, Scalar};
use yirage_ir::op::{Contract, ViewForm};
use yirage_ir::{Expr, ValueId};

pub(super) fn import(node: &mut OnnxNode<'_>) -> Option<Result<Vec<ValueId>, String>> {
    let made = match node.case.op.as_str() {
        "MatMul" => matmul(node),
        "Gemm" => gemm(node),
        _ => return None,
    };
    Some(made.map(|y| vec![y]))
}

/// A vector is a matrix of one row or column, which goes away again.
fn matmul(node: &mut OnnxNode<'_>) -> Result<ValueId, String> {
    let (mut a, mut b) = (node.input(0)?, node.input(1)?);
    let (left, right) = (node.shape(a), node.shape(b));
    if left.len() == 1 {
        a = node.reshape(a, &[1, left[0]])?;
    }
    if right.len() == 1 {
        b = node.reshape(b, &[right[0], 1])?;
    }
    let y = node.op(Contract {}, &[a, b])?;
    let mut shape = node.shape(y);
    if right.len() == 1 {
        shape.pop();
    }
    if left.len() == 1 {
        let row = shape.len() - usize::from(right.len() != 1) - 1;
        shape.remove(row);
    }
    if left.len() > 1 && right.len() > 1 { Ok(y) } else { node.reshape(y, &shape) }
}

/// `alpha a b + beta c`.
fn gemm(node: &mut OnnxNode<'_>) -> Result<ValueId, String> {
    let (mut a, mut b) = (node.input(0)?, node.input(1)?);
    let dtype = node.wanted();
    if node.case.attr("transA", 0) != 0 {
        a = node.view(ViewForm::Permute(vec![1, 0]), a)?;
    }
    if node.case.attr("transB", 0) != 0 {
        b = node.view(ViewForm::Permute(vec![1, 0]), b)?;
    }
    let y = node.op(Contract {}, &[a, b])?;
    let scaled = |x: Expr, by: f32| {
        let by = Expr::constant(Scalar::from(by));
        if by == Expr::constant(1.0) { x } else { Expr::call(Func::Mul, &[x, by]) }
    };
    let mut out = scaled(Expr::input(0), node.case.attr("alpha", 1.0));
    let mut ins = vec![y];
    if node.array(2).is_some() {
        ins.push(node.input(2)?);
        out = Expr::call(Func::Add, &[out, scaled(Expr::input(1), node.case.attr("beta", 1.0))]);
    }
    if out == Expr::input(0) { Ok(y) } else { node.map(&out, dtype, &ins) }
}
