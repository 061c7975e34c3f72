//! `fill`: one value again and again.

use super::output_words::words;
use super::{NodeView, OpKernels};
use crate::expression::constant;
use crate::node_kernel::NodeKernel;
use yirage_hal::HalError;
use yirage_ir::op::{Fill, OpDef};
use yirage_kir::{KernelWriter, Register};
use yirage_plan::rules::OpRule;

pub(crate) const KERNELS: OpKernels =
    OpKernels { op: Fill::NAME, rules: || vec![OpRule::new(Fill::NAME, Vec::new())], lower };

fn lower(view: &NodeView<'_>) -> Result<Vec<NodeKernel>, HalError> {
    let value = view.op::<Fill>()?.value;
    let kernel = words(&view.site, "fill", &view.dense_output(0)?, view.outs[0], |_| {
        Ok(move |w: &mut KernelWriter, _: &[Register]| constant(w, value))
    })?;
    Ok(vec![kernel])
}
