//! What recurrent layers of several families compute beside their ops of states: expressions that no named op has.

use super::emit::ModelBuilder;
use crate::error::ModelError;
use yirage_ir::expr::Expr;
use yirage_ir::op::{Map, Reduce, ReduceKind, View, ViewForm};
use yirage_ir::{Dim, Sym, ValueId};

/// `log(1 + e^x)`, exact where it is small: `x1` is `e^-|x0|`, whose logarithm's series is that of the inverse hyperbolic
/// tangent of at most a third.
const SOFTPLUS: &str = "t0 = div(x1, add(x1, 2.0)); t1 = mul(t0, t0); add(max(x0, 0.0), mul(mul(2.0, t0), add(1.0, \
    mul(t1, add(0.33333334, mul(t1, add(0.2, mul(t1, add(0.14285715, mul(t1, add(0.11111111, mul(t1, add(0.09090909, \
    mul(t1, 0.07692308))))))))))))))";

/// An expression in text form.
pub(super) fn expression(text: &str) -> Result<Map, ModelError> {
    let wrong = |e| ModelError::Unsupported { what: format!("the expression {text}"), why: format!("{e}") };
    Ok(Map { expr: text.parse::<Expr>().map_err(wrong)? })
}

/// `log(1 + e^x)`.
pub(super) fn softplus(e: &mut ModelBuilder<'_>, name: &str, x: ValueId) -> Result<ValueId, ModelError> {
    let small = e.op(&format!("{name}.small"), expression("exp(neg(abs(x0)))")?, &[x])?;
    e.op(name, expression(SOFTPLUS)?, &[x, small])
}

/// An expression of each element of rows of `groups` times `width`, `x0`, and of the mean square of its group, `x1`.
pub(super) fn by_group(
    e: &mut ModelBuilder<'_>,
    name: &str,
    x: ValueId,
    [groups, width]: [u32; 2],
    text: &str,
) -> Result<ValueId, ModelError> {
    let shape = |dims: &[u32]| {
        let fixed = dims.iter().map(|&n| Dim::Const(n));
        View { form: ViewForm::Reshape([Dim::Sym(Sym::Tokens)].into_iter().chain(fixed).collect()) }
    };
    let whole = e.product(groups, width, "elements of all groups")?;
    let parts = e.op(&format!("{name}.parts"), shape(&[groups, width]), &[x])?;
    let mean = e.op(&format!("{name}.mean"), Reduce::new(ReduceKind::MeanSquare, &[2], true), &[parts])?;
    let made = e.op(&format!("{name}.each"), expression(text)?, &[parts, mean])?;
    e.op(name, shape(&[whole]), &[made])
}
