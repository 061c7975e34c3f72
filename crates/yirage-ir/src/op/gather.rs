//! `gather`: chosen slices of a value.

use super::case::Values;
use super::{Case, OpDef, Role, Tolerance, arity};
use crate::dim::Sym;
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
        let plain = is_float(x.dtype) || matches!(x.dtype, DType::I32 | DType::U32 | DType::Bool);
        if !plain || at.dtype != DType::I32 || axis >= x.shape.len() {
            return Err(TypeError::new(format!("dimension {axis} of {x} by {at}: a plain value and i32 are wanted")));
        }
        let shape = [&x.shape[..axis], &at.shape[..], &x.shape[axis + 1..]].concat();
        let out = Type { dtype: x.dtype, shape, strides: None };
        if let Some(dim) = out.shape.iter().skip(1).find(|d| d.as_const().is_none()) {
            return Err(TypeError::new(format!("{x} by {at}: {dim} may only be the outermost dimension")));
        }
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

    fn role(&self, input: usize, _: &Tensor) -> Role {
        if input == 1 { Role::Slot(&[Sym::Rows]) } else { Role::Activation }
    }

    fn cases() -> Vec<Case> {
        let mut rng = Values::new(2);
        let x = rng.floats([6, 33]);
        let rows = Gather { axis: 0 };
        vec![
            Case::new("some", rows.clone(), vec![x.clone(), Tensor::i32([3], vec![5, 0, 5])], Tolerance::Exact),
            Case::new("none", rows, vec![x, Tensor::i32([0], vec![])], Tolerance::Exact),
        ]
    }
}
