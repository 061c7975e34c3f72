//! `matmul`: products of two activations.

use super::case::CaseValues;
use super::lower::Lowering;
use super::{NoGeneralForm, OpCase, OpDef, Tolerance, arity, f32_rows, times};
use crate::cost::{Cost, StepSizes};
use crate::dim::Dim;
use crate::graph::Graph;
use crate::op_struct;
use crate::tensor::Tensor;
use crate::types::{Type, TypeError};

op_struct! {
    /// `(a f32[rows, m*k], b f32[rows, k*n]) -> f32[rows, m*n]`: each row holds a matrix, row-major, and the product of
    /// row r is `a[r] b[r]`. The rows are the batch: they may be symbolic, and broadcasting is a choice of rows.
    ///
    /// Each output is one sum over k in ascending order, whatever the batch. Products with a weight are `linear`.
    MatMul {
        /// Rows of each left matrix.
        m: u32,
        /// Columns of each right matrix.
        n: u32,
    }
}

impl OpDef for MatMul {
    const NAME: &'static str = "matmul";
    const ROW_WISE: bool = true;

    fn activations(&self) -> &'static [usize] {
        &[0, 1]
    }

    fn infer(&self, ins: &[Type]) -> Result<Vec<Type>, TypeError> {
        arity(ins, 2..=2)?;
        let (a, b) = (f32_rows(&ins[0], "a")?, f32_rows(&ins[1], "b")?);
        let whole = self.m > 0 && self.n > 0 && a.is_multiple_of(self.m) && b.is_multiple_of(self.n);
        if !whole || a / self.m != b / self.n || ins[0].shape[0] != ins[1].shape[0] {
            return Err(TypeError::new(format!(
                "a is {}, b is {}: rows of [{}, k] and [k, {}] matrices wanted",
                ins[0], ins[1], self.m, self.n
            )));
        }
        Ok(vec![Type::rows(ins[0].shape[0], times(self.m, self.n, "a product")?)])
    }

    fn eval(&self, ins: &[&Tensor]) -> Vec<Tensor> {
        let (m, n) = (self.m as usize, self.n as usize);
        let k = ins[0].width() / m;
        let mut out = Vec::with_capacity(ins[0].rows() * m * n);
        for r in 0..ins[0].rows() {
            let (a, b) = (ins[0].row_f64(r), ins[1].row_f64(r));
            for (i, j) in (0..m).flat_map(|i| (0..n).map(move |j| (i, j))) {
                out.push((0..k).map(|l| a[i * k + l] * b[l * n + j]).sum::<f64>() as f32);
            }
        }
        vec![Tensor::f32([ins[0].rows(), m * n], out)]
    }

    fn lower(&self, ins: &[Type]) -> Result<Graph, NoGeneralForm> {
        let (mut l, x) = Lowering::new(Self::NAME, ins)?;
        let rows = l.shape(x[0])[0];
        let k = Dim::Const(ins[0].width().unwrap_or(0) as u32 / self.m);
        let a = l.reshape(x[0], &[rows, Dim::Const(self.m), k])?;
        let b = l.reshape(x[1], &[rows, k, Dim::Const(self.n)])?;
        let y = l.contract(a, b)?;
        let y = l.reshape(y, &[rows, Dim::Const(self.m * self.n)])?;
        l.finish(y)
    }

    fn cases() -> Vec<OpCase> {
        let mut rng = CaseValues::new(20);
        let sizes = [(1, 1, 1, 1), (3, 2, 5, 7), (2, 4, 33, 16), (5, 1, 64, 100), (2, 9, 17, 1), (1, 65, 40, 70)];
        let case = |(rows, m, k, n): (usize, usize, usize, usize)| {
            let ins = vec![rng.floats([rows, m * k]), rng.floats([rows, k * n])];
            let op = MatMul { m: m as u32, n: n as u32 };
            OpCase::new(format!("{rows} of {m}x{k}x{n}"), op, ins, Tolerance::SumOfProducts { c: 40.0 })
        };
        sizes.into_iter().chain([(0, 2, 3, 4)]).map(case).collect()
    }

    fn work(&self, ins: &[Type], step: &StepSizes<'_>) -> Cost {
        let a = ins[0].elems(&step.dims);
        Cost { ops: 2.0 * a as f64 * f64::from(self.n), ..Cost::reading(2, a) }
    }
}
