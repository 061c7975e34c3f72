//! `quantize`: activations to int8 blocks of 32.

use super::case::{Rng, with_extremes};
use super::{Case, OpDef, Tolerance, arity, f32_rows};
use crate::dtype::DType;
use crate::op_struct;
use crate::tensor::{Data, Tensor};
use crate::types::{Type, TypeError};

op_struct! {
    /// `x f32[rows, width] -> q8a[rows, width]`: per block of 32 `scale = max|x| / 127`, codes are `x / scale`
    /// rounded to nearest even (by the f32 reciprocal of the scale); a block of zeros has scale 0. A block holding
    /// NaN or an infinity has a NaN scale, so that it cannot pass for a number.
    Quantize {}
}

impl OpDef for Quantize {
    const NAME: &'static str = "quantize";
    const ROW_WISE: bool = true;

    fn infer(&self, ins: &[Type]) -> Result<Vec<Type>, TypeError> {
        arity(ins, 1..=1)?;
        let width = f32_rows(&ins[0], "x")?;
        let out = Type::new(DType::Q8A, [ins[0].shape[0], width.into()]);
        out.check()?;
        Ok(vec![out])
    }

    fn eval(&self, ins: &[&Tensor]) -> Vec<Tensor> {
        let x = ins[0].floats();
        let (mut codes, mut scales) = (Vec::with_capacity(x.len()), Vec::with_capacity(x.len() / 32));
        for block in x.chunks_exact(32) {
            let finite = block.iter().all(|v| v.is_finite());
            let scale = block.iter().fold(0f32, |a, v| a.max(v.abs())) / 127.0;
            let inverse = if scale > 0.0 { 1.0 / scale } else { 0.0 };
            scales.push(if finite { scale } else { f32::NAN });
            codes.extend(block.iter().map(|v| (v * inverse).round_ties_even().clamp(-127.0, 127.0) as i8));
        }
        vec![Tensor { dtype: DType::Q8A, shape: ins[0].shape.clone(), data: Data::Q8A { codes, scales } }]
    }

    fn cases() -> Vec<Case> {
        let mut rng = Rng(4);
        let shapes = [[1, 32], [7, 96], [16, 64], [33, 320], [0, 32]];
        let mut cases: Vec<Case> = shapes
            .iter()
            .map(|s| Case::new(format!("{}x{}", s[0], s[1]), Quantize {}, vec![rng.floats(*s)], Tolerance::Exact))
            .collect();
        let extremes = with_extremes(rng.floats([3, 64]));
        cases.push(Case::new("extremes", Quantize {}, vec![extremes], Tolerance::Exact));
        cases
    }
}
