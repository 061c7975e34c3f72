//! `quantize`: activations to int8 blocks of 32, those with outliers in two steps.

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
    ///
    /// Rounding noise grows with the square of a block's scale, and in the residual streams of real models a few
    /// channels are tens of times larger than the others, so that a few blocks make nearly all of it. Blocks with
    /// outliers therefore have a second set of codes for `x - scale * code`, made in the same way: those with
    /// `scale^2 * blocks > 4 * (sum of scale^2)` over the blocks of the row's part (summed in f64, ascending). Fewer
    /// than a quarter of the blocks can be such. (The idea of treating outliers apart is that of LLM.int8(),
    /// arXiv 2208.07339.)
    Quantize {
        /// Parts of a row whose outliers are judged apart, because they are read apart.
        parts: u32,
    }
}

/// Codes and scale of a block.
fn block(x: &[f32]) -> (Vec<i8>, f32) {
    let finite = x.iter().all(|v| v.is_finite());
    let scale = x.iter().fold(0f32, |a, v| a.max(v.abs())) / 127.0;
    let inverse = if scale > 0.0 { 1.0 / scale } else { 0.0 };
    let codes = x.iter().map(|v| (v * inverse).round_ties_even().clamp(-127.0, 127.0) as i8).collect();
    (codes, if finite { scale } else { f32::NAN })
}

impl OpDef for Quantize {
    const NAME: &'static str = "quantize";
    const ROW_WISE: bool = true;

    fn infer(&self, ins: &[Type]) -> Result<Vec<Type>, TypeError> {
        arity(ins, 1..=1)?;
        let width = f32_rows(&ins[0], "x")?;
        if self.parts == 0 || !width.is_multiple_of(32 * self.parts) {
            let (x, parts) = (&ins[0], self.parts);
            return Err(TypeError::new(format!("x is {x}: {parts} parts of whole blocks of 32 wanted")));
        }
        let out = Type::new(DType::Q8A, [ins[0].shape[0], width.into()]);
        out.check()?;
        Ok(vec![out])
    }

    fn eval(&self, ins: &[&Tensor]) -> Vec<Tensor> {
        let x = ins[0].floats();
        let (mut codes, mut scales) = (Vec::with_capacity(x.len()), Vec::with_capacity(x.len() / 32));
        let (mut fine_codes, mut fine_scales) = (vec![0; x.len()], vec![0.0; x.len() / 32]);
        for x in x.chunks_exact(32) {
            let (c, s) = block(x);
            codes.extend(c);
            scales.push(s);
        }
        let blocks = ins[0].width() / self.parts as usize / 32;
        for (p, part) in scales.chunks_exact(blocks.max(1)).enumerate() {
            let squares = |s: f32| f64::from(s) * f64::from(s);
            let sum: f64 = part.iter().map(|&s| squares(s)).sum();
            let outliers = (0..blocks).filter(|&b| squares(part[b]) * blocks as f64 > 4.0 * sum);
            for b in outliers.map(|b| p * blocks + b) {
                let all = 32 * b..32 * (b + 1);
                let rest: Vec<f32> = all.clone().map(|i| x[i] - scales[b] * f32::from(codes[i])).collect();
                let (c, s) = block(&rest);
                fine_codes[all].copy_from_slice(&c);
                fine_scales[b] = s;
            }
        }
        let data = Data::Q8A { codes, scales, fine_codes, fine_scales };
        vec![Tensor { dtype: DType::Q8A, shape: ins[0].shape.clone(), data }]
    }

    fn cases() -> Vec<Case> {
        let mut rng = Rng(4);
        let op = Quantize { parts: 1 };
        let shapes = [[1, 32], [7, 96], [16, 64], [33, 320], [0, 32]];
        let mut cases: Vec<Case> = shapes
            .iter()
            .map(|s| Case::new(format!("{}x{}", s[0], s[1]), op.clone(), vec![rng.floats(*s)], Tolerance::Exact))
            .collect();
        let extremes = with_extremes(rng.floats([3, 64]));
        cases.push(Case::new("extremes", op.clone(), vec![extremes], Tolerance::Exact));
        for (rows, width) in [(1, 320), (19, 576), (2, 4224)] {
            let x = vec![rng.outliers([rows, width])];
            // A reader adds the two products with one rounding each.
            let tolerance = Tolerance::Close { abs: 0.0, rel: f32::EPSILON };
            cases.push(Case::new(format!("outliers {rows}x{width}"), op.clone(), x, tolerance));
        }
        cases
    }
}
