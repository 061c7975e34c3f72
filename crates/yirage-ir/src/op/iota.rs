//! `iota`: numbers that count along a dimension.

use super::{OpCase, OpDef, Tolerance, arity};
use crate::attr::List;
use crate::dtype::DType;
use crate::op_struct;
use crate::tensor::Tensor;
use crate::types::{Type, TypeError};

op_struct! {
    /// `() -> i32 shape`: each element is its index along `axis`.
    Iota {
        /// The sizes.
        shape: List<u32>,
        /// The dimension counted along.
        axis: u32,
    }
}

impl OpDef for Iota {
    const NAME: &'static str = "iota";
    const ROW_WISE: bool = false;

    fn infer(&self, ins: &[Type]) -> Result<Vec<Type>, TypeError> {
        arity(ins, 0..=0)?;
        let out = Type::new(DType::I32, self.shape.0.iter().copied());
        if self.axis as usize >= out.shape.len() || self.shape.0[self.axis as usize] > i32::MAX as u32 {
            return Err(TypeError::new(format!("{out} cannot be counted along dimension {} by i32", self.axis)));
        }
        out.check()?;
        Ok(vec![out])
    }

    fn eval(&self, _: &[&Tensor]) -> Vec<Tensor> {
        let shape: Vec<usize> = self.shape.0.iter().map(|&n| n as usize).collect();
        let axis = self.axis as usize;
        let (inner, n) = (shape[axis + 1..].iter().product::<usize>(), shape.iter().product::<usize>());
        let data = (0..n).map(|i| (i / inner % shape[axis]) as i32).collect();
        vec![Tensor::i32(shape, data)]
    }

    fn cases() -> Vec<OpCase> {
        let shapes: [(&[u32], u32); 7] = [
            (&[2, 5, 3], 1),
            (&[1], 0),
            (&[0], 0),
            (&[1027], 0),
            (&[4, 17], 0),
            (&[4, 17], 1),
            (&[2, 1, 2, 3, 1, 2, 2, 1], 3),
        ];
        let case = |(shape, axis): (&[u32], u32)| {
            let op = Iota { shape: List(shape.to_vec()), axis };
            OpCase::new(format!("{shape:?} along {axis}"), op, vec![], Tolerance::Exact)
        };
        shapes.into_iter().map(case).collect()
    }
}
