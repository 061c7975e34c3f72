//! `concat`: values one after the other along a dimension.

use super::case::{CaseValues, PLAIN};
use super::{OpCase, OpDef, Role, Tolerance, arity, plain, symbol_outermost};
use crate::dim::Dim;
use crate::op_struct;
use crate::tensor::Tensor;
use crate::types::{Type, TypeError};

op_struct! {
    /// Any number of inputs `[..., n_i, ...]` of one type -> `[..., sum n_i, ...]`; a symbolic dimension is not joined.
    Concat {
        /// The dimension.
        axis: u32,
    }
}

/// Most values joined.
const MAX_PARTS: usize = 64;

impl OpDef for Concat {
    const NAME: &'static str = "concat";
    const ROW_WISE: bool = false;

    fn infer(&self, ins: &[Type]) -> Result<Vec<Type>, TypeError> {
        arity(ins, 1..=MAX_PARTS)?;
        let axis = self.axis as usize;
        let mut sum = 0u32;
        for ty in ins {
            plain(ty)?;
            let Some(Dim::Const(n)) = ty.shape.get(axis) else {
                return Err(TypeError::new(format!("{ty} has no dimension {axis} of a fixed size")));
            };
            sum = sum.checked_add(*n).ok_or_else(|| TypeError::new("the sizes together are too large"))?;
            let elsewhere = |t: &Type| (t.dtype, t.shape[..axis].to_vec(), t.shape.get(axis + 1..).map(<[_]>::to_vec));
            if elsewhere(ty) != elsewhere(&ins[0]) {
                return Err(TypeError::new(format!("{ty} and {} differ beside dimension {axis}", ins[0])));
            }
        }
        let mut out = ins[0].clone();
        out.shape[axis] = Dim::Const(sum);
        symbol_outermost(&out)?;
        out.check()?;
        Ok(vec![out])
    }

    fn eval(&self, ins: &[&Tensor]) -> Vec<Tensor> {
        let axis = self.axis as usize;
        let outer: usize = ins[0].shape[..axis].iter().product();
        let mut shape = ins[0].shape.clone();
        shape[axis] = ins.iter().map(|t| t.shape[axis]).sum();
        let parts: Vec<_> = ins.iter().map(|t| (t.scalars(), t.shape[axis..].iter().product::<usize>())).collect();
        let run = |o: usize| parts.iter().flat_map(move |(x, n)| x[o * n..][..*n].to_vec());
        let out: Vec<_> = (0..outer).flat_map(run).collect();
        vec![Tensor::from_scalars(ins[0].dtype, shape, &out)]
    }

    fn role(&self, _: usize, _: &Tensor) -> Role {
        Role::Any
    }

    fn cases() -> Vec<OpCase> {
        let mut rng = CaseValues::new(34);
        let mut cases = Vec::new();
        let shapes: [(u32, &[&[usize]]); 9] = [
            (1, &[&[3, 2, 4], &[3, 5, 4]]),
            (0, &[&[1, 7], &[4, 7], &[2, 7]]),
            (2, &[&[2, 3, 1], &[2, 3, 16], &[2, 3, 5]]),
            (0, &[&[3]]),
            (0, &[&[0], &[5], &[0]]),
            (1, &[&[0, 3], &[0, 2]]),
            (7, &[&[1, 2, 1, 2, 1, 2, 1, 3], &[1, 2, 1, 2, 1, 2, 1, 1]]),
            (3, &[&[2, 1, 2, 1, 2, 1, 2, 1], &[2, 1, 2, 3, 2, 1, 2, 1]]),
            (1, &[&[1, 64], &[1, 1], &[1, 33]]),
        ];
        for (axis, parts) in shapes {
            for dtype in PLAIN {
                let ins = parts.iter().map(|s| rng.rounded(dtype, s)).collect();
                cases.push(OpCase::new(
                    format!("{parts:?} along {axis} {dtype}"),
                    Concat { axis },
                    ins,
                    Tolerance::Exact,
                ));
            }
        }
        let many = (0..MAX_PARTS).map(|n| rng.floats([2, n % 3])).collect();
        cases.push(OpCase::new("as many as can be", Concat { axis: 1 }, many, Tolerance::Exact));
        cases
    }
}
