//! Which part of its inputs an op needs for a part of its output.

use crate::terms::{Terms, Val};
use yirage_ir::attr::List;
use yirage_ir::op::{Cut, Fill, View, ViewForm};
use yirage_ir::{Dim, Op};

/// For a part of a value's dimension `dim`, the dimension of which each input's part is wanted; nothing of an input that
/// is wanted whole. Nothing at all where no parts make a part.
pub(super) fn wanted(terms: &Terms, v: Val, dim: u32) -> Option<Vec<Option<u32>>> {
    let (op, args) = terms.producing_op(v)?;
    let (rank, dim) = (terms.rank(v), dim as usize);
    let from_last = rank.checked_sub(dim + 1)?;
    // Aligned at the innermost dimension; an input that is repeated along it is wanted whole.
    let aligned = |x: Val| {
        let at = terms.rank(x).checked_sub(from_last + 1)?;
        (terms.shape(x)[at] != Dim::Const(1)).then_some(at as u32)
    };
    Some(match op {
        Op::Map(_) => args.iter().map(|&x| aligned(x)).collect(),
        Op::Contract(_) => match from_last {
            0 => vec![None, Some(terms.rank(args[1]) as u32 - 1)],
            1 => vec![Some(terms.rank(args[0]) as u32 - 2), None],
            _ => args.iter().map(|&x| aligned(x)).collect(),
        },
        Op::Reduce(reduce) if reduce.keep => vec![Some(dim as u32).filter(|d| !reduce.axes.0.contains(d))],
        Op::Reduce(reduce) => {
            let kept = (0..terms.rank(args[0]) as u32).filter(|axis| !reduce.axes.0.contains(axis));
            vec![Some(kept.into_iter().nth(dim)?)]
        }
        Op::Concat(concat) if concat.axis as usize != dim => vec![Some(dim as u32); args.len()],
        Op::Fill(_) => Vec::new(),
        Op::View(view) => vec![match &view.form {
            ViewForm::Permute(axes) => Some(axes[dim]),
            ViewForm::Expand(_) => aligned(args[0]),
            ViewForm::Slice(cuts) if cuts[dim] == Cut::whole(terms.shape(args[0])[dim]) => Some(dim as u32),
            ViewForm::Reshape(shape) => Some(same_run(shape, terms.shape(args[0]), dim)? as u32),
            ViewForm::Slice(_) => return None,
        }],
        _ => return None,
    })
}

/// The dimension of which a part is the same run of elements as a part of dimension `dim` of another shape of these
/// elements: both lie behind the same outer elements, and one of them is the outermost of those that the other is made of.
/// Parts that do not divide it are none.
fn same_run(from: &[Dim], to: &[Dim], dim: usize) -> Option<usize> {
    let count = |dims: &[Dim]| dims.iter().try_fold(1usize, |n, d| n.checked_mul(d.as_const()?));
    if from.get(..=dim)? == to.get(..=dim)? {
        return Some(dim);
    }
    let outer = count(&from[..dim])?;
    (0..to.len()).find(|&at| to[at] != Dim::Const(1) && count(&to[..at]) == Some(outer))
}

/// The dimension that shows a part of dimension `dim` in a view; none where parts are not seen as parts.
pub fn of_view(form: &ViewForm, shape: &[Dim], dim: u32) -> Option<u32> {
    match form {
        ViewForm::Permute(axes) => axes.iter().position(|&axis| axis == dim).map(|at| at as u32),
        ViewForm::Reshape(to) => same_run(shape, to, dim as usize).map(|at| at as u32),
        ViewForm::Expand(_) | ViewForm::Slice(_) => None,
    }
}

/// The op as it makes a part of this shape.
pub(super) fn of_part(op: &Op, whole: &[Dim], part: &[Dim]) -> Option<Op> {
    Some(match op {
        Op::Fill(fill) => {
            let shape = part.iter().map(|d| d.as_const().and_then(|n| u32::try_from(n).ok()));
            Op::Fill(Fill { value: fill.value, shape: List(shape.collect::<Option<Vec<u32>>>()?) })
        }
        Op::Iota(_) if whole != part => return None,
        Op::View(View { form: ViewForm::Reshape(_) }) => Op::View(View { form: ViewForm::Reshape(part.to_vec()) }),
        Op::View(View { form: ViewForm::Expand(_) }) => Op::View(View { form: ViewForm::Expand(part.to_vec()) }),
        Op::View(View { form: ViewForm::Slice(cuts) }) => {
            let cut = |(cut, (whole, part)): (&Cut, (&Dim, &Dim))| if whole == part { *cut } else { Cut::whole(*part) };
            Op::View(View { form: ViewForm::Slice(cuts.iter().zip(whole.iter().zip(part)).map(cut).collect()) })
        }
        other => other.clone(),
    })
}
