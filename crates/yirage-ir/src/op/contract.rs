//! `contract`: products of matrices, a batch of them.

use super::case::CaseValues;
use super::{OpCase, OpDef, Role, Tolerance, arity, broadcast};
use crate::cost::{Cost, StepSizes};
use crate::dim::Dim;
use crate::dtype::DType;
use crate::expr::{Scalar, is_float};
use crate::op_struct;
use crate::quant::Format;
use crate::tensor::Tensor;
use crate::types::{Type, TypeError};

op_struct! {
    /// `(a [..., m, k], b [..., k, n]) -> [..., m, n]`: `y[.., i, j] = sum_l a[.., i, l] * b[.., l, j]`; the leading
    /// dimensions meet as those of [`Map`](super::Map) do.
    ///
    /// Both are floats of one type, which the result has too. Each element is one chain of f32 fused multiply-adds over
    /// l, ascending, from 0; floats of 16 bits are rounded once, at the end. A transposed matrix is a view.
    Contract {}
}

impl OpDef for Contract {
    const NAME: &'static str = "contract";
    const ROW_WISE: bool = false;

    fn infer(&self, ins: &[Type]) -> Result<Vec<Type>, TypeError> {
        arity(ins, 2..=2)?;
        let (a, b) = (&ins[0], &ins[1]);
        let wanted = || TypeError::new(format!("a is {a}, b is {b}: floats [.., m, k] and [.., k, n] wanted"));
        let ([batch_a @ .., m, k], [batch_b @ .., l, n]) = (&a.shape[..], &b.shape[..]) else { return Err(wanted()) };
        if k != l || a.dtype != b.dtype || !is_float(a.dtype) {
            return Err(wanted());
        }
        let batch = |dims: &[Dim]| Type::new(a.dtype, dims.to_vec());
        let mut shape = broadcast::shape(&[batch(batch_a), batch(batch_b)])?;
        shape.extend([*m, *n]);
        let inner = [&shape[1..], &[*k], if batch_b.is_empty() { &[] } else { &b.shape[1..] }].concat();
        if let Some(dim) = inner.iter().find(|d| d.as_const().is_none()) {
            return Err(TypeError::new(format!("a is {a}, b is {b}: {dim} may only be the outermost dimension")));
        }
        let out = Type::new(a.dtype, shape);
        out.check()?;
        Ok(vec![out])
    }

    fn eval(&self, ins: &[&Tensor]) -> Vec<Tensor> {
        let (m, k) = (ins[0].shape[ins[0].shape.len() - 2], ins[0].width());
        let n = ins[1].width();
        // A whole matrix is one element of the batch.
        let batch = |t: &Tensor| {
            let sizes = t.shape[..t.shape.len() - 2].to_vec();
            let count = sizes.iter().product::<usize>();
            Tensor::i32(sizes, (0..count as i32).collect())
        };
        let (a, b) = (batch(ins[0]), batch(ins[1]));
        let mut shape = broadcast::sizes(&[&a, &b]);
        let (left, right) = (broadcast::spread(&a, &shape), broadcast::spread(&b, &shape));
        let (x, y) = (ins[0].scalars(), ins[1].scalars());
        let mut out = Vec::new();
        for (a, b) in left.iter().zip(&right) {
            let (a, b) = (a.as_f64() as usize * m * k, b.as_f64() as usize * k * n);
            for (i, j) in (0..m).flat_map(|i| (0..n).map(move |j| (i, j))) {
                let term = |l: usize| x[a + i * k + l].as_f64() * y[b + l * n + j].as_f64();
                out.push(Scalar::from((0..k).map(term).sum::<f64>() as f32));
            }
        }
        shape.extend([m, n]);
        vec![Tensor::from_scalars(ins[0].dtype, shape, &out)]
    }

    fn role(&self, _: usize, _: &Tensor) -> Role {
        Role::Any
    }

    fn cases() -> Vec<OpCase> {
        let mut rng = CaseValues::new(32);
        let mut cases = Vec::new();
        let shapes: [(&[usize], &[usize]); 17] = [
            (&[1, 1], &[1, 1]),
            (&[1, 33], &[33, 40]),
            (&[2, 64], &[64, 7]),
            (&[5, 17], &[17, 65]),
            (&[33, 48], &[48, 19]),
            (&[1, 300], &[300, 129]),
            (&[2, 3, 5], &[5, 7]),
            (&[3, 5], &[4, 5, 6]),
            (&[4, 1, 9], &[4, 9, 31]),
            (&[1, 5, 16], &[3, 16, 16]),
            (&[2, 1, 2, 11], &[1, 3, 11, 4]),
            (&[2, 3, 1, 8], &[3, 8, 5]),
            (&[1, 2, 1, 2, 1, 2, 2, 3], &[2, 1, 2, 1, 2, 1, 3, 2]),
            (&[0, 4], &[4, 3]),
            (&[3, 4], &[4, 0]),
            (&[3, 0], &[0, 2]),
            (&[0, 2, 3], &[1, 3, 2]),
        ];
        for (a, b) in shapes {
            for dtype in [DType::F32, DType::Stored(Format::F16), DType::Stored(Format::BF16)] {
                let ins = vec![rng.rounded(dtype, a), rng.rounded(dtype, b)];
                // A chain of f32 additions, k of them, each off by half a rounding.
                let tolerance = Tolerance::SumOfProducts { c: 16.0 + a[a.len() - 1] as f32 / 2.0 };
                cases.push(OpCase::new(format!("{a:?} by {b:?} {dtype}"), Contract {}, ins, tolerance));
            }
        }
        cases
    }

    fn work(&self, ins: &[Type], step: &StepSizes<'_>) -> Cost {
        let (a, n) = (ins[0].elems(&step.dims), ins[1].width().unwrap_or(0));
        Cost { ops: 2.0 * a as f64 * n as f64, ..Cost::reading(2, a) }
    }
}
