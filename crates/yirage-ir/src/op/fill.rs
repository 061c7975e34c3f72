//! `fill`: one value everywhere.

use super::{OpCase, OpDef, Tolerance, arity};
use crate::attr::List;
use crate::expr::Scalar;
use crate::op_struct;
use crate::tensor::Tensor;
use crate::types::{Type, TypeError};

op_struct! {
    /// `() -> shape`: each element is `value`, whose type the result has.
    Fill {
        /// The value.
        value: Scalar,
        /// The sizes.
        shape: List<u32>,
    }
}

impl OpDef for Fill {
    const NAME: &'static str = "fill";
    const ROW_WISE: bool = false;

    fn infer(&self, ins: &[Type]) -> Result<Vec<Type>, TypeError> {
        arity(ins, 0..=0)?;
        let out = Type::new(self.value.dtype(), self.shape.0.iter().copied());
        out.check()?;
        Ok(vec![out])
    }

    fn eval(&self, _: &[&Tensor]) -> Vec<Tensor> {
        let shape: Vec<usize> = self.shape.0.iter().map(|&n| n as usize).collect();
        let elements = vec![self.value; shape.iter().product()];
        vec![Tensor::from_scalars(self.value.dtype(), shape, &elements)]
    }

    fn cases() -> Vec<OpCase> {
        let values = [1.5.into(), f32::NAN.into(), (-0.0f32).into(), (-3).into(), u32::MAX.into(), true.into()];
        let shapes: [&[u32]; 6] = [&[3, 40], &[], &[1], &[0, 5], &[2, 1, 2, 1, 2, 1, 2, 3], &[1027]];
        let each = shapes.into_iter().flat_map(|shape| values.map(|value| (shape, value)));
        let case = |(shape, value): (&[u32], Scalar)| {
            let name = format!("{value} in {shape:?}");
            OpCase::new(name, Fill { value, shape: List(shape.to_vec()) }, vec![], Tolerance::Exact)
        };
        each.map(case).collect()
    }
}
