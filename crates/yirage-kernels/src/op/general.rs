//! Named ops that run as their general form: one kernel after the other, what lies between them in the node's workspace.
//!
//! Maps and views are computed where they are read; whatever else a general form makes is written out. Where strides cannot
//! say what a view sees, each node is written out by itself.

use super::inner::parts_of_nodes;
use super::{CHAINS, NodePart, NodeView};
use crate::workspace::Workspace;
use std::collections::{BTreeSet, HashMap};
use yirage_hal::HalError;
use yirage_ir::region::FusedChain;
use yirage_ir::{Graph, GraphBuilder, Node, NodeKind, Op, Region, RegionKind, Type, ValueId, ValueSource};

/// Ops that have a general form for plain operands, and no kernel of their own.
pub(crate) const OPS: &[&str] = &["rms_norm", "layer_norm", "softmax", "concat_heads", "matmul", "rope", "hadamard"];

/// The parts of an op by its general form.
pub(crate) fn parts(view: &NodeView<'_>, op: &Op, workspace: &mut Workspace) -> Result<Vec<NodePart>, HalError> {
    let ins: Vec<Type> = (0..view.ins.len()).map(|at| input_type(view, at)).collect();
    let none = |why: String| HalError::Load(format!("no kernel runs `{}`: {why}", op.name()));
    let form = op.lower(&ins).map_err(|why| none(why.to_string()))?;
    let pieces = pieces(&form).map_err(none)?;
    parts_of_nodes(view, &form, &pieces, workspace)
}

/// The type that a form's input has: a weight is dense where a kernel reads it.
fn input_type(view: &NodeView<'_>, at: usize) -> Type {
    let weight = view.graph.value(view.node.ins[at]).source == ValueSource::Weight;
    if weight { view.input(at).dense() } else { view.input(at).clone() }
}

/// The nodes that a form is run by: chains, and ops that are none.
fn pieces(form: &Graph) -> Result<Vec<Node>, String> {
    let fused = written_out(form);
    let pieces = fused.iter().map(|&id| piece(form, id, &fused)).collect::<Result<Vec<_>, _>>();
    pieces.or_else(|_| {
        let each: BTreeSet<ValueId> = form.nodes.iter().flat_map(|node| node.outs.iter().copied()).collect();
        each.iter().map(|&id| piece(form, id, &each)).collect()
    })
}

fn is_inline(node: &Node) -> bool {
    matches!(node.kind, NodeKind::Op(Op::Map(_) | Op::View(_)))
}

fn is_chain(node: &Node) -> bool {
    CHAINS.contains(&node.name())
}

/// The values that are written to memory, in the order in which they are made.
fn written_out(form: &Graph) -> BTreeSet<ValueId> {
    let made = form.nodes.iter().filter(|node| !is_inline(node)).flat_map(|node| &node.outs);
    let read = form.nodes.iter().filter(|node| !is_chain(node)).flat_map(|node| &node.ins);
    let all = made.chain(read).chain(&form.outputs).copied();
    all.filter(|&id| matches!(form.value(id).source, ValueSource::Node { .. })).collect()
}

fn producer(form: &Graph, id: ValueId) -> Option<&Node> {
    let ValueSource::Node { node, .. } = form.value(id).source else { return None };
    form.nodes.get(node as usize)
}

/// The node that makes a value of others that are written out: a chain, or the op itself.
fn piece(form: &Graph, id: ValueId, written: &BTreeSet<ValueId>) -> Result<Node, String> {
    let node = producer(form, id).ok_or("an input is no piece")?;
    if !is_chain(node) {
        return Ok(node.clone());
    }
    let mut chain = GraphBuilder::new("piece");
    let mut known = HashMap::new();
    let mut ins = Vec::new();
    let out = copy(form, id, id, written, &mut chain, &mut known, &mut ins)?;
    chain.output(out);
    let graph = chain.finish();
    FusedChain::of(&graph)?;
    Ok(Node { kind: NodeKind::Region(Box::new(Region::new(RegionKind::Chain, graph))), ins, outs: vec![id] })
}

/// Copies what makes `id` into a chain that makes `root`, down to what is written out.
fn copy(
    form: &Graph,
    id: ValueId,
    root: ValueId,
    written: &BTreeSet<ValueId>,
    chain: &mut GraphBuilder,
    known: &mut HashMap<ValueId, ValueId>,
    ins: &mut Vec<ValueId>,
) -> Result<ValueId, String> {
    if let Some(&copied) = known.get(&id) {
        return Ok(copied);
    }
    let node = producer(form, id).filter(|_| id == root || !written.contains(&id));
    let copied = match node {
        None => {
            ins.push(id);
            chain.step_input(&format!("x{}", ins.len()), form.ty(id).clone()).map_err(|e| e.to_string())?
        }
        Some(node) => {
            let of = |&id: &ValueId| copy(form, id, root, written, chain, known, ins);
            let operands = node.ins.iter().map(of).collect::<Result<Vec<_>, _>>()?;
            let names = vec![format!("y{}", id.index())];
            let made = chain.node(node.kind.clone(), &operands, &names).map_err(|e| e.to_string())?;
            made.first().copied().ok_or("a node makes nothing")?
        }
    };
    known.insert(id, copied);
    Ok(copied)
}
