//! What rules ask of shapes. Dimensions are counted from the innermost one, as broadcasting aligns them.

use yirage_compile::terms::{MapArg, Terms, Val};
use yirage_ir::op::ViewForm;
use yirage_ir::{Dim, expr::Func};

/// Whether every element along a dimension is the same, because there is one alone.
pub(super) fn constant_along(terms: &Terms, arg: MapArg, from_last: usize) -> bool {
    let MapArg::Val(v) = arg else { return true };
    let shape = terms.shape(v);
    shape.len() <= from_last || shape[shape.len() - 1 - from_last] == Dim::Const(1)
}

/// Whether a value has this shape.
pub(super) fn is(terms: &Terms, v: Val, shape: &[Dim]) -> bool {
    terms.shape(v) == shape
}

/// The two ways in which one argument of a function is the values and the other scales them.
pub(super) fn scaled(terms: &Terms, v: Val) -> Vec<(Func, Val, MapArg)> {
    let mut ways = Vec::new();
    if let Some(args) = terms.func(v, Func::Mul) {
        ways.extend(args[0].val().map(|p| (Func::Mul, p, args[1])));
        ways.extend(args[1].val().map(|p| (Func::Mul, p, args[0])));
    }
    if let Some(args) = terms.func(v, Func::Div) {
        ways.extend(args[0].val().map(|p| (Func::Div, p, args[1])));
    }
    ways.retain(|(_, p, _)| terms.shape(*p) == terms.shape(v));
    ways
}

/// The two sides of a sum or difference, both of its shape.
pub(super) fn sum(terms: &Terms, v: Val) -> Option<(Func, Val, Val)> {
    [Func::Add, Func::Sub].into_iter().find_map(|func| {
        let args = terms.func(v, func)?;
        let (p, q) = (args[0].val()?, args[1].val()?);
        let whole = is(terms, p, terms.shape(v)) && is(terms, q, terms.shape(v));
        whole.then_some((func, p, q))
    })
}

/// The axes with the last two exchanged; nothing for less than two.
pub(super) fn exchanged(rank: usize) -> Option<ViewForm> {
    let mut axes: Vec<u32> = (0..rank as u32).collect();
    (rank >= 2).then(|| {
        axes.swap(rank - 1, rank - 2);
        ViewForm::Permute(axes)
    })
}

/// A fixed size, from the innermost dimension on.
pub(super) fn size(terms: &Terms, v: Val, from_last: usize) -> Option<u32> {
    let shape = terms.shape(v);
    let at = shape.len().checked_sub(from_last + 1)?;
    if let Dim::Const(n) = shape[at] { Some(n) } else { None }
}
