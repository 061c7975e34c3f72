//! How much memory a block needs beside the node's inputs and outputs.

use super::flat::flat;
use super::{Accumulate, CONTINUED, Tiled};
use crate::dim::Dims;
use crate::expr::is_float;
use crate::graph::{Graph, NodeKind, ValueId};
use crate::op::Op;

/// Bytes of a block at its fullest: the accumulators, with what a continued reduction has of each element, and the most
/// that live at one time of the tiles and values of the loop's body, or of the block's graph. Each value is counted dense
/// and whole in its own type, from where it is made to where it is read last; a view is counted as what it views.
///
/// `None` where that is no number.
pub fn block_bytes(body: &Graph, tiled: &Tiled) -> Option<u64> {
    let inside = &*flat(body);
    let values = inside.outputs.iter().zip(&tiled.accumulators);
    let mut accumulators = values.map(|(&id, how)| accumulator_bytes(inside, id, *how));
    let accumulators = accumulators.try_fold(0u64, |sum, bytes| sum.checked_add(bytes?))?;
    let loops = peak(body)?;
    // The accumulators are inputs of the block's graph, where they are counted in their own types.
    let after = peak(&tiled.block)?;
    accumulators.checked_add(loops.max(after))
}

fn accumulator_bytes(body: &Graph, id: ValueId, how: Accumulate) -> Option<u64> {
    let ty = body.ty(id);
    let elems = u64::try_from(ty.checked_elems(&Dims::default())?).ok()?;
    let reduced = body.nodes.iter().any(|n| n.outs.contains(&id) && matches!(&n.kind, NodeKind::Op(Op::Reduce(_))));
    let held = if how == Accumulate::Continue && reduced && is_float(ty.dtype) { CONTINUED as u64 } else { 1 };
    elems.checked_mul(4)?.checked_mul(held)
}

/// The most bytes that live at one time.
fn peak(graph: &Graph) -> Option<u64> {
    let root = roots(graph);
    // The last node that reads each root; outputs outlive all.
    let mut last = vec![0usize; graph.values.len()];
    for (n, node) in graph.nodes.iter().enumerate() {
        node.ins.iter().for_each(|i| last[root[i.index()].index()] = n);
    }
    graph.outputs.iter().for_each(|o| last[root[o.index()].index()] = graph.nodes.len());
    let bytes = |id: ValueId| u64::try_from(graph.ty(id).checked_bytes(&Dims::default())?).ok();
    let mut live: u64 = 0;
    for &i in &graph.inputs {
        live = live.checked_add(bytes(i)?)?;
    }
    let mut most = live;
    let mut alive: Vec<ValueId> = graph.inputs.clone();
    for (n, node) in graph.nodes.iter().enumerate() {
        for &o in node.outs.iter().filter(|o| root[o.index()] == **o) {
            live = live.checked_add(bytes(o)?)?;
            alive.push(o);
        }
        most = most.max(live);
        let mut kept = Vec::with_capacity(alive.len());
        for id in alive {
            if last[id.index()] > n { kept.push(id) } else { live -= bytes(id)? }
        }
        alive = kept;
    }
    Some(most)
}

/// The value whose elements each value is: itself, or what it views.
fn roots(graph: &Graph) -> Vec<ValueId> {
    let mut root: Vec<ValueId> = (0..graph.values.len() as u32).map(ValueId).collect();
    for node in &graph.nodes {
        if let (NodeKind::Op(Op::View(_)), [x], [out]) = (&node.kind, &node.ins[..], &node.outs[..]) {
            root[out.index()] = root[x.index()];
        }
    }
    root
}
