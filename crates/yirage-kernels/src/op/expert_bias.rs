//! `expert_bias`: what the experts of a token add to their parts of its row. An expert that is none adds nothing, and one that
//! does not exist gives NaN.

use super::chosen_expert::ChosenExpert;
use super::output_words::words;
use super::{NodeView, OpKernels, float_operands, integer_operands};
use crate::node_kernel::NodeKernel;
use crate::strided_index::fixed;
use yirage_hal::HalError;
use yirage_ir::Format;
use yirage_ir::op::{ExpertBias, OpDef};
use yirage_kir::{KernelWriter, Register};
use yirage_plan::WeightLayout;
use yirage_plan::rules::{OpRule, OperandConstraint, OperandKind};

pub(crate) const KERNELS: OpKernels = OpKernels { op: ExpertBias::NAME, rules, lower };

fn rules() -> Vec<OpRule> {
    let floats = [Format::F32, Format::F16, Format::BF16];
    let bias = vec![OperandConstraint::new(OperandKind::Weight(WeightLayout::ROWS), floats)];
    vec![OpRule::new(ExpertBias::NAME, vec![float_operands(), bias, integer_operands()])]
}

fn lower(view: &NodeView<'_>) -> Result<Vec<NodeKernel>, HalError> {
    let &[experts, n] = &view.input(1).shape[..] else {
        return Err(HalError::Load(format!("biases of experts are {}: a matrix wanted", view.input(1))));
    };
    let (experts, n, top_k) = (fixed(experts)?, fixed(n)?, view.op::<ExpertBias>()?.top_k);
    let kernel = words(&view.site, ExpertBias::NAME, &view.dense_output(0)?, view.outs[0], |scope| {
        let (x, bias, chosen) = (scope.read(view.ins[0]), scope.read(view.ins[1]), scope.read(view.ins[2]));
        Ok(move |w: &mut KernelWriter, coordinates: &[Register]| {
            let (row, column) = (coordinates[0], coordinates[1]);
            let (n, top_k) = (w.u32(n), w.u32(top_k));
            let (part, inside) = (w.div(column, n), w.rem(column, n));
            let before = w.mul(row, top_k);
            let at = w.add(before, part);
            let expert = ChosenExpert::load(w, chosen, at, experts);
            let missing = expert.missing(w);
            let added = w.variable(missing);
            w.when(expert.is_there, |w| {
                let first = w.mul(expert.number, n);
                let at = w.add(first, inside);
                let value = bias.load(w, at);
                w.set(added, value);
            });
            let width = w.mul(n, top_k);
            let first = w.mul(row, width);
            let at = w.add(first, column);
            let (value, added) = (x.load(w, at), w.get(added));
            w.add(value, added)
        })
    })?;
    Ok(vec![kernel])
}
