//! How close a kernel must come to the reference.

use super::{Op, OpCase};
use crate::dtype::DType;
use crate::quant::Format;
use crate::tensor::{Data, Tensor};

/// How far a kernel's result may be from the reference's.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Tolerance {
    /// Every bit the same, but for the sign of a zero and the bits of NaN.
    Exact,
    /// |error| <= `abs` + `rel` * |reference|.
    Close {
        /// Absolute part.
        abs: f32,
        /// Relative part.
        rel: f32,
    },
    /// What the functions of the expression allow, carried through it ([`crate::expr::Expr::bound`]).
    Terms,
    /// A sum of products, or of elements: |error| <= `c` * (eps(f32) * sum |a_i b_i| + 2^-149). The constant covers the
    /// roundings of a fixed-chunk f32 accumulation; 2^-149 is what a rounding takes from a subnormal number.
    SumOfProducts {
        /// The constant.
        c: f32,
    },
}

/// The smallest positive f32.
const SMALLEST: f64 = f32::from_bits(1) as f64;

impl OpCase {
    /// How far each value of an output may be from `want`, which is the reference's.
    pub fn bounds(&self, output: usize, want: &[f64]) -> Vec<f64> {
        self.bounds_of(self.tolerance, output, want)
    }

    /// [`OpCase::bounds`] of another tolerance.
    pub fn bounds_of(&self, tolerance: Tolerance, output: usize, want: &[f64]) -> Vec<f64> {
        match tolerance {
            Tolerance::Exact => vec![0.0; want.len()],
            Tolerance::Close { abs, rel } => {
                let bound = |w: &f64| finite(*w, f64::from(abs) + f64::from(rel) * w.abs());
                want.iter().map(bound).collect()
            }
            Tolerance::Terms => match &self.op {
                Op::Map(map) => map.bounds(&self.ins.iter().collect::<Vec<_>>()),
                _ => vec![0.0; want.len()],
            },
            Tolerance::SumOfProducts { c } => {
                let sums = self.magnitudes().swap_remove(output);
                let bound = |(s, w): (&f32, &f64)| {
                    let sum = f64::from(c) * (f64::from(f32::EPSILON) * f64::from(*s) + SMALLEST);
                    finite(*w, sum + neighbour(self.ins[0].dtype, *w))
                };
                sums.floats().iter().zip(want).map(bound).collect()
            }
        }
    }
}

impl OpCase {
    /// The outputs for |value| in place of each number that is read.
    pub fn magnitudes(&self) -> Vec<Tensor> {
        let magnitudes: Vec<Tensor> = self.ins.iter().map(magnitude).collect();
        self.op.eval(&magnitudes.iter().collect::<Vec<_>>())
    }
}

/// Infinities are none or the same.
fn finite(want: f64, bound: f64) -> f64 {
    if want.is_finite() { bound } else { 0.0 }
}

/// Sums of numbers of 16 bits are rounded to 16 bits: two that are close may become neighbours.
fn neighbour(dtype: DType, want: f64) -> f64 {
    match dtype {
        DType::Stored(Format::BF16) => want.abs() * 2f64.powi(-7),
        DType::Stored(Format::F16) => want.abs() * 2f64.powi(-10) + 2f64.powi(-24),
        _ => 0.0,
    }
}

/// The tensor with |value| for each number, decoded to f32; integers stay.
fn magnitude(t: &Tensor) -> Tensor {
    if matches!(t.data, Data::I32(_) | Data::U32(_)) {
        return t.clone();
    }
    let values = (0..t.rows()).flat_map(|r| t.row(r)).map(f32::abs).collect();
    Tensor { dtype: DType::F32, shape: t.shape.clone(), data: Data::F32(values) }
}
