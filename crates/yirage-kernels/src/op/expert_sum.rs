//! `expert_sum`: the parts of a token, each times its weight, added in rank order.

use super::output_words::words;
use super::{NodeView, OpKernels, float_operands};
use crate::node_kernel::NodeKernel;
use crate::strided_index::fixed;
use yirage_hal::HalError;
use yirage_ir::op::{ExpertSum, OpDef};
use yirage_kir::{KernelWriter, Register};
use yirage_plan::rules::OpRule;

pub(crate) const KERNELS: OpKernels =
    OpKernels { op: ExpertSum::NAME, rules: || vec![OpRule::new(ExpertSum::NAME, vec![float_operands()])], lower };

fn lower(view: &NodeView<'_>) -> Result<Vec<NodeKernel>, HalError> {
    let places = view.dense_output(0)?;
    let (n, top_k) = (fixed(places.shape[1])?, view.op::<ExpertSum>()?.top_k);
    let kernel = words(&view.site, ExpertSum::NAME, &places, view.outs[0], |scope| {
        let (x, weights) = (scope.read(view.ins[0]), scope.read(view.ins[1]));
        Ok(move |w: &mut KernelWriter, coordinates: &[Register]| {
            let (zero, none, one, n, top_k) = (w.f32(0.0), w.u32(0), w.u32(1), w.u32(n), w.u32(top_k));
            let sum = w.variable(zero);
            let first = w.mul(coordinates[0], top_k);
            w.for_each(none, top_k, one, |w, rank| {
                let part = w.add(first, rank);
                let before = w.mul(part, n);
                let at = w.add(before, coordinates[1]);
                let (value, weight) = (x.load(w, at), weights.load(w, part));
                let (product, so_far) = (w.mul(value, weight), w.get(sum));
                let next = w.add(so_far, product);
                w.set(sum, next);
            });
            w.get(sum)
        })
    })?;
    Ok(vec![kernel])
}
