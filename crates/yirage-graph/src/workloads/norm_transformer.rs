//! The residual of a normalised transformer (Loshchilov et al., "nGPT", 2024), with the norms that Mirage writes.

use super::{Workload, WorkloadBuilder};
use crate::kernel_graph::GraphError;
use yirage_ir::ValueId;

pub(super) const WORKLOAD: Workload =
    Workload { name: "norm_transformer", about: "nTrans: a residual between two RMS norms, 8 rows of 4096", build };

fn build(making: &mut WorkloadBuilder) -> Result<ValueId, GraphError> {
    let width = making.size(4096, 32);
    let rows = making.batched(making.size(8, 4))?;
    let h = making.input("h", &[rows, width])?;
    let x = making.input("x", &[rows, width])?;
    let alpha = making.input("alpha", &[rows, width])?;
    let g = &mut making.graph;
    let h = g.rms_norm(h, &[width])?;
    let a = g.add(h, x)?;
    let b = g.mul(alpha, a)?;
    let c = g.add(x, b)?;
    g.rms_norm(c, &[width])
}
