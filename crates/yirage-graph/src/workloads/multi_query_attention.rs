//! Multi-query attention: the queries of all heads stand together, as rows over the only key head.

use super::unshifted::{AttentionSizes, attention, inputs};
use super::{Workload, WorkloadBuilder};
use crate::kernel_graph::GraphError;
use yirage_ir::ValueId;

pub(super) const WORKLOAD: Workload = Workload {
    name: "multi_query_attention",
    about: "attention of 1 key head, 1024 queries, over 4096 positions",
    build,
};

fn build(making: &mut WorkloadBuilder) -> Result<ValueId, GraphError> {
    let heads = making.batched(1)?;
    let sizes =
        AttentionSizes { heads, queries: making.size(1024, 16), dim: making.size(64, 8), keys: making.size(4096, 32) };
    let qkv = inputs(making, sizes)?;
    attention(making, qkv)
}
