//! `hadamard`: parts of a row times a Hadamard matrix, which leaves scores and lengths as they are and spreads an
//! element that is far larger than the others over all of its part (Chee et al., 2023; Ashkboos et al., 2024).

use super::case::CaseValues;
use super::lower::Lowering;
use super::{NoGeneralForm, OpCase, OpDef, Tolerance, arity, f32_rows};
use crate::attr::F32;
use crate::dim::Dim;
use crate::graph::Graph;
use crate::op_struct;
use crate::tensor::Tensor;
use crate::types::{Type, TypeError};

op_struct! {
    /// `(x f32[rows, n*part]) -> f32` of x's shape.
    ///
    /// Each `part` elements are multiplied by the Hadamard matrix of that size in Sylvester's order over the root of
    /// `part`: element i of the result is the sum of `x[j] / sqrt(part)`, negative where `i & j` has an odd number of
    /// ones. The matrix is symmetric and its own inverse.
    Hadamard {
        /// Elements that are mixed: a power of two.
        part: u32,
    }
}

impl OpDef for Hadamard {
    const NAME: &'static str = "hadamard";
    const ROW_WISE: bool = true;

    fn activations(&self) -> &'static [usize] {
        &[0]
    }

    fn infer(&self, ins: &[Type]) -> Result<Vec<Type>, TypeError> {
        arity(ins, 1..=1)?;
        let row = f32_rows(&ins[0], "x")?;
        if !self.part.is_power_of_two() || !row.is_multiple_of(self.part) {
            return Err(TypeError::new(format!(
                "rows of {row} in parts of {}: parts must be a power of two and fill the row",
                self.part
            )));
        }
        Ok(vec![ins[0].clone()])
    }

    fn eval(&self, ins: &[&Tensor]) -> Vec<Tensor> {
        let part = self.part as usize;
        let scale = 1.0 / (part as f64).sqrt();
        let mixed = |x: &[f32], i: usize| {
            let sign = |j: usize| if (i & j).count_ones().is_multiple_of(2) { scale } else { -scale };
            x.iter().enumerate().map(|(j, x)| f64::from(*x) * sign(j)).sum::<f64>() as f32
        };
        let out = ins[0].floats().chunks_exact(part).flat_map(|x| (0..part).map(move |i| mixed(x, i))).collect();
        vec![Tensor::f32(ins[0].shape.clone(), out)]
    }

    fn lower(&self, ins: &[Type]) -> Result<Graph, NoGeneralForm> {
        let (mut l, x) = Lowering::new(Self::NAME, ins)?;
        let (shape, row) = (l.shape(x[0]), ins[0].width().unwrap_or(0) as u32);
        let mut y = x[0];
        // One bit of the index after the other: sums where it is 0, differences where it is 1.
        for bit in 0..self.part.trailing_zeros() {
            let apart = 1 << bit;
            let pairs = [shape[0], Dim::Const(row / 2 / apart), Dim::Const(2), Dim::Const(apart)];
            y = l.reshape(y, &pairs)?;
            let (a, b) = (l.slice(y, 2, 0, 1, 1)?, l.slice(y, 2, 1, 1, 1)?);
            let (sum, difference) = (l.map("add(x0, x1)", &[a, b])?, l.map("sub(x0, x1)", &[a, b])?);
            y = l.concat(2, &[sum, difference])?;
        }
        let y = l.reshape(y, &shape)?;
        let y = l.map(&format!("mul(x0, {})", F32((1.0 / f64::from(self.part).sqrt()) as f32)), &[y])?;
        l.finish(y)
    }

    fn cases() -> Vec<OpCase> {
        let mut rng = CaseValues::new(31);
        // Every element is a sum of all of a part, with as many roundings in f32 as the part's size has bits.
        let close = Tolerance::Close { abs: 2e-6, rel: 1e-6 };
        [(1, 1, 64), (5, 2, 128), (3, 3, 32), (2, 1, 256), (4, 2, 16), (3, 5, 8), (2, 3, 2), (2, 7, 1), (0, 1, 64)]
            .into_iter()
            .map(|(rows, parts, part)| {
                let x = rng.floats([rows, parts * part]);
                OpCase::new(format!("{rows}x{parts}x{part}"), Hadamard { part: part as u32 }, vec![x], close)
            })
            .collect()
    }
}
