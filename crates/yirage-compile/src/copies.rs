//! Copies of operands that a kernel does not take where they lie, but would take computed: a step of their own, which the
//! plan shows.

use crate::decision::{Decision, Decisions};
use crate::error::CompileError;
use crate::names;
use crate::rebuild::Rebuild;
use yirage_ir::op::{OpDef, View, ViewForm};
use yirage_ir::region::FusedChain;
use yirage_ir::{Dims, Graph, Node, NodeKind, Op, RegionKind, Type, ValueId, ValueSource};
use yirage_plan::{OperandPlacement, Refusal, RefusedInput, Target, WeightPlan, select_kernel};

pub(crate) fn run(
    graph: &Graph,
    target: &Target,
    weights: &WeightPlan,
    bucket: &Dims,
    decisions: &mut Decisions,
) -> Result<Graph, CompileError> {
    let mut out = graph.clone();
    let mut told: Vec<(Vec<String>, String, String)> = Vec::new();
    // Each round copies one more input of each node that is refused.
    for _ in 0..graph.nodes.iter().map(|n| n.ins.len()).max().unwrap_or(0) {
        let refused = refused(&out, target, weights, bucket);
        if refused.iter().all(Option::is_none) {
            break;
        }
        if decisions.are_heard() {
            let refusals = refused.iter().enumerate().filter_map(|(n, r)| Some((n, r.as_ref()?)));
            told.extend(refusals.map(|(n, r)| (names::of_node(&out, n), names::quoted(&out, r.input), r.why())));
        }
        out = copied(&out, &refused)?;
    }
    let lying = OperandPlacement::new(&out, weights, target, bucket);
    let helped = out.nodes.iter().all(|node| select_kernel(target, &lying, node).is_ok());
    for (values, of, why) in told {
        let what = format!("a copy of {of}, which it reads");
        let decision = match helped {
            true => Decision::done(values, what, why),
            false => {
                Decision::refused(values, what, format!("{why}; with copies some node has no kernel all the same"))
            }
        };
        decisions.tell(|| decision);
    }
    // A node that is refused all the same is told of as it was.
    Ok(if helped { out } else { graph.clone() })
}

/// An input that is not taken where it lies.
struct Refused {
    input: ValueId,
    /// What the nearest kernel says of it; none where a view cannot follow its strides.
    by: Option<Box<RefusedInput>>,
}

impl Refused {
    fn why(&self) -> String {
        let gaps = || "no strides follow those of the step input, which lies with gaps".to_string();
        self.by.as_ref().map_or_else(gaps, ToString::to_string)
    }
}

/// For each node the input that its nearest kernel does not take, if a copy of it can be made.
fn refused(graph: &Graph, target: &Target, weights: &WeightPlan, bucket: &Dims) -> Vec<Option<Refused>> {
    let lying = OperandPlacement::new(graph, weights, target, bucket);
    let input = |node: &Node| {
        let (id, by) = match select_kernel(target, &lying, node) {
            Ok(_) => (gapped(graph, target, node)?, None),
            Err(Refusal::Input(by)) => (node.ins.iter().copied().find(|&i| graph.value(i).name == by.name)?, Some(by)),
            Err(_) => return None,
        };
        let given = matches!(graph.value(id).source, ValueSource::StepInput | ValueSource::Weight);
        // What is a copy already is not copied for.
        let copy = matches!(&node.kind, NodeKind::Op(Op::View(view)) if *view == copy_of(graph, id));
        let copies = given && !copy && copy_of(graph, id).infer(&[graph.ty(id).dense()]).is_ok();
        copies.then_some(Refused { input: id, by })
    };
    graph.nodes.iter().map(input).collect()
}

/// The step input whose strides no view like this one can follow, on a target whose kernels read views by strides.
fn gapped(graph: &Graph, target: &Target, node: &Node) -> Option<ValueId> {
    let view = matches!(node.kind, NodeKind::Op(Op::View(_))) && target.runs_regions(RegionKind::Chain);
    let gaps = view && FusedChain::of_node(graph, node).is_err();
    node.ins.iter().copied().find(|&id| gaps && graph.ty(id).strides.is_some())
}

/// All elements of a value, as they are.
fn copy_of(graph: &Graph, id: ValueId) -> View {
    View { form: ViewForm::Reshape(graph.ty(id).shape.clone()) }
}

fn copied(graph: &Graph, refused: &[Option<Refused>]) -> Result<Graph, CompileError> {
    let mut r = Rebuild::new(graph, |_| true)?;
    let mut copies: Vec<(ValueId, ValueId)> = Vec::new();
    for (n, node) in graph.nodes.iter().enumerate() {
        let refused = refused[n].as_ref().map(|r| r.input);
        if let Some(id) = refused
            && !copies.iter().any(|(of, _)| *of == id)
        {
            let mut name = format!("{}.copy", graph.value(id).name);
            while graph.find(&name).is_some() {
                name.push('_');
            }
            let made = r.add(NodeKind::Op(copy_of(graph, id).into()), &[r.get(id)], &[name])?;
            copies.push((id, made[0]));
        }
        let copy = |i: ValueId| copies.iter().find(|(of, _)| refused == Some(i) && *of == i).map(|(_, copy)| *copy);
        let ins: Vec<ValueId> = node.ins.iter().map(|&i| copy(i).unwrap_or_else(|| r.get(i))).collect();
        r.copy_as(n, reading_copies(node, |i| copy(i).is_some()), &ins)?;
    }
    Ok(r.finish())
}

/// What a node does when those of its inputs that are copied lie dense.
fn reading_copies(node: &Node, copied: impl Fn(ValueId) -> bool) -> NodeKind {
    let mut kind = node.kind.clone();
    if let NodeKind::Region(region) = &mut kind {
        for (&outside, &inside) in node.ins.iter().zip(&region.graph.inputs) {
            let ty: &mut Type = &mut region.graph.values[inside.index()].ty;
            *ty = if copied(outside) { ty.dense() } else { ty.clone() };
        }
    }
    kind
}
