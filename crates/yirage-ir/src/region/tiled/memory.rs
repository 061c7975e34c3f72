//! How much memory a block needs beside the node's inputs and outputs.

use super::flat::flat;
use super::{Accumulate, CONTINUED, Tiled};
use crate::dim::Dims;
use crate::expr::is_float;
use crate::graph::{Graph, Node, NodeKind, ValueId, ValueSource};
use crate::op::Op;

/// Bytes of a block at its fullest: the accumulators, with what a continued reduction has of each element, and the most
/// that live at one time of the tiles and values of the loop's body, or of the block's graph. Each value is counted dense
/// and whole in its own type, from where it is made to where it is read last; a view is counted as what it views. Of an
/// input that products alone read, as their right side, `piece` elements are counted at most, where there is such a number: the
/// target's products go through it in pieces and their sums wait. What a map makes in the place of an input ([`in_place`]) is not counted again.
///
/// `None` where that is no number.
pub fn block_bytes(body: &Graph, tiled: &Tiled, piece: Option<u64>) -> Option<u64> {
    let inside = &*flat(body);
    let values = inside.outputs.iter().zip(&tiled.accumulators);
    let mut accumulators = values.map(|(&id, how)| accumulator_bytes(inside, id, *how));
    let accumulators = accumulators.try_fold(0u64, |sum, bytes| sum.checked_add(bytes?))?;
    let after = reads(&flat(&tiled.block));
    let mut looped = reads(inside);
    for (&tile, of) in tiled.reads.iter().zip(after.iter().skip(tiled.accumulators.len())) {
        let of_loop = looped.get_mut(tile as usize)?;
        *of_loop = (*of_loop).max(*of);
    }
    let loops = peak(body, &looped, piece)?;
    // The accumulators are inputs of the block's graph, where they are counted in their own types.
    let after = peak(&tiled.block, &after, piece)?;
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
fn peak(graph: &Graph, reads: &[InputReads], piece: Option<u64>) -> Option<u64> {
    let root = roots(graph);
    // The last node that reads each root; outputs outlive all.
    let mut last = vec![0usize; graph.values.len()];
    for (n, node) in graph.nodes.iter().enumerate() {
        node.ins.iter().for_each(|i| last[root[i.index()].index()] = n);
    }
    graph.outputs.iter().for_each(|o| last[root[o.index()].index()] = graph.nodes.len());
    let bytes = |id: ValueId| {
        let ty = graph.ty(id);
        let whole = u64::try_from(ty.checked_bytes(&Dims::default())?).ok()?;
        let elems = u64::try_from(ty.checked_elems(&Dims::default())?).ok()?;
        let read = graph.inputs.iter().position(|i| *i == id).and_then(|at| reads.get(at));
        Some(match (read, piece) {
            (Some(InputReads::Pieces), Some(piece)) if elems > piece => whole / elems * piece,
            _ => whole,
        })
    };
    let mut live: u64 = 0;
    for &i in &graph.inputs {
        live = live.checked_add(bytes(i)?)?;
    }
    let mut most = live;
    let mut alive: Vec<ValueId> = graph.inputs.clone();
    for (n, node) in graph.nodes.iter().enumerate() {
        if let (Some(i), [o]) = (in_place(graph, n), &node.outs[..]) {
            alive.retain(|id| *id != i);
            alive.push(*o);
        } else {
            for &o in node.outs.iter().filter(|o| root[o.index()] == **o) {
                live = live.checked_add(bytes(o)?)?;
                alive.push(o);
            }
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

/// The input of node `n`, a map, in whose place it may write: a value of its type that is made in the same graph and that
/// nothing reads after it, through a view neither.
pub fn in_place(graph: &Graph, n: usize) -> Option<ValueId> {
    let node = &graph.nodes[n];
    let (NodeKind::Op(Op::Map(_)), [out]) = (&node.kind, &node.outs[..]) else { return None };
    let view = |node: &Node| matches!(node.kind, NodeKind::Op(Op::View(_)));
    let free = |id: ValueId| {
        let ValueSource::Node { node: maker, .. } = graph.value(id).source else { return false };
        let made = !view(&graph.nodes[maker as usize]) && !graph.outputs.contains(&id);
        let mut readers = graph.nodes.iter().enumerate().filter(|(_, node)| node.ins.contains(&id));
        made && graph.ty(id) == graph.ty(*out) && readers.all(|(at, node)| at <= n && !view(node))
    };
    node.ins.iter().copied().find(|&id| free(id))
}

/// What a graph reads of an input.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
enum InputReads {
    Nothing,
    /// What a product goes through, as its right side.
    Pieces,
    All,
}

/// What is read of each input.
fn reads(graph: &Graph) -> Vec<InputReads> {
    let (root, mut of) = (roots(graph), vec![InputReads::Nothing; graph.values.len()]);
    for node in graph.nodes.iter().filter(|node| !matches!(node.kind, NodeKind::Op(Op::View(_)))) {
        for (at, i) in node.ins.iter().enumerate() {
            let right = at == 1 && matches!(node.kind, NodeKind::Op(Op::Contract(_)));
            let read = &mut of[root[i.index()].index()];
            *read = if right && *read != InputReads::All { InputReads::Pieces } else { InputReads::All };
        }
    }
    graph.outputs.iter().for_each(|o| of[root[o.index()].index()] = InputReads::All);
    graph.inputs.iter().map(|i| of[i.index()]).collect()
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
