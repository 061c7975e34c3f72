//! Whether a graph's keys have a bias, which decides how well they can be kept in few bits.

use yirage_ir::expr::Func;
use yirage_ir::op::Map;
use yirage_ir::{Graph, NodeKind, Op, ValueId};

/// Whether keys are appended to a cache that are a product plus a bias, possibly rotated.
pub(super) fn biased_keys(graph: &Graph) -> bool {
    let made_by = |id| graph.nodes.iter().find(|n| n.outs.contains(&id));
    let biased = |mut id: ValueId| {
        while let Some(node) = made_by(id) {
            match &node.kind {
                NodeKind::Op(Op::Rope(_) | Op::Hadamard(_)) => id = node.ins[0],
                NodeKind::Op(Op::Map(map)) => {
                    return *map == Map::of(Func::Add) && graph.ty(node.ins[1]).shape.len() == 1;
                }
                _ => return false,
            }
        }
        false
    };
    graph.nodes.iter().any(|n| matches!(n.kind, NodeKind::Op(Op::KvAppend(_))) && biased(n.ins[1]))
}
