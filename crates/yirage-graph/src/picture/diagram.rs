//! What a picture shows, and nothing of where: boxes, and edges between them.

use yirage_ir::region::Tiled;
use yirage_ir::{Graph, Node, NodeKind, Value, ValueId, ValueSource};

/// A graph, or the inside of a region.
pub(super) struct Diagram {
    pub(super) boxes: Vec<Box>,
    pub(super) edges: Vec<Edge>,
}

/// A box.
pub(super) struct Box {
    pub(super) kind: BoxKind,
    pub(super) title: String,
    /// Smaller lines under the title.
    pub(super) lines: Vec<String>,
    /// All that is known of it.
    pub(super) tip: String,
    pub(super) inside: Option<Inside>,
}

/// What a box stands for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum BoxKind {
    StepInput,
    Weight,
    KvCache,
    Op,
    Output,
    Region,
    /// An input or output of a region, at its border.
    Port,
}

/// The inside of a region.
pub(super) struct Inside {
    pub(super) diagram: Diagram,
    /// The boxes of its inputs, in order.
    pub(super) ins: Vec<usize>,
    /// The boxes of its outputs, in order.
    pub(super) outs: Vec<usize>,
}

/// Output `output` of box `from` is input `input` of box `to`.
pub(super) struct Edge {
    pub(super) from: usize,
    pub(super) output: usize,
    pub(super) to: usize,
    pub(super) input: usize,
    /// The type of the value.
    pub(super) ty: String,
}

/// Longest line of a box; the rest of a text is in its tip.
const LINE: usize = 34;

impl Diagram {
    /// Of a whole graph.
    pub(super) fn of(graph: &Graph) -> Diagram {
        inside(graph, false).diagram
    }
}

fn inside(graph: &Graph, in_region: bool) -> Inside {
    let mut boxes: Vec<Box> = graph.inputs.iter().map(|&id| input(graph.value(id), in_region)).collect();
    let ins: Vec<usize> = (0..boxes.len()).collect();
    // Which output of which box a value is.
    let mut made: Vec<(usize, usize)> = vec![(0, 0); graph.values.len()];
    graph.inputs.iter().enumerate().for_each(|(at, id)| made[id.index()] = (at, 0));
    let mut edges = Vec::new();
    let mut join = |made: &[(usize, usize)], value: ValueId, to: usize, input: usize| {
        let (from, output) = made[value.index()];
        edges.push(Edge { from, output, to, input, ty: graph.ty(value).to_string() });
    };
    for node in &graph.nodes {
        let at = boxes.len();
        node.ins.iter().enumerate().for_each(|(input, &id)| join(&made, id, at, input));
        node.outs.iter().enumerate().for_each(|(output, id)| made[id.index()] = (at, output));
        boxes.push(of_node(graph, node));
    }
    let outs: Vec<usize> = (boxes.len()..boxes.len() + graph.outputs.len()).collect();
    for &id in &graph.outputs {
        join(&made, id, boxes.len(), 0);
        boxes.push(output(graph.value(id), in_region));
    }
    Inside { diagram: Diagram { boxes, edges }, ins, outs }
}

fn input(value: &Value, in_region: bool) -> Box {
    let kind = match value.source {
        _ if in_region => BoxKind::Port,
        ValueSource::Weight => BoxKind::Weight,
        ValueSource::KvCache => BoxKind::KvCache,
        ValueSource::StepInput | ValueSource::Node { .. } => BoxKind::StepInput,
    };
    named(kind, value, in_region)
}

fn output(value: &Value, in_region: bool) -> Box {
    named(if in_region { BoxKind::Port } else { BoxKind::Output }, value, in_region)
}

fn named(kind: BoxKind, value: &Value, in_region: bool) -> Box {
    let lines = if in_region { Vec::new() } else { vec![cut(&value.ty.to_string())] };
    Box { kind, title: cut(&value.name), lines, tip: format!("{}: {}", value.name, value.ty), inside: None }
}

