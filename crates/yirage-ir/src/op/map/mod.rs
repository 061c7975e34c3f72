//! `map`: an expression, element by element.

mod cases;
mod forms;

use super::{OpCase, OpDef, Role, arity, broadcast};
use crate::dim::Dim;
use crate::dtype::DType;
use crate::expr::{Bounded, Expr, MAX_INPUTS};
use crate::op_struct;
use crate::tensor::Tensor;
use crate::types::{Type, TypeError};

op_struct! {
    /// Any number of inputs of one shape -> the value of `expr` for each element.
    ///
    /// Shapes are aligned at the innermost dimension; a size of 1, and a dimension that is missing, meets all of the
    /// others' (as NumPy broadcasts). The result has the expression's type: floats are f32 unless it ends in a cast.
    Map {
        /// The expression; it reads every input.
        expr: Expr,
    }
}

impl Map {
    /// How far each element of a device's result may be from the reference's, for inputs that are the reference's.
    pub fn bounds(&self, ins: &[&Tensor]) -> Vec<f64> {
        let shape = broadcast::sizes(ins);
        let inputs: Vec<_> = ins.iter().map(|t| broadcast::spread(t, &shape)).collect();
        let bound = |i: usize| {
            let element: Vec<Bounded> = inputs.iter().map(|x| x[i].into()).collect();
            self.expr.bound(&element).within
        };
        (0..shape.iter().product()).map(bound).collect()
    }
}

impl OpDef for Map {
    const NAME: &'static str = "map";
    const ROW_WISE: bool = true;

    fn infer(&self, ins: &[Type]) -> Result<Vec<Type>, TypeError> {
        arity(ins, 1..=MAX_INPUTS)?;
        let dtypes: Vec<_> = ins.iter().map(|t| t.dtype).collect();
        let types = self.expr.infer(&dtypes)?;
        let out = Type::new(types[types.len() - 1], broadcast::shape(ins)?);
        out.check()?;
        Ok(vec![out])
    }

    /// Of a step's rows: two dimensions of f32, where every input has those rows or is one row for all.
    fn row_wise(&self, ins: &[Type]) -> bool {
        let rows = |ty: &Type| matches!(ty.shape[..], [Dim::Sym(_), Dim::Const(_)]);
        let Some(like) = ins.iter().find(|ty| rows(ty)) else { return false };
        let fits = |ty: &Type| ty.dtype == DType::F32 && (ty.shape == like.shape || ty.shape == like.shape[1..]);
        ins.iter().all(fits) && self.infer(ins).is_ok_and(|outs| fits(&outs[0]))
    }

    fn whole(&self, _: usize, ty: &Type) -> bool {
        ty.shape.len() < 2
    }

    fn eval(&self, ins: &[&Tensor]) -> Vec<Tensor> {
        let shape = broadcast::sizes(ins);
        let inputs: Vec<_> = ins.iter().map(|t| broadcast::spread(t, &shape)).collect();
        let dtypes: Vec<_> = ins.iter().map(|t| t.dtype).collect();
        let dtype = self.expr.infer(&dtypes).ok().and_then(|t| t.last().copied());
        let n = shape.iter().product();
        let out: Vec<_> = (0..n).map(|i| self.expr.eval(&inputs.iter().map(|x| x[i]).collect::<Vec<_>>())).collect();
        let dtype = dtype.unwrap_or_else(|| unreachable!("the expression has passed `infer`"));
        vec![Tensor::from_scalars(dtype, shape, &out)]
    }

    fn role(&self, _: usize, _: &Tensor) -> Role {
        Role::Any
    }

    fn cases() -> Vec<OpCase> {
        cases::all()
    }
}
