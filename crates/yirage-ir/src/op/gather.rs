//! `gather`: chosen slices of a value.

use super::case::{CaseValues, PLAIN};
use super::{OpCase, OpDef, Role, Tolerance, arity, plain, symbol_outermost};
use crate::cost::{Cost, Reads, StepSizes};
use crate::dtype::DType;
use crate::expr::{Scalar, is_float};
use crate::op_struct;
use crate::tensor::Tensor;
use crate::types::{Type, TypeError};

op_struct! {
    /// `(x [..., n, ...], at i32[...]) -> x's shape with at's in place of n`: slice `at[i]` of x along `axis`.
    ///
    /// A number outside of `0..n` gives NaN (0 for whole numbers, false).
    Gather {
        /// The dimension.
        axis: u32,
    }
}

impl OpDef for Gather {
    const NAME: &'static str = "gather";
    const ROW_WISE: bool = false;

    fn infer(&self, ins: &[Type]) -> Result<Vec<Type>, TypeError> {
        arity(ins, 2..=2)?;
        let (x, at, axis) = (&ins[0], &ins[1], self.axis as usize);
        plain(x)?;
        if at.dtype != DType::I32 || axis >= x.shape.len() {
            return Err(TypeError::new(format!(
                "dimension {axis} of {x} by {at}: one that it has, and i32, are wanted"
            )));
        }
        let shape = [&x.shape[..axis], &at.shape[..], &x.shape[axis + 1..]].concat();
        let out = Type::new(x.dtype, shape);
        symbol_outermost(&out)?;
        out.check()?;
        Ok(vec![out])
    }

    fn eval(&self, ins: &[&Tensor]) -> Vec<Tensor> {
        let (x, at, axis) = (ins[0], ins[1], self.axis as usize);
        let (outer, n) = (x.shape[..axis].iter().product::<usize>(), x.shape[axis]);
        let inner: usize = x.shape[axis + 1..].iter().product();
        let shape = [&x.shape[..axis], &at.shape[..], &x.shape[axis + 1..]].concat();
        let missing = if is_float(x.dtype) { Scalar::from(f32::NAN) } else { Scalar::from(0i32) };
        let elements = x.scalars();
        let mut out = Vec::new();
        for (o, &i) in (0..outer).flat_map(|o| at.ints().iter().map(move |i| (o, i))) {
            match usize::try_from(i) {
                Ok(i) if i < n => out.extend_from_slice(&elements[(o * n + i) * inner..][..inner]),
                _ => out.extend(std::iter::repeat_n(missing, inner)),
            }
        }
        vec![Tensor::from_scalars(x.dtype, shape, &out)]
    }

    fn role(&self, _: usize, _: &Tensor) -> Role {
        Role::Any
    }

    fn work(&self, ins: &[Type], step: &StepSizes<'_>) -> Cost {
        let slices = ins[1].elems(&step.dims);
        let mut cost = Cost::reading(2, slices);
        if self.axis == 0 {
            cost.reads[0] = Reads::Parts(slices as f64);
        }
        cost
    }

    fn cases() -> Vec<OpCase> {
        let mut rng = CaseValues::new(2);
        let x = rng.floats([6, 33]);
        let rows = Gather { axis: 0 };
        let mut cases = vec![
            OpCase::new("some", rows.clone(), vec![x.clone(), Tensor::i32([3], vec![5, 0, 5])], Tolerance::Exact),
            OpCase::new("none", rows.clone(), vec![x.clone(), Tensor::i32([0], vec![])], Tolerance::Exact),
            OpCase::new("one", rows, vec![x, Tensor::i32([], vec![4])], Tolerance::Exact),
        ];
        let shapes: [(u32, &[usize], &[usize]); 8] = [
            (0, &[5], &[7]),
            (1, &[2, 5], &[3]),
            (1, &[2, 5, 3], &[2, 2]),
            (2, &[2, 1, 9], &[1, 4]),
            (0, &[3, 2, 2, 2], &[2, 1, 2, 1]),
            (3, &[2, 2, 2, 6, 2], &[3, 1]),
            (0, &[0, 4], &[2]),
            (7, &[1, 2, 1, 2, 1, 2, 1, 3], &[4]),
        ];
        for (axis, x, at) in shapes {
            for dtype in PLAIN {
                // Some lie outside, as far as can be.
                let n = x[axis as usize] as i32;
                let outside = [-1, n, i32::MIN, i32::MAX, -n];
                let mut index =
                    |i: usize| if i % 4 == 3 { outside[i / 4 % 5] } else { rng.below(n.max(1) as u64) as i32 };
                let ids = (0..at.iter().product()).map(&mut index).collect();
                let ins = vec![rng.rounded(dtype, x), Tensor::i32(at, ids)];
                let name = format!("{at:?} of {x:?} along {axis} {dtype}");
                cases.push(OpCase::new(name, Gather { axis }, ins, Tolerance::Exact));
            }
        }
        cases
    }
}
