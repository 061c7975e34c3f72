//! `fill`: one value everywhere.

use super::{Case, OpDef, Tolerance, arity};
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

    fn cases() -> Vec<Case> {
        let shape = List(vec![3, 40]);
        vec![Case::new("one and a half", Fill { value: 1.5.into(), shape }, vec![], Tolerance::Exact)]
    }
}
