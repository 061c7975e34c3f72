//! `gather`: slices of a dimension by number; what is no number of one gives NaN, or 0.

use super::output_words::words;
use super::{NodeView, OpKernels, plain_operands};
use crate::elements::computed_as;
use crate::node_kernel::NodeKernel;
use crate::strided_index::{count, element};
use yirage_hal::HalError;
use yirage_ir::op::{Gather, OpDef};
use yirage_kir::{KernelWriter, Register, ScalarType};
use yirage_plan::rules::OpRule;

pub(crate) const KERNELS: OpKernels =
    OpKernels { op: Gather::NAME, rules: || vec![OpRule::new(Gather::NAME, vec![plain_operands()])], lower };

fn lower(view: &NodeView<'_>) -> Result<Vec<NodeKernel>, HalError> {
    let axis = view.op::<Gather>()?.axis as usize;
    let (x, numbers) = (view.places(0)?, view.places(1)?);
    let rank = numbers.shape.len();
    let kernel = words(&view.site, "gather", &view.dense_output(0)?, view.outs[0], |scope| {
        let (elements, ids) = (scope.read(view.ins[0]), scope.read(view.ins[1]));
        let slices = count(scope, &x.shape[axis..=axis]);
        Ok(move |w: &mut KernelWriter, coordinates: &[Register]| {
            let (outer, rest) = coordinates.split_at(axis);
            let (which, inner) = rest.split_at(rank);
            let id = element(w, &numbers, which);
            let id = ids.load(w, id);
            // As a number without sign, one below 0 is too large.
            let id = w.bitcast(ScalarType::U32, id);
            let (there, first) = (w.less(id, slices), w.u32(0));
            let slice = w.select(there, id, first);
            let all: Vec<Register> = outer.iter().copied().chain([slice]).chain(inner.iter().copied()).collect();
            let missing = missing(w, computed_as(elements.dtype));
            // Of nothing there is no first slice to be read in place of the missing one.
            let made = w.variable(missing);
            w.when(there, |w| {
                let at = element(w, &x, &all);
                let found = elements.load(w, at);
                w.set(made, found);
            });
            w.get(made)
        })
    })?;
    Ok(vec![kernel])
}

fn missing(w: &mut KernelWriter, ty: ScalarType) -> Register {
    match ty {
        ScalarType::F32 => w.f32(f32::NAN),
        ScalarType::I32 => w.i32(0),
        ScalarType::U32 => w.u32(0),
        ScalarType::Bool => w.constant(false),
    }
}
