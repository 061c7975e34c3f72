//! A product with a product of low rank beside it (Hu et al., "LoRA", 2021).

use super::{Workload, WorkloadBuilder};
use crate::kernel_graph::GraphError;
use yirage_ir::ValueId;

pub(super) const WORKLOAD: Workload =
    Workload { name: "lora", about: "16 rows of 256 by 4096, and an adapter of rank 16 beside it", build };

fn build(making: &mut WorkloadBuilder) -> Result<ValueId, GraphError> {
    let (width, out, rank) = (making.size(256, 32), making.size(4096, 48), making.size(16, 4));
    let rows = making.batched(making.size(16, 4))?;
    let x = making.input("x", &[rows, width])?;
    let w = making.weight("w", &[width, out])?;
    let a = making.weight("a", &[width, rank])?;
    let b = making.weight("b", &[rank, out])?;
    let g = &mut making.graph;
    let d = g.matmul(x, a)?;
    let e = g.matmul(d, b)?;
    let c = g.matmul(x, w)?;
    g.add(c, e)
}
