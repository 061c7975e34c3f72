//! Group-query attention with normalised queries and values, which the benchmark takes from Chameleon (Meta, 2024).

use super::unshifted::{AttentionSizes, attention, inputs};
use super::{Workload, WorkloadBuilder};
use crate::kernel_graph::GraphError;
use yirage_ir::ValueId;

pub(super) const WORKLOAD: Workload = Workload {
    name: "qknorm_gqa",
    about: "attention of 2 key heads with norms, 256 queries each, over 4096 positions",
    build,
};

fn build(making: &mut WorkloadBuilder) -> Result<ValueId, GraphError> {
    let dim = making.size(64, 8);
    let sizes =
        AttentionSizes { heads: making.batched(2)?, queries: making.size(256, 8), dim, keys: making.size(4096, 32) };
    let [q, k, v] = inputs(making, sizes)?;
    let q = making.graph.rms_norm(q, &[dim])?;
    let v = making.graph.rms_norm(v, &[dim])?;
    attention(making, [q, k, v])
}
