//! `concat`: a thread makes a word of the output, of whichever inputs its elements come from.

use super::output_words::words;
use super::placed_chain::PlacedRead;
use super::{NodeView, OpKernels, plain_operands};
use crate::elements::computed_as;
use crate::node_kernel::NodeKernel;
use crate::strided_index::fixed;
use yirage_hal::HalError;
use yirage_ir::DType;
use yirage_ir::op::{Concat, OpDef};
use yirage_kir::{KernelWriter, Register, ScalarType};
use yirage_plan::rules::OpRule;

pub(crate) const KERNELS: OpKernels =
    OpKernels { op: Concat::NAME, rules: || vec![OpRule::new(Concat::NAME, vec![plain_operands()])], lower };

/// An input, and where it begins along the joined dimension.
pub(super) struct JoinedPart {
    read: PlacedRead,
    first: u32,
    end: u32,
}

/// Inputs as parts along a dimension, each with its size along it.
pub(super) fn parts(sized: impl IntoIterator<Item = (PlacedRead, u32)>) -> Vec<JoinedPart> {
    let mut end = 0;
    let part = |(read, size)| {
        let first = end;
        end += size;
        JoinedPart { read, first, end }
    };
    sized.into_iter().map(part).collect()
}

/// The element at these coordinates of what is joined.
pub(super) fn joined(
    w: &mut KernelWriter,
    parts: &[JoinedPart],
    axis: usize,
    dtype: DType,
    coordinates: &[Register],
) -> Register {
    let none = match computed_as(dtype) {
        ScalarType::F32 => w.f32(0.0),
        ScalarType::I32 => w.i32(0),
        ScalarType::U32 => w.u32(0),
        ScalarType::Bool => w.constant(false),
    };
    let made = w.variable(none);
    for part in parts {
        let (first, end) = (w.u32(part.first), w.u32(part.end));
        let (behind, before) = (w.less_equal(first, coordinates[axis]), w.less(coordinates[axis], end));
        let inside = w.and(behind, before);
        w.when(inside, |w| {
            let mut own = coordinates.to_vec();
            own[axis] = w.sub(coordinates[axis], first);
            let x = part.read.load(w, &own);
            w.set(made, x);
        });
    }
    w.get(made)
}

fn lower(view: &NodeView<'_>) -> Result<Vec<NodeKernel>, HalError> {
    let (axis, dtype) = (view.op::<Concat>()?.axis as usize, view.output(0).dtype);
    let kernel = words(&view.site, "concat", &view.dense_output(0)?, view.outs[0], |scope| {
        let mut reads = Vec::with_capacity(view.ins.len());
        for (at, &operand) in view.ins.iter().enumerate() {
            let places = view.places(at)?;
            let size = fixed(places.shape[axis])?;
            // Nothing is read of an input of no size.
            if size > 0 {
                reads.push((PlacedRead::new(scope.read(operand), places), size));
            }
        }
        let parts = parts(reads);
        Ok(move |w: &mut KernelWriter, coordinates: &[Register]| joined(w, &parts, axis, dtype, coordinates))
    })?;
    Ok(vec![kernel])
}
