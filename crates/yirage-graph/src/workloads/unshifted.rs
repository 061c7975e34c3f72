//! Attention as Mirage's benchmarks write it: a softmax without the shift by the largest score, and no scale.

use super::WorkloadBuilder;
use crate::kernel_graph::GraphError;
use yirage_ir::ValueId;

/// Sizes of queries `[heads, queries, dim]`, keys `[heads, dim, keys]` and values `[heads, keys, dim]`.
#[derive(Clone, Copy)]
pub(super) struct AttentionSizes {
    pub(super) heads: u32,
    pub(super) queries: u32,
    pub(super) dim: u32,
    pub(super) keys: u32,
}

/// Queries, keys and values, which change with each call.
pub(super) fn inputs(making: &mut WorkloadBuilder, sizes: AttentionSizes) -> Result<[ValueId; 3], GraphError> {
    let AttentionSizes { heads, queries, dim, keys } = sizes;
    let q = making.input("q", &[heads, queries, dim])?;
    let k = making.input("k", &[heads, dim, keys])?;
    let v = making.input("v", &[heads, keys, dim])?;
    Ok([q, k, v])
}

/// `exp(q k) / sum exp(q k) v`.
pub(super) fn attention(making: &mut WorkloadBuilder, [q, k, v]: [ValueId; 3]) -> Result<ValueId, GraphError> {
    let g = &mut making.graph;
    let scores = g.matmul(q, k)?;
    let e = g.exp(scores)?;
    let sum = g.reduction(e, 2)?;
    let d = g.div(e, sum)?;
    g.matmul(d, v)
}
