//! `map` over rows, each input of as many rows or one row that all meet.

use super::super::operand_constraints::floats;
use super::{BindRow, RowOp, rule};
use crate::bind::{CpuRunContext, FloatRow, FloatRows, OutputRows, Site};
use std::ops::Range;
use yirage_cpu_kernels::general::{self, Elem, ElementProgram, LoopSizes, StridedInput, StridedOutput, Strides};
use yirage_hal::HalError;
use yirage_ir::{DType, op};
use yirage_plan::rules::OpRule;

pub(super) struct MapRowOp {
    program: ElementProgram,
    inputs: Vec<MapOperand>,
    out: OutputRows<f32>,
}

enum MapOperand {
    Each(FloatRows),
    One(FloatRow),
}

impl BindRow for MapRowOp {
    type Op = op::Map;

    fn rules() -> Vec<OpRule> {
        vec![rule::<op::Map>(vec![floats()])]
    }

    fn bind(op: &op::Map, site: &Site) -> Result<MapRowOp, HalError> {
        let input = |i: usize| match site.rank(i) {
            1 => Ok(MapOperand::One(site.float_row(i)?)),
            _ => Ok(MapOperand::Each(site.float_rows(i)?)),
        };
        let inputs = (0..site.inputs()).map(input).collect::<Result<Vec<_>, HalError>>()?;
        let program = ElementProgram::new(&op.expr, &vec![DType::F32; inputs.len()]);
        let program = program.map_err(|why| HalError::Load(format!("`{}`: {why}", op.expr)))?;
        Ok(MapRowOp { program, inputs, out: site.out(0)? })
    }
}

impl RowOp for MapRowOp {
    unsafe fn run(&self, run: &CpuRunContext<'_>, rows: Range<usize>) {
        let width = self.out.width();
        let dims = |first: i64| Strides::new(&[first, 1]).unwrap_or_else(|why| unreachable!("two dimensions: {why}"));
        // The loop is over these rows alone: what it makes stays in the caches however many rows there are.
        let first = rows.start * width;
        let input = |of: &MapOperand| match of {
            MapOperand::Each(all) => {
                all.fetch(run, &rows);
                StridedInput::at(all.first(run).wrapping_add(first).cast(), Elem::F32, dims(width as i64))
            }
            MapOperand::One(row) => StridedInput::at(row.first(run).cast(), Elem::F32, dims(0)),
        };
        let inputs: Vec<StridedInput> = self.inputs.iter().map(input).collect();
        let sizes =
            LoopSizes::new(&[rows.len(), width]).unwrap_or_else(|why| unreachable!("sizes of a placed value: {why}"));
        let out = StridedOutput::at(self.out.first(run).wrapping_add(first).cast(), Elem::F32, dims(width as i64));
        // SAFETY: what `RowOp::run` is promised; `Site` bound operands that lie whole in their memory.
        unsafe { general::map(run.isa, &self.program, &sizes, &inputs, out, 0..sizes.count()) };
    }
}
