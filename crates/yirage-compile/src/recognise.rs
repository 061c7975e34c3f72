//! General subgraphs that are a named op become it, so that its own kernels run them: softmax, norms, products with a
//! weight or of rows, look-ups in a table, rotations.
//!
//! What a named op is, its [`lower`](Op::lower) says; here it is only guessed, from the last node of a subgraph, and
//! then compared with what is there, node by node. So a form that is nearly an op stays as it is. Nothing is recognised
//! whose insides something else reads, or the graph gives back.
//!
//! The choice depends on the graph alone, not on a bucket, a precision or fusion: one graph has one meaning to the bit.
//! The weight plan is made of the recognised graph too. A named op adds in the order of its general form, which is a
//! function of the number of elements.

mod guess;

use crate::CompileOptions;
use crate::decision::{Decision, Decisions};
use crate::error::CompileError;
use crate::names;
use crate::readers::ValueUses;
use crate::rebuild::Rebuild;
use std::collections::HashMap;
use yirage_ir::{DType, Format, Graph, NodeKind, Op, ValueId, ValueSource};
use yirage_plan::Target;

pub(crate) fn run(
    graph: &Graph,
    _: &Target,
    _: &CompileOptions,
    decisions: &mut Decisions,
) -> Result<Graph, CompileError> {
    recognised(graph, decisions)
}

