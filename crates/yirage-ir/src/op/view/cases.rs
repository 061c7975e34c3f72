//! What views get wrong: every form, elements of every size, steps back, dimensions of 0 and 1.

use super::{Cut, View, ViewForm};
use crate::dim::{Dim, Sym};
use crate::op::case::{CaseValues, PLAIN};
use crate::op::{OpCase, Tolerance};

fn reshape(shape: &[u32]) -> ViewForm {
    ViewForm::Reshape(fixed(shape))
}
fn expand(shape: &[u32]) -> ViewForm {
    ViewForm::Expand(fixed(shape))
}
fn permute(axes: &[u32]) -> ViewForm {
    ViewForm::Permute(axes.to_vec())
}
fn slice(cuts: &[(u32, i32, u32)]) -> ViewForm {
    ViewForm::Slice(cuts.iter().map(|&(start, step, size)| Cut { start, step, size: Dim::Const(size) }).collect())
}
fn fixed(shape: &[u32]) -> Vec<Dim> {
    shape.iter().map(|&n| Dim::Const(n)).collect()
}

pub(super) fn all() -> Vec<OpCase> {
    let mut rng = CaseValues::new(33);
    let tokens = Dim::Sym(Sym::Tokens);
    let forms: Vec<(&[usize], ViewForm)> = vec![
        (&[3, 40], permute(&[1, 0])),
        (&[2, 3, 5], permute(&[2, 0, 1])),
        (&[2, 3, 5], permute(&[0, 1, 2])),
        (&[2, 1, 2, 3, 1, 2, 2, 5], permute(&[7, 2, 5, 0, 4, 3, 6, 1])),
        (&[0, 3], permute(&[1, 0])),
        (&[33, 65], permute(&[1, 0])),
        (&[2, 12], reshape(&[2, 3, 4])),
        (&[2, 3, 4], reshape(&[24])),
        (&[2, 3, 4], reshape(&[4, 6])),
        (&[1], reshape(&[])),
        (&[], reshape(&[1, 1, 1, 1, 1, 1, 1, 1])),
        (&[0, 3], reshape(&[7, 0])),
        (&[10], slice(&[(1, 2, 4)])),
        (&[10], slice(&[(9, -1, 10)])),
        (&[10], slice(&[(9, -3, 4)])),
        (&[4, 9], slice(&[(1, 1, 2), (8, -2, 5)])),
        (&[4, 9], slice(&[(2, 1, 1), (3, 1, 1)])),
        (&[4, 9], slice(&[(4, 1, 0), (0, 1, 9)])),
        (&[4, 9], slice(&[(2, 0, 3), (0, 1, 9)])),
        (&[2, 3, 4, 5], slice(&[(1, 1, 1), (2, -1, 3), (0, 3, 2), (1, 1, 3)])),
        (&[3, 1], expand(&[3, 7])),
        (&[1, 5], expand(&[4, 2, 5])),
        (&[], expand(&[3])),
        (&[1, 1], expand(&[2, 1, 2, 1, 2, 1, 2, 3])),
        (&[1, 4], expand(&[0, 4])),
        (&[5, 12], ViewForm::Reshape(vec![tokens, Dim::Const(3), Dim::Const(4)])),
        (&[5, 3, 4], ViewForm::Reshape(vec![tokens, Dim::Const(12)])),
        (&[5, 1], ViewForm::Expand(vec![tokens, Dim::Const(6)])),
        (&[5, 8], ViewForm::Slice(vec![Cut::whole(tokens), Cut { start: 6, step: -2, size: Dim::Const(3) }])),
        (&[0, 8], ViewForm::Reshape(vec![tokens, Dim::Const(2), Dim::Const(4)])),
    ];
    let mut cases = Vec::new();
    for (shape, form) in forms {
        for dtype in PLAIN {
            let x = rng.rounded(dtype, shape);
            let name = format!("{form} of {dtype} {shape:?}");
            cases.push(OpCase::new(name, View { form: form.clone() }, vec![x], Tolerance::Exact));
        }
    }
    cases
}
