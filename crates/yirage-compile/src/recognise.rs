//! General subgraphs that are a named op become it, so that its own kernels run them: softmax, norms, products with a
//! weight or of rows, look-ups in a table.
//!
//! What a named op is, its [`lower`](Op::lower) says; here it is only guessed, from the last node of a subgraph, and
//! then compared with what is there, node by node. So a form that is nearly an op stays as it is. Nothing is recognised
//! whose insides something else reads, or the graph gives back.
//!
//! The choice depends on the graph alone, not on a bucket, a precision or fusion: one graph has one meaning to the bit.
//! The weight plan is made of the recognised graph too. A named op adds in the order of its general form, which is a
//! function of the number of elements.

mod guess;

use crate::Options;
use crate::error::CompileError;
use crate::readers::Readers;
use crate::rebuild::Rebuild;
use std::collections::HashMap;
use yirage_ir::{Graph, NodeKind, Op, Source, ValueId};
use yirage_plan::Target;

pub(crate) fn run(graph: &Graph, _: &Target, _: &Options) -> Result<Graph, CompileError> {
    recognised(graph)
}

/// The graph with named ops where it has their general forms.
pub(crate) fn recognised(graph: &Graph) -> Result<Graph, CompileError> {
    let readers = Readers::of(graph);
    let mut named: Vec<Option<Found>> = graph.nodes.iter().map(|_| None).collect();
    let mut inside = vec![false; graph.nodes.len()];
    // From the last node on, so that the largest form is found first.
    for n in (0..graph.nodes.len()).rev().filter(|&n| matches!(graph.nodes[n].kind, NodeKind::Op(_))) {
        if inside[n] {
            continue;
        }
        if let Some(found) = find(graph, &readers, n) {
            found.nodes.iter().filter(|&&m| m != n).for_each(|&m| inside[m] = true);
            named[n] = Some(found);
        }
    }
    if named.iter().all(Option::is_none) {
        return Ok(graph.clone());
    }
    let mut r = Rebuild::new(graph, |_| true)?;
    for (n, node) in graph.nodes.iter().enumerate().filter(|(n, _)| !inside[*n]) {
        let Some(found) = named[n].take() else {
            let ins: Vec<ValueId> = node.ins.iter().map(|&i| r.get(i)).collect();
            r.copy(n, &ins)?;
            continue;
        };
        let ins: Vec<ValueId> = found.ins.iter().map(|&i| r.get(i)).collect();
        let name = graph.value(node.outs[0]).name.clone();
        let made = r.add(NodeKind::Op(found.op), &ins, &[name])?;
        r.bind(node.outs[0], made[0]);
    }
    Ok(r.finish())
}

/// A named op that stands in the graph in its general form.
struct Found {
    op: Op,
    ins: Vec<ValueId>,
    /// The nodes it is made of.
    nodes: Vec<usize>,
}

fn find(graph: &Graph, readers: &Readers, n: usize) -> Option<Found> {
    let found = |guess: guess::Guess| {
        guess.op.infer(&guess.types).ok()?;
        let form = guess.op.lower(&guess.types).ok()?;
        let (ins, nodes) = same(&form, graph, graph.nodes[n].outs[0])?;
        Some(Found { op: guess.op, ins, nodes })
    };
    let mut all = guess::of(graph, n).into_iter().filter_map(found);
    all.find(|found| closed(graph, readers, n, found) && weights_stay(graph, readers, found))
}

/// What the inputs of `form` are in `graph`, and the nodes that are the form's, if the value `root` is made as the
/// form's output is.
fn same(form: &Graph, graph: &Graph, root: ValueId) -> Option<(Vec<ValueId>, Vec<usize>)> {
    let mut is: HashMap<ValueId, ValueId> = HashMap::new();
    let mut open = vec![(form.outputs[0], root)];
    let mut nodes = Vec::new();
    while let Some((f, g)) = open.pop() {
        if let Some(&known) = is.get(&f) {
            if known != g {
                return None;
            }
            continue;
        }
        is.insert(f, g);
        let Source::Node { node: from, .. } = form.value(f).source else {
            if form.ty(f) != &graph.ty(g).dense() {
                return None;
            }
            continue;
        };
        let Source::Node { node: to, .. } = graph.value(g).source else { return None };
        let (wanted, there) = (&form.nodes[from as usize], &graph.nodes[to as usize]);
        if wanted.kind != there.kind || wanted.ins.len() != there.ins.len() {
            return None;
        }
        nodes.push(to as usize);
        open.extend(wanted.ins.iter().copied().zip(there.ins.iter().copied()));
    }
    let ins = form.inputs.iter().map(|i| is.get(i).copied()).collect::<Option<Vec<_>>>()?;
    Some((ins, nodes))
}

/// Whether nothing but the form reads what is made inside of it.
fn closed(graph: &Graph, readers: &Readers, n: usize, found: &Found) -> bool {
    let hidden = |id: ValueId| !readers.is_output(id) && readers.all(id).iter().all(|r| found.nodes.contains(r));
    found.nodes.iter().filter(|&&m| m != n).all(|&m| graph.nodes[m].outs.iter().all(|&o| hidden(o)))
}

/// A product's weight is packed when it is loaded, which the ops that read it as it lies do not know.
fn weights_stay(graph: &Graph, readers: &Readers, found: &Found) -> bool {
    let is_weight = |id: ValueId| graph.value(id).source == Source::Weight;
    // A product may read a weight as what it multiplies, too.
    let packed = |n: usize, id: ValueId| match &graph.nodes[n].kind {
        NodeKind::Op(Op::Linear(_)) => graph.nodes[n].ins[0] != id,
        NodeKind::Op(Op::Embed(_)) => graph.nodes[n].ins[0] == id,
        _ => false,
    };
    let alone = |id: ValueId| readers.all(id).iter().all(|&r| found.nodes.contains(&r) || packed(r, id));
    match found.op {
        Op::Linear(_) => is_weight(found.ins[1]) && alone(found.ins[1]) && !is_weight(found.ins[0]),
        Op::Embed(_) => is_weight(found.ins[0]) && alone(found.ins[0]),
        _ => true,
    }
}
