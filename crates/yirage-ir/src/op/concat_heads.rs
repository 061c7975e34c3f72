//! `concat_heads`: two activations side by side, head by head.

use super::case::CaseValues;
use super::lower::Lowering;
use super::{NoGeneralForm, OpCase, OpDef, Tolerance, arity, f32_rows, plus};
use crate::dim::Dim;
use crate::graph::Graph;
use crate::op_struct;
use crate::tensor::Tensor;
use crate::types::{Type, TypeError};

op_struct! {
    /// `(a f32[rows, groups*m], b f32[rows, groups*n]) -> f32[rows, groups*(m+n)]`: each group of `a` followed by the
    /// same group of `b`.
    ConcatHeads {
        /// Number of groups.
        groups: u32,
    }
}

impl OpDef for ConcatHeads {
    const NAME: &'static str = "concat_heads";
    const ROW_WISE: bool = true;

    fn activations(&self) -> &'static [usize] {
        &[0, 1]
    }

    fn infer(&self, ins: &[Type]) -> Result<Vec<Type>, TypeError> {
        arity(ins, 2..=2)?;
        let (a, b) = (f32_rows(&ins[0], "a")?, f32_rows(&ins[1], "b")?);
        if self.groups == 0 || !a.is_multiple_of(self.groups) || !b.is_multiple_of(self.groups) {
            return Err(TypeError::new(format!("widths {a} and {b} do not divide into {} groups", self.groups)));
        }
        if ins[0].shape[0] != ins[1].shape[0] {
            return Err(TypeError::new(format!("a is {} and b is {}: their rows differ", ins[0], ins[1])));
        }
        Ok(vec![Type::rows(ins[0].shape[0], plus(a, b, "both")?)])
    }

    fn eval(&self, ins: &[&Tensor]) -> Vec<Tensor> {
        let groups = self.groups as usize;
        let (m, n) = (ins[0].width() / groups, ins[1].width() / groups);
        let mut out = Vec::new();
        for r in 0..ins[0].rows() {
            let (a, b) = (ins[0].row(r), ins[1].row(r));
            for g in 0..groups {
                out.extend_from_slice(&a[g * m..][..m]);
                out.extend_from_slice(&b[g * n..][..n]);
            }
        }
        vec![Tensor::f32([ins[0].rows(), groups * (m + n)], out)]
    }

    fn lower(&self, ins: &[Type]) -> Result<Graph, NoGeneralForm> {
        let (mut l, x) = Lowering::new(Self::NAME, ins)?;
        let rows = l.shape(x[0])[0];
        let width = |i: usize| ins[i].width().unwrap_or(0) as u32;
        let heads = |i: usize| [rows, Dim::Const(self.groups), Dim::Const(width(i) / self.groups)];
        let (a, b) = (l.reshape(x[0], &heads(0))?, l.reshape(x[1], &heads(1))?);
        let y = l.concat(2, &[a, b])?;
        let y = l.reshape(y, &[rows, Dim::Const(width(0) + width(1))])?;
        l.finish(y)
    }

    fn cases() -> Vec<OpCase> {
        let mut rng = CaseValues::new(11);
        let ins = vec![rng.floats([3, 4 * 16]), rng.floats([3, 4 * 5])];
        vec![OpCase::new("heads", ConcatHeads { groups: 4 }, ins, Tolerance::Exact)]
    }
}
