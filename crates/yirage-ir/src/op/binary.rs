//! `binary`: element-wise arithmetic of two values, with a row broadcast.

use super::case::Values;
use super::lower::Lowering;
use super::{Case, NoGeneralForm, OpDef, Role, Tolerance, arity, f32_rows, vector};
use crate::attr_enum;
use crate::graph::Graph;
use crate::op_struct;
use crate::tensor::Tensor;
use crate::types::{Type, TypeError};

attr_enum! {
    /// Which function.
    BinaryKind {
        /// `a + b`.
        Add = "add",
        /// `a * b`.
        Mul = "mul",
        /// `a - b`.
        Sub = "sub",
        /// `a / b`.
        Div = "div",
    }
}

op_struct! {
    /// `(a f32[rows, width], b) -> f32[rows, width]`, element by element; `b` has a's shape or is one row `[width]`
    /// (a bias) met by every row.
    Binary {
        /// The function.
        kind: BinaryKind,
    }
}

impl OpDef for Binary {
    const NAME: &'static str = "binary";
    const ROW_WISE: bool = true;

    fn infer(&self, ins: &[Type]) -> Result<Vec<Type>, TypeError> {
        arity(ins, 2..=2)?;
        let width = f32_rows(&ins[0], "a")?;
        if ins[1].shape.len() == 1 {
            vector(&ins[1], width, "b")?;
        } else if ins[1] != ins[0] {
            return Err(TypeError::new(format!("b is {}, {} or [{width}] wanted", ins[1], ins[0])));
        }
        Ok(vec![ins[0].clone()])
    }

    fn eval(&self, ins: &[&Tensor]) -> Vec<Tensor> {
        let a = ins[0].floats();
        let b: Vec<f32> = (0..ins[1].rows()).flat_map(|r| ins[1].row(r)).collect();
        let apply = |a: f32, b: f32| match self.kind {
            BinaryKind::Add => a + b,
            BinaryKind::Mul => a * b,
            BinaryKind::Sub => a - b,
            BinaryKind::Div => a / b,
        };
        let out = a.iter().zip(b.iter().cycle()).map(|(&a, &b)| apply(a, b)).collect();
        vec![Tensor::f32(ins[0].shape.clone(), out)]
    }

    fn whole(&self, input: usize, ty: &Type) -> bool {
        input == 1 && ty.shape.len() == 1
    }

    fn role(&self, input: usize, like: &Tensor) -> Role {
        // One row for all is a weight.
        if input == 1 && like.shape.len() == 1 { Role::Weight } else { Role::Activation }
    }

    fn lower(&self, ins: &[Type]) -> Result<Graph, NoGeneralForm> {
        let (mut l, x) = Lowering::new(Self::NAME, ins)?;
        let y = l.map(&format!("{}(x0, x1)", self.kind), &x)?;
        l.finish(y)
    }

    fn cases() -> Vec<Case> {
        let mut rng = Values::new(9);
        let mut cases = Vec::new();
        for &kind in BinaryKind::ALL {
            let ins = vec![rng.floats([5, 67]), rng.floats([5, 67])];
            cases.push(Case::new(format!("{kind}"), Binary { kind }, ins, Tolerance::Exact));
            let ins = vec![rng.floats([3, 40]), rng.floats([40])];
            cases.push(Case::new(format!("{kind} row"), Binary { kind }, ins, Tolerance::Exact));
        }
        cases
    }
}
