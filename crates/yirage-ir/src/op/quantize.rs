//! `quantize`: activations to a layout of activations.

use super::case::{CaseValues, with_extremes};
use super::{NoGeneralForm, OpCase, OpDef, Tolerance, arity, f32_rows, times};
use crate::activation::ActivationFormat;
use crate::graph::Graph;
use crate::op_struct;
use crate::tensor::{Data, Tensor};
use crate::types::{Type, TypeError};

op_struct! {
    /// `x f32[rows, width] -> q8a[rows, width]`, or another layout: what the numbers become is said by the layout's file
    /// ([`crate::activation`]).
    Quantize {
        /// The layout of the result.
        layout: ActivationFormat,
        /// Parts of a row that are judged apart, because they are read apart.
        parts: u32,
    }
}

impl OpDef for Quantize {
    const NAME: &'static str = "quantize";
    const ROW_WISE: bool = true;

    fn activations(&self) -> &'static [usize] {
        &[0]
    }

    fn infer(&self, ins: &[Type]) -> Result<Vec<Type>, TypeError> {
        arity(ins, 1..=1)?;
        let width = f32_rows(&ins[0], "x")?;
        let block = self.layout.info().block as u32;
        if self.parts == 0 || !width.is_multiple_of(times(block, self.parts, "a part of whole blocks")?) {
            let (x, parts) = (&ins[0], self.parts);
            return Err(TypeError::new(format!("x is {x}: {parts} parts of whole blocks of {block} wanted")));
        }
        let out = Type::quantized(self.layout, [ins[0].shape[0], width.into()]);
        out.check()?;
        Ok(vec![out])
    }

    fn eval(&self, ins: &[&Tensor]) -> Vec<Tensor> {
        let (x, info) = (ins[0].floats(), self.layout.info());
        let part = ins[0].width() / self.parts as usize;
        let mut bytes = vec![0; info.row_bytes(x.len())];
        for (x, dst) in x.chunks_exact(part).zip(bytes.chunks_exact_mut(info.row_bytes(part))) {
            (info.encode)(x, dst);
        }
        vec![Tensor::quantized(self.layout, ins[0].shape.clone(), bytes)]
    }

    fn lower(&self, _: &[Type]) -> Result<Graph, NoGeneralForm> {
        Err(NoGeneralForm::Beyond("a layout of activations is no plain numbers"))
    }

    fn cases() -> Vec<OpCase> {
        let mut rng = CaseValues::new(4);
        let op = Quantize { layout: ActivationFormat::Q8A, parts: 1 };
        let shapes = [[1, 32], [7, 96], [16, 64], [33, 320], [0, 32]];
        let mut cases: Vec<OpCase> = shapes
            .iter()
            .map(|s| OpCase::new(format!("{}x{}", s[0], s[1]), op.clone(), vec![rng.floats(*s)], Tolerance::Exact))
            .collect();
        let extremes = with_extremes(rng.floats([3, 64]));
        cases.push(OpCase::new("extremes", op.clone(), vec![extremes], Tolerance::Exact));
        for (rows, width) in [(1, 320), (19, 576), (2, 4224)] {
            let x = vec![rng.outliers([rows, width])];
            cases.push(OpCase::new(format!("outliers {rows}x{width}"), op.clone(), x, Tolerance::Exact));
        }
        // Blocks with more outliers than are kept, some of them equal.
        let mut crowded = rng.floats([3, 1024]);
        if let Data::F32(v) = &mut crowded.data {
            (0..3).for_each(|row| (0..9 + row).for_each(|i| v[row * 1024 + 64 + 3 * i] = 20.0 + (i % 4) as f32));
        }
        cases.push(OpCase::new("crowded", op, vec![crowded], Tolerance::Exact));
        cases
    }
}
