//! `concat`: a thread makes a word of the output, of whichever inputs its elements come from.

use super::output_words::words;
use super::{NodeView, OpKernels, plain_operands};
use crate::elements::{Elements, computed_as};
use crate::node_kernel::NodeKernel;
use crate::strided_index::{element, fixed};
use yirage_hal::HalError;
use yirage_ir::Strided;
use yirage_ir::op::{Concat, OpDef};
use yirage_kir::{KernelWriter, Register, ScalarType};
use yirage_plan::rules::OpRule;

pub(crate) const KERNELS: OpKernels =
    OpKernels { op: Concat::NAME, rules: || vec![OpRule::new(Concat::NAME, vec![plain_operands()])], lower };

/// An input, and where it begins along the joined dimension.
struct JoinedPart {
    elements: Elements,
    places: Strided,
    first: u32,
    end: u32,
}

fn lower(view: &NodeView<'_>) -> Result<Vec<NodeKernel>, HalError> {
    let axis = view.op::<Concat>()?.axis as usize;
    let kernel = words(&view.site, "concat", &view.dense_output(0)?, view.outs[0], |scope| {
        let (mut parts, mut end) = (Vec::new(), 0);
        for at in 0..view.ins.len() {
            let (places, first) = (view.places(at)?, end);
            end += fixed(places.shape[axis])?;
            // Nothing is read of an input of no size.
            if end > first {
                parts.push(JoinedPart { elements: scope.read(view.ins[at]), places, first, end });
            }
        }
        let ty = computed_as(view.output(0).dtype);
        Ok(move |w: &mut KernelWriter, coordinates: &[Register]| {
            let none = match ty {
                ScalarType::F32 => w.f32(0.0),
                ScalarType::I32 => w.i32(0),
                ScalarType::U32 => w.u32(0),
                ScalarType::Bool => w.constant(false),
            };
            let made = w.variable(none);
            for part in &parts {
                let (first, end) = (w.u32(part.first), w.u32(part.end));
                let (behind, before) = (w.less_equal(first, coordinates[axis]), w.less(coordinates[axis], end));
                let inside = w.and(behind, before);
                w.when(inside, |w| {
                    let mut own = coordinates.to_vec();
                    own[axis] = w.sub(coordinates[axis], first);
                    let at = element(w, &part.places, &own);
                    let x = part.elements.load(w, at);
                    w.set(made, x);
                });
            }
            w.get(made)
        })
    })?;
    Ok(vec![kernel])
}
