//! Whether a file that was written is the model that was read: what is computed from both is compared, op by op. What GGUF
//! metadata cannot state shows here, and nothing is kept of such a file.

use super::family::TensorFamily;
use yirage_ir::graph::{Graph, Node, NodeKind};
use yirage_ir::op::{Op, RmsNorm, Rope};
use yirage_model::arch::Model;
use yirage_model::rope::{Dynamic, Frequencies, RopeTable};
use yirage_model::weights::{WeightBinding, WeightSource};

/// Compares; of two models that differ it says where and how. What a family's tensors make up for is no difference.
pub(crate) fn difference(read: &Model, written: &Model, family: TensorFamily) -> Option<String> {
    let differs = |what: &str, a: &dyn std::fmt::Debug, b: &dyn std::fmt::Debug| {
        Some(format!("{what} would be {b:?} instead of {a:?}"))
    };
    if read.context != written.context {
        return differs("the longest context", &read.context, &written.context);
    }
    if read.vocab_size != written.vocab_size {
        return differs("the number of tokens", &read.vocab_size, &written.vocab_size);
    }
    if read.groups != written.groups || read.kv_cache_group != written.kv_cache_group {
        return differs("the cache", &read.groups, &written.groups);
    }
    let (a, b) = (&read.graph, &written.graph);
    let nodes = a.nodes.iter().zip(&b.nodes);
    if let Some((a, b)) = nodes.map(|(x, y)| (described(a, x), as_read(b, y, family))).find(|(a, b)| a != b) {
        return Some(format!("it would compute `{b}` instead of `{a}`"));
    }
    if a.nodes.len() != b.nodes.len() {
        return differs("the number of operations", &a.nodes.len(), &b.nodes.len());
    }
    let table = |model: &Model, name: &str| model.weights.iter().find(|w| w.name == name).and_then(computed).cloned();
    let tables = read.weights.iter().filter_map(|w| Some((w.name.as_str(), computed(w)?)));
    let other = |(name, own): &(&str, &RopeTable)| !table(written, name).is_some_and(|of| same_waves(own, &of));
    if let Some((name, _)) = tables.into_iter().find(other) {
        return Some(format!("the frequencies of the rotation ({name}) would be others"));
    }
    match (&read.dynamic_rope, &written.dynamic_rope) {
        (None, None) => None,
        (Some(a), Some(b)) if same_growth(a, b) => None,
        (a, b) => differs("the rotation of long sequences", a, b),
    }
}

/// A node in words: what it does, to which values.
fn described(graph: &Graph, node: &Node) -> String {
    let names =
        |ids: &[yirage_ir::ValueId]| ids.iter().map(|&id| graph.value(id).name.as_str()).collect::<Vec<_>>().join(", ");
    let outs = names(&node.outs);
    match &node.kind {
        NodeKind::Op(op) => format!("{outs} = {op:?} of {}", names(&node.ins)),
        NodeKind::Region(region) => format!("{outs} = {region:?} of {}", names(&node.ins)),
    }
}

/// A node of the written model in words, as the family's own tensors would have it.
fn as_read(graph: &Graph, node: &Node, family: TensorFamily) -> String {
    let other: Op = match &node.kind {
        NodeKind::Op(Op::Rope(rope)) if family.pairs && rope.interleaved => {
            Rope { interleaved: false, ..rope.clone() }.into()
        }
        NodeKind::Op(Op::RmsNorm(norm)) if family.whole_norms && !norm.unit_offset => {
            RmsNorm { unit_offset: true, ..norm.clone() }.into()
        }
        _ => return described(graph, node),
    };
    described(graph, &Node { kind: NodeKind::Op(other), ..node.clone() })
}

fn computed(weight: &WeightBinding) -> Option<&RopeTable> {
    match &weight.source {
        WeightSource::Computed(table) => Some(table),
        _ => None,
    }
}

/// Rounded once or twice to an f32.
const NEAR: f64 = 1e-6;

fn near(a: f64, b: f64) -> bool {
    (a - b).abs() <= NEAR * a.abs().max(b.abs())
}

/// Whether tables agree at position 1, which their frequencies are read off.
fn same_waves(a: &RopeTable, b: &RopeTable) -> bool {
    let (x, y) = (a.values(1..2), b.values(1..2));
    a.elements() == b.elements()
        && x.len() == y.len()
        && x.iter().zip(&y).all(|(&x, &y)| near(f64::from(x), f64::from(y)))
}

fn same_growth(a: &Dynamic, b: &Dynamic) -> bool {
    let same = |a: &Frequencies, b: &Frequencies| {
        near(a.factor, b.factor)
            && a.per_position.len() == b.per_position.len()
            && a.per_position.iter().zip(&b.per_position).all(|(&x, &y)| near(x, y))
    };
    let lengths = [a.original, a.original.saturating_add(1)];
    a.original == b.original && lengths.iter().all(|&n| same(&a.frequencies(n), &b.frequencies(n)))
}
