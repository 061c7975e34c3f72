//! The gate of a feed-forward layer: two products of one input, one of them through SiLU (Shazeer, 2020).

use super::{Workload, WorkloadBuilder};
use crate::kernel_graph::GraphError;
use yirage_ir::ValueId;

pub(super) const WORKLOAD: Workload = Workload {
    name: "gated_mlp",
    about: "8 rows of 4096 by two matrices of 4096 x 4096, silu of one times the other",
    build,
};

fn build(making: &mut WorkloadBuilder) -> Result<ValueId, GraphError> {
    let (width, out) = (making.size(4096, 32), making.size(4096, 48));
    let rows = making.batched(making.size(8, 4))?;
    let x = making.input("x", &[rows, width])?;
    let w1 = making.weight("w1", &[width, out])?;
    let w2 = making.weight("w2", &[width, out])?;
    let g = &mut making.graph;
    let o1 = g.matmul(x, w1)?;
    let o2 = g.matmul(x, w2)?;
    let o1 = g.silu(o1)?;
    g.mul(o1, o2)
}
