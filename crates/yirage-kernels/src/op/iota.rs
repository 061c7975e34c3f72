//! `iota`: each element is its index along a dimension.

use super::output_words::words;
use super::{NodeView, OpKernels};
use crate::node_kernel::NodeKernel;
use yirage_hal::HalError;
use yirage_ir::op::{Iota, OpDef};
use yirage_kir::{KernelWriter, Register, ScalarType};
use yirage_plan::rules::OpRule;

pub(crate) const KERNELS: OpKernels =
    OpKernels { op: Iota::NAME, rules: || vec![OpRule::new(Iota::NAME, Vec::new())], lower };

fn lower(view: &NodeView<'_>) -> Result<Vec<NodeKernel>, HalError> {
    let axis = view.op::<Iota>()?.axis as usize;
    let kernel = words(&view.site, "iota", &view.dense_output(0)?, view.outs[0], |_| {
        Ok(move |w: &mut KernelWriter, coordinates: &[Register]| w.bitcast(ScalarType::I32, coordinates[axis]))
    })?;
    Ok(vec![kernel])
}
