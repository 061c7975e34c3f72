//! `top_k`: the largest or smallest elements of rows.

use super::case::CaseValues;
use super::{NoGeneralForm, OpCase, OpDef, Tolerance, arity, f32_rows};
use crate::dtype::DType;
use crate::graph::Graph;
use crate::op_struct;
use crate::tensor::{Data, Tensor};
use crate::types::{Type, TypeError};
use std::cmp::Ordering;

op_struct! {
    /// `x f32[rows, width] -> (values f32[rows, k], indices i32[rows, k])`: the `k` largest (or smallest) elements of
    /// each row and where they stand; of equals the lower index wins, and stands first.
    ///
    /// Sorted, they are in rank order; else in the order of their indices. -0 equals 0, and NaN counts as larger than
    /// everything.
    TopK {
        /// Elements kept of each row.
        k: u32,
        /// Whether the largest are kept.
        largest: bool,
        /// Whether they come in rank order.
        sorted: bool,
    }
}

impl TopK {
    /// The order of ranks.
    fn order(&self, a: f32, b: f32) -> Ordering {
        let order = a.partial_cmp(&b).unwrap_or_else(|| a.is_nan().cmp(&b.is_nan()));
        if self.largest { order.reverse() } else { order }
    }
}

impl OpDef for TopK {
    const NAME: &'static str = "top_k";
    const ROW_WISE: bool = true;

    fn activations(&self) -> &'static [usize] {
        &[0]
    }

    fn infer(&self, ins: &[Type]) -> Result<Vec<Type>, TypeError> {
        arity(ins, 1..=1)?;
        let width = f32_rows(&ins[0], "x")?;
        if self.k == 0 || self.k > width {
            return Err(TypeError::new(format!("{} of {width} elements: at least one and at most all wanted", self.k)));
        }
        let values = Type::rows(ins[0].shape[0], self.k);
        Ok(vec![values.clone(), Type { dtype: DType::I32, ..values }])
    }

    fn eval(&self, ins: &[&Tensor]) -> Vec<Tensor> {
        let (mut values, mut indices) = (Vec::new(), Vec::new());
        for r in 0..ins[0].rows() {
            let x = ins[0].row(r);
            let mut order: Vec<usize> = (0..x.len()).collect();
            order.sort_by(|&a, &b| self.order(x[a], x[b]));
            order.truncate(self.k as usize);
            if !self.sorted {
                order.sort_unstable();
            }
            values.extend(order.iter().map(|&i| x[i]));
            indices.extend(order.iter().map(|&i| i as i32));
        }
        let shape = vec![ins[0].rows(), self.k as usize];
        let indices = Tensor { dtype: DType::I32, shape: shape.clone(), data: Data::I32(indices) };
        vec![Tensor::f32(shape, values), indices]
    }

    fn lower(&self, _: &[Type]) -> Result<Graph, NoGeneralForm> {
        Err(NoGeneralForm::Beyond("it sorts"))
    }

    fn cases() -> Vec<OpCase> {
        let mut rng = CaseValues::new(21);
        let mut cases = Vec::new();
        for (rows, width, k) in [(1, 1, 1), (4, 50, 3), (2, 50, 50), (3, 3000, 40), (2, 5000, 1500), (0, 7, 2)] {
            for (largest, sorted) in [(true, true), (false, true), (true, false), (false, false)] {
                let mut x = rng.floats([rows, width]);
                if let Data::F32(v) = &mut x.data {
                    // Eighths: many are equal.
                    v.iter_mut().for_each(|v| *v = (*v * 80.0).round() / 8.0);
                }
                let op = TopK { k, largest, sorted };
                let name = format!("{k} of {rows}x{width} largest {largest} sorted {sorted}");
                cases.push(OpCase::new(name, op, vec![x], Tolerance::Exact));
            }
        }
        let (inf, nan) = (f32::INFINITY, f32::NAN);
        let odd = Tensor::f32(
            [3, 6],
            vec![
                -0.0, 0.0, -inf, inf, 0.0, 1.0, //
                nan, 2.0, nan, inf, -inf, 2.0, //
                -inf, -inf, -inf, -inf, -inf, -inf,
            ],
        );
        for largest in [true, false] {
            let op = TopK { k: 4, largest, sorted: true };
            cases.push(OpCase::new(format!("odd values largest {largest}"), op, vec![odd.clone()], Tolerance::Exact));
        }
        cases
    }
}
