//! `gather`: chosen rows of an activation.

use super::case::Values;
use super::{Case, OpDef, Role, Tolerance, arity, f32_rows, per_row};
use crate::dim::{Dim, Sym};
use crate::dtype::DType;
use crate::op_struct;
use crate::tensor::Tensor;
use crate::types::{Type, TypeError};

op_struct! {
    /// `(x f32[Tokens, width], rows i32[Rows]) -> f32[Rows, width]`.
    Gather {}
}

impl OpDef for Gather {
    const NAME: &'static str = "gather";
    const ROW_WISE: bool = false;

    fn infer(&self, ins: &[Type]) -> Result<Vec<Type>, TypeError> {
        arity(ins, 2..=2)?;
        let width = f32_rows(&ins[0], "x")?;
        let rows = ins[1].shape.first().copied().unwrap_or(Dim::Sym(Sym::Rows));
        let out = Type::new(DType::F32, [rows, Dim::Const(width)]);
        per_row(&ins[1], &out, "rows")?;
        Ok(vec![out])
    }

    fn eval(&self, ins: &[&Tensor]) -> Vec<Tensor> {
        let rows = ins[1].ints();
        let data = rows.iter().flat_map(|&r| ins[0].row(r as usize)).collect();
        vec![Tensor::f32([rows.len(), ins[0].width()], data)]
    }

    fn role(&self, input: usize, _: &Tensor) -> Role {
        if input == 1 { Role::Slot(&[Sym::Rows]) } else { Role::Activation }
    }

    fn cases() -> Vec<Case> {
        let mut rng = Values::new(2);
        let x = rng.floats([6, 33]);
        vec![
            Case::new("some", Gather {}, vec![x.clone(), Tensor::i32([3], vec![5, 0, 5])], Tolerance::Exact),
            Case::new("none", Gather {}, vec![x, Tensor::i32([0], vec![])], Tolerance::Exact),
        ]
    }
}
