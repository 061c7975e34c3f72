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

/// How much of a state stays after a time step `x0`, by the rates `x1`: safetensors hold the logarithms of what GGUF files
/// hold negated.
pub(super) fn decay(e: &ModelBuilder<'_>) -> Result<Map, ModelError> {
    expression(if e.is_gguf() { "exp(mul(x1, x0))" } else { "exp(mul(neg(exp(x1)), x0))" })
}

/// Rows of these dimensions.
fn shape(dims: &[u32]) -> View {
    let fixed = dims.iter().map(|&n| Dim::Const(n));
    View { form: ViewForm::Reshape([Dim::Sym(Sym::Tokens)].into_iter().chain(fixed).collect()) }
}

/// An expression of each element of rows of `groups` times `width`, `x0`, and of the mean square of its group, `x1`.
pub(super) fn by_group(
    e: &mut ModelBuilder<'_>,
    name: &str,
    x: ValueId,
    [groups, width]: [u32; 2],
    text: &str,
) -> Result<ValueId, ModelError> {
    let whole = e.product(groups, width, "elements of all groups")?;
    let parts = e.op(&format!("{name}.parts"), shape(&[groups, width]), &[x])?;
    let mean = e.op(&format!("{name}.mean"), Reduce::new(ReduceKind::MeanSquare, &[2], true), &[parts])?;
    let made = e.op(&format!("{name}.each"), expression(text)?, &[parts, mean])?;
    e.op(name, shape(&[whole]), &[made])
}

/// Value heads that a file holds in another order than theirs: the first of each key head, then the second of each, and so
/// on. (llama.cpp repeats key heads that way.)
#[derive(Clone, Copy)]
pub(super) struct TiledHeads {
    pub(super) key_heads: u32,
    /// Value heads of a key head.
    pub(super) each: u32,
}

impl TiledHeads {
    /// Shape and strides of rows in the heads' own order, of which each head has `width` and each row `row` elements.
    pub(super) fn view(&self, width: u32, row: u32) -> ([u32; 3], [u32; 3]) {
        let head = width * row;
        ([self.key_heads, self.each, width], [head, self.key_heads * head, row])
    }

    /// Heads of `width` elements in the file's order.
    pub(super) fn restore(
        &self,
        e: &mut ModelBuilder<'_>,
        name: &str,
        x: ValueId,
        width: u32,
    ) -> Result<ValueId, ModelError> {
        let heads = e.op(&format!("{name}.heads"), shape(&[self.key_heads, self.each, width]), &[x])?;
        let order = View { form: ViewForm::Permute(vec![0, 2, 1, 3]) };
        let tiles = e.op(&format!("{name}.order"), order, &[heads])?;
        e.op(name, shape(&[self.key_heads * self.each * width]), &[tiles])
    }
}
