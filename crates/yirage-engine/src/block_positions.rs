//! How many positions a block of a model's caches has: what its graph says.

use crate::limits::BLOCK;
use yirage_ir::{Dim, NodeKind, Op, ValueSource};
use yirage_model::arch::Model;

/// Positions of a block of a model's caches: those of its keys and values, or those that a block of its recurrent states
/// stands for.
pub(crate) fn block_positions(model: &Model) -> usize {
    let graph = &model.graph;
    let of_keys = |id| match graph.ty(id).shape[..] {
        [Dim::Const(positions), _, _] => Some(positions),
        _ => None,
    };
    let of_states =
        || graph.nodes.iter().find_map(|node| if let NodeKind::Op(op) = &node.kind { states_of(op) } else { None });
    let positions = graph.inputs_of(ValueSource::KvCache).find_map(of_keys).or_else(of_states);
    positions.map_or(BLOCK, |positions| positions.max(1) as usize)
}

/// Positions that a block of an op's recurrent state stands for.
fn states_of(op: &Op) -> Option<u32> {
    match op {
        Op::CausalConv1d(op) => Some(op.block_positions),
        Op::SsmScan(op) => Some(op.block_positions),
        Op::GatedDelta(op) => Some(op.block_positions),
        _ => None,
    }
}