fn of_node(graph: &Graph, node: &Node) -> Box {
    let types: Vec<String> = node.outs.iter().map(|&id| graph.ty(id).to_string()).collect();
    let names = |ids: &[ValueId]| ids.iter().map(|&id| graph.value(id).name.as_str()).collect::<Vec<_>>().join(", ");
    let tip = |what: &str| format!("{} = {what}({}): {}", names(&node.outs), names(&node.ins), types.join(", "));
    match &node.kind {
        NodeKind::Op(op) => {
            let attrs: Vec<String> = op.attrs().iter().map(|(name, value)| format!("{name}={value}")).collect();
            let whole = format!("{}{{{}}}", op.name(), attrs.join(", "));
            // An expression or a form of a view says by itself what it is.
            let shown = match op.attrs().as_slice() {
                [] => None,
                [(_, value)] if value.contains('(') => Some(value.clone()),
                _ => Some(attrs.join(" ")),
            };
            let lines = shown.into_iter().chain(types.iter().cloned()).map(|line| cut(&line)).collect();
            Box { kind: BoxKind::Op, title: op.name().to_owned(), lines, tip: tip(&whole), inside: None }
        }
        NodeKind::Region(region) => {
            let what = format!("region {}", region.kind.name());
            let Some(tiled) = &region.tiled else {
                let inside = Some(inside(&region.graph, true));
                return Box { kind: BoxKind::Region, title: what.clone(), lines: Vec::new(), tip: tip(&what), inside };
            };
            let attrs: Vec<String> = tiled.attrs().iter().map(|(name, value)| format!("{name}={value}")).collect();
            let title = cut(&format!("{what} {:?} x {}", tiled.grid, tiled.loops));
            let tip = tip(&format!("{what}{{{}}}", attrs.join(", ")));
            let inside = Some(of_tiles(&region.graph, tiled));
            Box { kind: BoxKind::Region, title, lines: Vec::new(), tip, inside }
        }
    }
}

/// A loop's body and what follows it, with what passes from one to the other.
fn of_tiles(body: &Graph, tiled: &Tiled) -> Inside {
    let (mut looped, after) = (inside(body, true), inside(&tiled.block, true));
    let first = looped.diagram.boxes.len();
    let count = tiled.accumulators.len();
    for (at, &out) in looped.outs.iter().enumerate() {
        let how = tiled.accumulators.get(at).map_or_else(|| "factor".to_owned(), ToString::to_string);
        let shown = &mut looped.diagram.boxes[out];
        (shown.kind, shown.lines) = (BoxKind::Op, vec![how]);
    }
    let mut boxes = after.diagram.boxes;
    after.ins.iter().for_each(|&at| boxes[at].kind = BoxKind::Op);
    looped.diagram.boxes.extend(boxes);
    let shifted = |edge: Edge| Edge { from: edge.from + first, to: edge.to + first, ..edge };
    looped.diagram.edges.extend(after.diagram.edges.into_iter().map(shifted));
    let tiles = tiled.reads.iter().map(|&at| looped.ins[at as usize]);
    let given: Vec<usize> = looped.outs[..count].iter().copied().chain(tiles).collect();
    for (input, from) in given.into_iter().enumerate() {
        let ty = tiled.block.ty(tiled.block.inputs[input]).to_string();
        looped.diagram.edges.push(Edge { from, output: 0, to: first + after.ins[input], input: 0, ty });
    }
    // Accumulators that the body reads come from the iteration before.
    let ins = looped.ins[..tiled.ins.len()].to_vec();
    for &before in &looped.ins[tiled.ins.len()..] {
        looped.diagram.boxes[before].kind = BoxKind::Op;
    }
    Inside { diagram: looped.diagram, ins, outs: after.outs.iter().map(|at| at + first).collect() }
}

/// A text that fits a line.
fn cut(text: &str) -> String {
    match text.char_indices().nth(LINE) {
        None => text.to_owned(),
        Some(_) => text.chars().take(LINE - 1).chain(['…']).collect(),
    }
}
