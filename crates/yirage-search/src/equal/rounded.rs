//! What a graph is when each function rounds to its type, as the ops' references do.

use super::class::Class;
use super::domain::{Domain, EvalStop, Matrices};
use super::inputs::{choice, element};
use super::map::wrapped;
use super::program::EvalInput;
use yirage_ir::DType;
use yirage_ir::expr::{Func, Scalar};
use yirage_ir::op::ReduceKind;

/// Floats that round, on one class of inputs.
pub(super) struct Rounded {
    pub(super) class: Class,
    pub(super) seed: u64,
}

fn f32_of(x: f64) -> f64 {
    f64::from(x as f32)
}

fn stored(x: f64, dtype: DType) -> f64 {
    Scalar::from(x as f32).cast(dtype).as_f64()
}

impl Domain for Rounded {
    type Num = f64;

    fn input(&mut self, input: &EvalInput, dtype: DType, sizes: &[usize], at: usize) -> f64 {
        element(self.class, self.seed, input, dtype, sizes, at)
    }

    fn whole_input(&mut self, input: &EvalInput, at: usize) -> i64 {
        choice(self.seed, input, at)
    }

    fn constant(&mut self, x: f32) -> f64 {
        x.into()
    }

    fn whole(&mut self, x: i64) -> f64 {
        f32_of(x as f64)
    }

    fn truth(&self, x: f64) -> Option<bool> {
        Some(x != 0.0)
    }

    fn call(&mut self, func: Func, x: &[f64]) -> Result<f64, EvalStop> {
        Ok(f32_of(func.of_floats(x)))
    }

    fn cast(&mut self, x: f64, to: DType) -> f64 {
        stored(x, to)
    }

    fn cut_off(&mut self, x: f64, to: DType) -> i64 {
        wrapped(Scalar::from(x as f32).cast(to).as_f64() as i64, to)
    }

    fn reduce(&mut self, kind: ReduceKind, x: &[f64], dtype: DType) -> Result<f64, EvalStop> {
        let (n, nan) = (x.len() as f64, x.iter().any(|x| x.is_nan()));
        let value = match kind {
            ReduceKind::Max | ReduceKind::Min if nan => f64::NAN,
            ReduceKind::Sum => x.iter().sum(),
            ReduceKind::Mean => x.iter().sum::<f64>() / n,
            ReduceKind::Max => x.iter().copied().fold(f64::NEG_INFINITY, f64::max),
            ReduceKind::Min => x.iter().copied().fold(f64::INFINITY, f64::min),
            ReduceKind::Prod => x.iter().product(),
            ReduceKind::MeanSquare => x.iter().map(|x| x * x).sum::<f64>() / n,
        };
        Ok(stored(value, dtype))
    }

    fn contract(&mut self, a: &[f64], b: &[f64], size: Matrices, dtype: DType) -> Vec<f64> {
        let Matrices { m, k, n } = size;
        let mut out = Vec::with_capacity(m * n);
        for i in 0..m {
            let mut sums = vec![0.0; n];
            for l in 0..k {
                let x = a[i * k + l];
                sums.iter_mut().zip(&b[l * n..][..n]).for_each(|(sum, y)| *sum += x * y);
            }
            out.extend(sums.into_iter().map(|sum| stored(sum, dtype)));
        }
        out
    }

    fn digest(&self, _: f64) -> u64 {
        0
    }

    fn closed(&mut self, _: u64) -> f64 {
        0.0
    }
}
