//! `quantize`: activations to int8 blocks of 32, but for the few that are much larger than the others.

use super::case::{Values, with_extremes};
use super::{Case, NoGeneralForm, OpDef, Tolerance, arity, f32_rows, times};
use crate::dtype::DType;
use crate::graph::Graph;
use crate::op_struct;
use crate::tensor::{Data, Tensor};
use crate::types::{Type, TypeError};

op_struct! {
    /// `x f32[rows, width] -> q8a[rows, width]`: per block of 32 `scale = max|x| / 127`, codes are `x / scale`
    /// rounded to nearest even (by the f32 reciprocal of the scale); a block of zeros has scale 0. A block holding
    /// NaN or an infinity has a NaN scale, so that it cannot pass for a number.
    ///
    /// Rounding noise grows with the square of a block's scale, and in the residual streams of real models a few
    /// channels are tens of times larger than the others, so that a few blocks would make nearly all of it. Such numbers
    /// are outliers: they stay f32 beside the codes, their codes are 0, and the block's scale is that of the rest. An
    /// outlier is an `x` with `(|x| / 127)^2 * blocks > 4 * (sum of scale^2)` over the blocks of the row's part, with
    /// the scales that they would have without outliers, |x| / 127 in f32, the rest in f64, ascending. Fewer than a
    /// quarter of the blocks can have some; a block has [`MAX_OUTLIERS`] at most, the largest, of equal ones the first.
    /// (The idea of taking outliers apart is that of LLM.int8(), arXiv 2208.07339.)
    Quantize {
        /// Parts of a row whose outliers are judged apart, because they are read apart.
        parts: u32,
    }
}

/// Most outliers of a block.
pub const MAX_OUTLIERS: usize = 7;

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
        if self.parts == 0 || !width.is_multiple_of(times(32, self.parts, "a part of whole blocks")?) {
            let (x, parts) = (&ins[0], self.parts);
            return Err(TypeError::new(format!("x is {x}: {parts} parts of whole blocks of 32 wanted")));
        }
        let out = Type::new(DType::Q8A, [ins[0].shape[0], width.into()]);
        out.check()?;
        Ok(vec![out])
    }

    fn eval(&self, ins: &[&Tensor]) -> Vec<Tensor> {
        let x = ins[0].floats();
        let blocks = ins[0].width() / self.parts as usize / 32;
        let (mut codes, mut scales) = (Vec::with_capacity(x.len()), Vec::with_capacity(x.len() / 32));
        let mut outliers = vec![0.0; x.len()];
        for (part, outliers) in x.chunks_exact(32 * blocks.max(1)).zip(outliers.chunks_exact_mut(32 * blocks.max(1))) {
            let square = |scale: f32| f64::from(scale) * f64::from(scale);
            let sum: f64 = part.chunks_exact(32).map(|x| square(block(x).1)).sum();
            for (x, outliers) in part.chunks_exact(32).zip(outliers.chunks_exact_mut(32)) {
                let mut rest = x.to_vec();
                let mut large: Vec<usize> = (0..32).collect();
                large.retain(|&i| square(x[i].abs() / 127.0) * blocks as f64 > 4.0 * sum);
                large.sort_by(|&a, &b| x[b].abs().total_cmp(&x[a].abs()));
                for i in large.into_iter().take(MAX_OUTLIERS) {
                    outliers[i] = std::mem::take(&mut rest[i]);
                }
                let (c, s) = block(&rest);
                codes.extend(c);
                scales.push(s);
            }
        }
        let data = Data::Q8A { codes, scales, outliers };
        vec![Tensor { dtype: DType::Q8A, shape: ins[0].shape.clone(), data }]
    }

    fn lower(&self, _: &[Type]) -> Result<Graph, NoGeneralForm> {
        Err(NoGeneralForm::Beyond("int8 blocks with outliers are a layout, not numbers"))
    }

    fn cases() -> Vec<Case> {
        let mut rng = Values::new(4);
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
            cases.push(Case::new(format!("outliers {rows}x{width}"), op.clone(), x, Tolerance::Exact));
        }
        // Blocks with more outliers than are kept, some of them equal.
        let mut crowded = rng.floats([3, 1024]);
        if let Data::F32(v) = &mut crowded.data {
            (0..3).for_each(|row| (0..9 + row).for_each(|i| v[row * 1024 + 64 + 3 * i] = 20.0 + (i % 4) as f32));
        }
        cases.push(Case::new("crowded", op, vec![crowded], Tolerance::Exact));
        cases
    }
}
