//! Multi-head attention: 32 heads with keys of their own.

use super::unshifted::{AttentionSizes, attention, inputs};
use super::{Workload, WorkloadBuilder};
use crate::kernel_graph::GraphError;
use yirage_ir::ValueId;

pub(super) const WORKLOAD: Workload = Workload {
    name: "multi_head_attention",
    about: "attention of 32 heads, 16 queries each, over 4096 positions",
    build,
};

fn build(making: &mut WorkloadBuilder) -> Result<ValueId, GraphError> {
    let heads = making.batched(making.size(32, 4))?;
    let sizes =
        AttentionSizes { heads, queries: making.size(16, 4), dim: making.size(64, 8), keys: making.size(4096, 32) };
    let qkv = inputs(making, sizes)?;
    attention(making, qkv)
}
