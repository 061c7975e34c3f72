//! `reduce`: one value of all elements along some dimensions.

mod cases;

use super::{OpCase, OpDef, Role, arity, symbol_outermost};
use crate::attr::List;
use crate::attr_enum;
use crate::dim::Dim;
use crate::dtype::DType;
use crate::expr::{Scalar, is_float};
use crate::op_struct;
use crate::tensor::Tensor;
use crate::types::{Type, TypeError};

attr_enum! {
    /// What becomes of the elements.
    ReduceKind {
        /// Their sum; 0 of none.
        Sum = "sum",
        /// Their sum divided by their number; NaN of none.
        Mean = "mean",
        /// The largest; NaN where one is NaN, minus infinity (the smallest whole number) of none.
        Max = "max",
        /// The smallest; NaN where one is NaN, infinity (the largest whole number) of none.
        Min = "min",
        /// Their product; 1 of none.
        Prod = "prod",
        /// The sum of their squares divided by their number; NaN of none.
        MeanSquare = "mean_square",
    }
}

op_struct! {
    /// `x [...] -> [...]`, with 1 in place of each size along `axes`, or without those dimensions.
    ///
    /// Elements are taken in row-major order of the reduced dimensions: element e goes to partial result `e mod 64` (f32
    /// for floats), and the partial results are joined as [`join`] says. The order depends on the number of elements
    /// alone. Floats of 16 bits are rounded once, at the end; whole numbers wrap around and have no means.
    Reduce {
        /// What becomes of the elements.
        kind: ReduceKind,
        /// The dimensions, ascending.
        axes: List<u32>,
        /// Whether reduced dimensions stay, of size 1.
        keep: bool,
    }
}

/// Partial results of a reduction.
pub const PARTS: usize = 64;

/// Joins partial results: 16 lanes of four, `(0 + 1) + (2 + 3)`, then lane i with i + 8, i + 4, i + 2, i + 1.
pub fn join<T: Copy>(parts: [T; PARTS], mut with: impl FnMut(T, T) -> T) -> T {
    let mut lanes: [T; 16] = std::array::from_fn(|i| {
        let (low, high) = (with(parts[i], parts[16 + i]), with(parts[32 + i], parts[48 + i]));
        with(low, high)
    });
    for half in [8, 4, 2, 1] {
        for i in 0..half {
            lanes[i] = with(lanes[i], lanes[i + half]);
        }
    }
    lanes[0]
}

impl OpDef for Reduce {
    const NAME: &'static str = "reduce";
    const ROW_WISE: bool = false;

    fn infer(&self, ins: &[Type]) -> Result<Vec<Type>, TypeError> {
        arity(ins, 1..=1)?;
        let (x, axes) = (&ins[0], &self.axes.0);
        let ascending = axes.windows(2).all(|w| w[0] < w[1]) && axes.iter().all(|&a| (a as usize) < x.shape.len());
        if axes.is_empty() || !ascending {
            return Err(TypeError::new(format!("axes {} of {x}: ascending ones that it has are wanted", self.axes)));
        }
        symbol_outermost(x)?;
        if !self.takes(x.dtype) {
            return Err(TypeError::new(format!("{} of {x} is not defined", self.kind)));
        }
        let reduced = |axis: usize| axes.contains(&(axis as u32));
        let dims = x.shape.iter().enumerate().filter(|(axis, _)| self.keep || !reduced(*axis));
        let shape = dims.map(|(axis, &dim)| if reduced(axis) { Dim::Const(1) } else { dim });
        Ok(vec![Type::new(x.dtype, shape)])
    }

    fn eval(&self, ins: &[&Tensor]) -> Vec<Tensor> {
        let x = ins[0];
        let reduced = |axis: usize| self.axes.0.contains(&(axis as u32));
        let shape: Vec<usize> = (0..x.shape.len())
            .filter(|&axis| self.keep || !reduced(axis))
            .map(|axis| if reduced(axis) { 1 } else { x.shape[axis] })
            .collect();
        let mut groups: Vec<Vec<f64>> = vec![Vec::new(); shape.iter().product()];
        for (mut i, value) in x.scalars().into_iter().enumerate() {
            let (mut group, mut stride) = (0, 1);
            for axis in (0..x.shape.len()).rev() {
                let index = i % x.shape[axis];
                i /= x.shape[axis];
                if !reduced(axis) {
                    group += index * stride;
                    stride *= x.shape[axis];
                }
            }
            groups[group].push(value.as_f64());
        }
        let out: Vec<Scalar> = groups.iter().map(|g| self.of(g, x.dtype)).collect();
        vec![Tensor::from_scalars(x.dtype, shape, &out)]
    }

    fn role(&self, _: usize, _: &Tensor) -> Role {
        Role::Any
    }

    fn cases() -> Vec<OpCase> {
        cases::all()
    }
}

impl Reduce {
    /// A reduction along `axes`.
    pub fn new(kind: ReduceKind, axes: &[u32], keep: bool) -> Reduce {
        Reduce { kind, axes: List(axes.to_vec()), keep }
    }

    /// Whether it is defined for elements of this type.
    pub fn takes(&self, dtype: DType) -> bool {
        let mean = matches!(self.kind, ReduceKind::Mean | ReduceKind::MeanSquare);
        is_float(dtype) || (!mean && matches!(dtype, DType::I32 | DType::U32))
    }

    fn of(&self, x: &[f64], dtype: DType) -> Scalar {
        if !is_float(dtype) {
            return whole(self.kind, x, dtype);
        }
        let nan = x.iter().any(|v| v.is_nan());
        let value = match self.kind {
            ReduceKind::Max | ReduceKind::Min if nan => f64::NAN,
            ReduceKind::Sum => x.iter().sum(),
            ReduceKind::Mean => x.iter().sum::<f64>() / x.len() as f64,
            ReduceKind::Max => x.iter().copied().fold(f64::NEG_INFINITY, f64::max),
            ReduceKind::Min => x.iter().copied().fold(f64::INFINITY, f64::min),
            ReduceKind::Prod => x.iter().product(),
            ReduceKind::MeanSquare => x.iter().map(|v| v * v).sum::<f64>() / x.len() as f64,
        };
        Scalar::from(value as f32)
    }
}

/// Of whole numbers: each step keeps the low 32 bits.
fn whole(kind: ReduceKind, x: &[f64], dtype: DType) -> Scalar {
    let signed = dtype == DType::I32;
    let x = x.iter().map(|&v| v as i64);
    let value = match kind {
        ReduceKind::Max => x.max().unwrap_or(if signed { i32::MIN.into() } else { 0 }),
        ReduceKind::Min => x.min().unwrap_or(if signed { i32::MAX.into() } else { u32::MAX.into() }),
        ReduceKind::Prod => x.fold(1, i64::wrapping_mul),
        _ => x.fold(0, i64::wrapping_add),
    };
    if signed { Scalar::from(value as i32) } else { Scalar::from(value as u32) }
}
