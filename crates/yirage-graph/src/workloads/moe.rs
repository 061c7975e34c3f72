//! Two products of each of eight experts, every one of which has rows of its own.

use super::{Workload, WorkloadBuilder};
use crate::kernel_graph::GraphError;
use yirage_ir::ValueId;

pub(super) const WORKLOAD: Workload =
    Workload { name: "moe", about: "8 experts of 8 rows: two products of 4096 x 4096 with exp between", build };

fn build(making: &mut WorkloadBuilder) -> Result<ValueId, GraphError> {
    let (experts, width) = (making.size(8, 3), making.size(4096, 32));
    let rows = making.batched(making.size(8, 4))?;
    let x = making.input("x", &[experts, rows, width])?;
    let a = making.weight("a", &[experts, width, width])?;
    let b = making.weight("b", &[experts, width, width])?;
    let g = &mut making.graph;
    let d = g.matmul(x, a)?;
    let e = g.exp(d)?;
    g.matmul(e, b)
}
