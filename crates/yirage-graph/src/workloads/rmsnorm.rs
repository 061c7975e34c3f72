//! A root-mean-square norm and the product that reads it, as before the projections of attention.

use super::{Workload, WorkloadBuilder};
use crate::kernel_graph::GraphError;
use yirage_ir::ValueId;

pub(super) const WORKLOAD: Workload =
    Workload { name: "rmsnorm", about: "RMS norm of 2 rows of 4096, and a product to 6144", build };

fn build(making: &mut WorkloadBuilder) -> Result<ValueId, GraphError> {
    let (width, out) = (making.size(4096, 32), making.size(6144, 48));
    let rows = making.batched(2)?;
    let x = making.input("x", &[rows, width])?;
    let w = making.weight("w", &[width, out])?;
    let d = making.graph.rms_norm(x, &[width])?;
    making.graph.matmul(d, w)
}
