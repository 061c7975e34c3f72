//! `embed`: rows of a table chosen by ids.

use super::case::CaseValues;
use super::lower::Lowering;
use super::{NoGeneralForm, OpCase, OpDef, Role, Tolerance, arity, per_row};
use crate::attr::F32;
use crate::cost::{Cost, Reads, StepSizes};
use crate::dim::{Dim, Sym};
use crate::dtype::DType;
use crate::graph::Graph;
use crate::op_struct;
use crate::quant::Format;
use crate::tensor::Tensor;
use crate::types::{Type, TypeError};

op_struct! {
    /// `(table [vocab, width] stored, ids i32[Tokens]) -> f32[Tokens, width]`: `scale * table[id]`, the row decoded
    /// exactly. Ids outside the table are the caller's error and give a row of NaN, never other memory.
    Embed {
        /// Factor of every element (gemma: the root of the width).
        scale: F32,
    }
}

impl OpDef for Embed {
    const NAME: &'static str = "embed";
    const ROW_WISE: bool = true;

    fn infer(&self, ins: &[Type]) -> Result<Vec<Type>, TypeError> {
        arity(ins, 2..=2)?;
        let [Dim::Const(_), Dim::Const(width)] = ins[0].shape[..] else {
            return Err(TypeError::new(format!("table is {}, [vocab, width] wanted", ins[0])));
        };
        if width == 0 {
            return Err(TypeError::new(format!("table is {}: rows of no element", ins[0])));
        }
        let out = Type::new(DType::F32, [ins[1].shape.first().copied().unwrap_or(Dim::Const(1)), Dim::Const(width)]);
        per_row(&ins[1], &out, "ids")?;
        Ok(vec![out])
    }

    fn eval(&self, ins: &[&Tensor]) -> Vec<Tensor> {
        let (table, ids) = (ins[0], ins[1].ints());
        let mut out = Vec::with_capacity(ids.len() * table.width());
        for &id in ids {
            match usize::try_from(id).ok().filter(|&i| i < table.rows()) {
                Some(i) => out.extend(table.row(i).iter().map(|x| x * self.scale.0)),
                None => out.extend(std::iter::repeat_n(f32::NAN, table.width())),
            }
        }
        vec![Tensor::f32([ids.len(), table.width()], out)]
    }

    fn whole(&self, input: usize, _: &Type) -> bool {
        input == 0
    }

    fn role(&self, input: usize, _: &Tensor) -> Role {
        match input {
            0 => Role::Weight,
            _ => Role::StepInput(&[Sym::Tokens]),
        }
    }

    fn lower(&self, ins: &[Type]) -> Result<Graph, NoGeneralForm> {
        let (mut l, x) = Lowering::new(Self::NAME, ins)?;
        let table = match ins[0].dtype {
            DType::Stored(f) if f.info().block == 1 => x[0],
            _ => l.f32(x[0])?,
        };
        let rows = l.gather(table, x[1])?;
        let rows = l.f32(rows)?;
        let y = if self.scale == F32(1.0) { rows } else { l.map(&format!("mul(x0, {})", self.scale), &[rows])? };
        l.finish(y)
    }

    fn work(&self, ins: &[Type], step: &StepSizes<'_>) -> Cost {
        let tokens = ins[1].elems(&step.dims);
        let mut cost = Cost::reading(2, tokens);
        cost.reads[0] = Reads::Parts(tokens as f64);
        cost
    }

    fn cases() -> Vec<OpCase> {
        let mut rng = CaseValues::new(1);
        let mut cases = Vec::new();
        for &format in Format::ALL {
            let table = rng.weight(format, [37, 256]);
            let ids = Tensor::i32([5], vec![0, 36, 17, 17, 1]);
            let op = Embed { scale: F32(if format == Format::F32 { 1.0 } else { 16.0 }) };
            cases.push(OpCase::new(format.info().name, op, vec![table, ids], Tolerance::Exact));
        }
        cases
    }
}
