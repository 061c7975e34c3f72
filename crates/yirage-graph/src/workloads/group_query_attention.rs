//! Group-query attention: the queries of each group stand together, as rows over one key head.

use super::unshifted::{AttentionSizes, attention, inputs};
use super::{Workload, WorkloadBuilder};
use crate::kernel_graph::GraphError;
use yirage_ir::ValueId;

pub(super) const WORKLOAD: Workload = Workload {
    name: "group_query_attention",
    about: "attention of 2 key heads, 256 queries each, over 4096 positions",
    build,
};

fn build(making: &mut WorkloadBuilder) -> Result<ValueId, GraphError> {
    let heads = making.batched(2)?;
    let sizes =
        AttentionSizes { heads, queries: making.size(256, 8), dim: making.size(64, 8), keys: making.size(4096, 32) };
    let qkv = inputs(making, sizes)?;
    attention(making, qkv)
}