/// The graph with named ops where it has their general forms.
///
/// # Errors
/// What the rewritten graph does not hold together by: a bug of the compiler, with its facts.
pub fn recognised(graph: &Graph, decisions: &mut Decisions) -> Result<Graph, CompileError> {
    let readers = ValueUses::of(graph);
    let mut named: Vec<Option<RecognisedOp>> = graph.nodes.iter().map(|_| None).collect();
    let mut inside = vec![false; graph.nodes.len()];
    // From the last node on, so that the largest form is found first.
    for n in (0..graph.nodes.len()).rev().filter(|&n| matches!(graph.nodes[n].kind, NodeKind::Op(_))) {
        if inside[n] {
            continue;
        }
        if let Some(found) = find(graph, &readers, n, decisions) {
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
struct RecognisedOp {
    op: Op,
    ins: Vec<ValueId>,
    /// The nodes it is made of.
    nodes: Vec<usize>,
}

/// Where a form and the graph differ.
struct FormMismatch {
    /// Nodes that were the same before.
    same: usize,
    /// The value of the form.
    form: ValueId,
    /// The value of the graph that would be it.
    graph: ValueId,
}

/// Why a form that is there is kept as it is.
enum FormRefusal {
    /// Others want this value too.
    Wanted(ValueId),
    /// This input would have to be a weight.
    NoWeight(ValueId),
    /// This input would have to be none.
    Weight(ValueId),
    /// This input would have to be f32.
    Narrow(ValueId),
}

fn find(graph: &Graph, readers: &ValueUses, n: usize, decisions: &mut Decisions) -> Option<RecognisedOp> {
    let mut refused: Vec<Decision> = Vec::new();
    let mut near: Option<(usize, Decision)> = None;
    for guess in guess::of(graph, n).into_iter().filter(|guess| guess.op.infer(&guess.types).is_ok()) {
        let Ok(form) = guess.op.lower(&guess.types) else { continue };
        match same(&form, graph, graph.nodes[n].outs[0]) {
            Ok((ins, nodes)) => {
                let found = RecognisedOp { op: guess.op, ins, nodes };
                let stays = closed(graph, readers, n, &found).and_then(|()| inputs_fit(graph, readers, &found));
                match stays {
                    Ok(()) => {
                        decisions.tell(|| found.decision(graph));
                        return Some(found);
                    }
                    Err(kept) if decisions.are_heard() => refused.push(found.refusal(graph, readers, kept)),
                    Err(_) => {}
                }
            }
            // What shares its last node alone with a form is not nearly an op.
            Err(differs) if decisions.are_heard() && differs.same > near.as_ref().map_or(1, |(same, _)| *same) => {
                near = Some((differs.same, differs.decision(graph, n, &guess.op, &form)));
            }
            Err(_) => {}
        }
    }
    let told = if refused.is_empty() { near.into_iter().map(|(_, decision)| decision).collect() } else { refused };
    told.into_iter().for_each(|decision| decisions.tell(|| decision));
    None
}

impl RecognisedOp {
    /// What the form's last node makes stays; the rest is inside.
    fn values(&self, graph: &Graph) -> Vec<String> {
        let mut nodes = self.nodes.clone();
        nodes.sort_unstable();
        names::of_nodes(graph, &nodes)
    }

    fn what(&self) -> String {
        names::node(&NodeKind::Op(self.op.clone()))
    }

    fn decision(&self, graph: &Graph) -> Decision {
        let why = "they are its general form, node by node, and nothing else reads what is inside";
        Decision::done(self.values(graph), self.what(), why)
    }

    fn refusal(&self, graph: &Graph, readers: &ValueUses, kept: FormRefusal) -> Decision {
        let but = match kept {
            FormRefusal::Wanted(id) => readers.wanted(graph, id, &self.nodes),
            FormRefusal::NoWeight(id) => format!("{} is no weight", names::quoted(graph, id)),
            FormRefusal::Weight(id) => format!("{} is a weight", names::quoted(graph, id)),
            FormRefusal::Narrow(id) => format!("{} is {}, not f32", names::quoted(graph, id), graph.ty(id).dense()),
        };
        let why = format!("they are its general form, but {but}");
        Decision::refused(self.values(graph), self.what(), why)
    }
}

impl FormMismatch {
    fn decision(&self, graph: &Graph, n: usize, op: &Op, form: &Graph) -> Decision {
        let made = |graph: &Graph, id: ValueId| match graph.value(id).source {
            ValueSource::Node { node, .. } => format!("made by {}", names::node(&graph.nodes[node as usize].kind)),
            _ => format!("an input of type {}", graph.ty(id).dense()),
        };
        let value = names::quoted(graph, self.graph);
        let (there, wanted) = (made(graph, self.graph), made(form, self.form));
        let why = match there == wanted {
            true => format!("{value} stands where its form has another value that stands elsewhere too"),
            false => format!("{value} is {there}; in its form there is what is {wanted}"),
        };
        Decision::refused(names::of_node(graph, n), format!("`{}`", op.name()), why)
    }
}

/// What the inputs of `form` are in `graph`, and the nodes that are the form's, if the value `root` is made as the
/// form's output is.
///
/// # Errors
/// The first difference.
fn same(form: &Graph, graph: &Graph, root: ValueId) -> Result<(Vec<ValueId>, Vec<usize>), FormMismatch> {
    let mut is: HashMap<ValueId, ValueId> = HashMap::new();
    let mut open = vec![(form.outputs[0], root)];
    let mut nodes = Vec::new();
    while let Some((f, g)) = open.pop() {
        let differs = FormMismatch { same: nodes.len(), form: f, graph: g };
        if let Some(&known) = is.get(&f) {
            if known != g {
                return Err(differs);
            }
            continue;
        }
        is.insert(f, g);
        let ValueSource::Node { node: from, .. } = form.value(f).source else {
            if form.ty(f) != &graph.ty(g).dense() {
                return Err(differs);
            }
            continue;
        };
        let ValueSource::Node { node: to, .. } = graph.value(g).source else { return Err(differs) };
        let (wanted, there) = (&form.nodes[from as usize], &graph.nodes[to as usize]);
        if wanted.kind != there.kind || wanted.ins.len() != there.ins.len() {
            return Err(differs);
        }
        nodes.push(to as usize);
        open.extend(wanted.ins.iter().copied().zip(there.ins.iter().copied()));
    }
    let unread = |&i: &ValueId| FormMismatch { same: nodes.len(), form: i, graph: root };
    let ins = form.inputs.iter().map(|i| is.get(i).copied().ok_or_else(|| unread(i))).collect::<Result<Vec<_>, _>>()?;
    Ok((ins, nodes))
}

/// Whether nothing but the form reads what is made inside of it.
///
/// # Errors
/// What others read.
fn closed(graph: &Graph, readers: &ValueUses, n: usize, found: &RecognisedOp) -> Result<(), FormRefusal> {
    let hidden = |id: ValueId| !readers.is_output(id) && readers.all(id).iter().all(|r| found.nodes.contains(r));
    let mut inside = found.nodes.iter().filter(|&&m| m != n).flat_map(|&m| &graph.nodes[m].outs);
    inside.find(|&&o| !hidden(o)).map_or(Ok(()), |&o| Err(FormRefusal::Wanted(o)))
}

/// A product's weight is packed when it is loaded, which the ops that read it as it lies do not know. What is no weight has
/// the type that named ops compute with.
///
/// # Errors
/// The input that is no such weight, or of another type.
fn inputs_fit(graph: &Graph, readers: &ValueUses, found: &RecognisedOp) -> Result<(), FormRefusal> {
    let is_weight = |id: ValueId| graph.value(id).source == ValueSource::Weight;
    // A weight is decoded when it is loaded; beside those, named ops compute with f32 alone.
    let narrow = |id: &&ValueId| {
        !is_weight(**id) && [Format::F16, Format::BF16].map(DType::from).contains(&graph.ty(**id).dtype)
    };
    if let Some(&id) = found.ins.iter().find(narrow) {
        return Err(FormRefusal::Narrow(id));
    }
    // A product may read a weight as what it multiplies, too.
    let packed = |n: usize, id: ValueId| match &graph.nodes[n].kind {
        NodeKind::Op(Op::Linear(_)) => graph.nodes[n].ins[0] != id,
        NodeKind::Op(Op::Embed(_)) => graph.nodes[n].ins[0] == id,
        _ => false,
    };
    let alone = |id: ValueId| readers.all(id).iter().all(|&r| found.nodes.contains(&r) || packed(r, id));
    let weight = match found.op {
        Op::Linear(_) if is_weight(found.ins[0]) => return Err(FormRefusal::Weight(found.ins[0])),
        Op::Linear(_) => found.ins[1],
        Op::Embed(_) => found.ins[0],
        _ => return Ok(()),
    };
    match (is_weight(weight), alone(weight)) {
        (true, true) => Ok(()),
        (true, false) => Err(FormRefusal::Wanted(weight)),
        (false, _) => Err(FormRefusal::NoWeight(weight)),
    }
}
