//! Quantised activations are in a layout that the target has, and read as they were made: whole or in parts, token by
//! token or in tiles of tokens.

use crate::target::{ActivationFormatFacts, Target};
use std::collections::BTreeMap;
use yirage_ir::{Graph, NodeKind, Op, Value, ValueId, ValueSource};

/// How a quantised value is read.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct QuantizedRead {
    /// Whether the reader meets it token by token; else in tiles of tokens.
    by_token: bool,
    /// Parts of a row that are read apart.
    parts: u32,
}

// Proves: **Quantised activations** are read by products of one kind, in the parts in which they were made.
/// Checks the quantised values of a sound graph: the target has their layouts, all readers of one read it alike and in the
/// parts in which it was made, and parts are whole rows of the target.
///
/// # Errors
/// The first value that is read otherwise, or in no layout of the target.
pub fn check_quantised(graph: &Graph, target: &Target) -> Result<(), String> {
    check_activation_formats(graph, target)?;
    let mut reads: BTreeMap<ValueId, QuantizedRead> = BTreeMap::new();
    for node in &graph.nodes {
        let of = |op: &Op| match op {
            Op::ExpertLinear(e) => Some(QuantizedRead { by_token: true, parts: if e.shared { 1 } else { e.top_k } }),
            Op::Linear(_) => Some(QuantizedRead { by_token: false, parts: 1 }),
            _ => None,
        };
        let all: Vec<QuantizedRead> = match &node.kind {
            NodeKind::Op(op) => of(op).into_iter().collect(),
            NodeKind::Region(region) => region.ops().filter_map(of).collect(),
        };
        // The products of a region share their first input, which is the region's first.
        let Some(&x) = node.ins.first() else { continue };
        let value = graph.value(x);
        let Some(ActivationFormatFacts { row_multiple, .. }) = facts(target, value)? else { continue };
        for read in all {
            if *reads.entry(x).or_insert(read) != read {
                return Err(format!(
                    "the quantised `{}` is read in two ways by `{}` and others",
                    value.name,
                    node.name()
                ));
            }
            let part = value.ty.width().unwrap_or(0) / read.parts.max(1) as usize;
            if read.parts > 1 && !part.is_multiple_of(*row_multiple.max(&1) as usize) {
                return Err(format!(
                    "parts of {part} of the quantised `{}` are no multiple of {row_multiple}",
                    value.name
                ));
            }
        }
    }
    reads.iter().try_for_each(|(&id, read)| match quantized_parts(graph, id) {
        Some(parts) if parts == read.parts => Ok(()),
        parts => Err(format!("`{}` is quantised in {parts:?} parts and read in {}", graph.value(id).name, read.parts)),
    })
}

/// Checks that the target has the layout of each value, those inside regions among them.
fn check_activation_formats(graph: &Graph, target: &Target) -> Result<(), String> {
    graph.values.iter().try_for_each(|value| facts(target, value).map(drop))?;
    graph.nodes.iter().try_for_each(|node| match &node.kind {
        NodeKind::Op(_) => Ok(()),
        NodeKind::Region(region) => region.graphs().try_for_each(|graph| check_activation_formats(graph, target)),
    })
}

/// What the target says of the layout that a value is in; nothing of a plain one.
fn facts<'a>(target: &'a Target, value: &Value) -> Result<Option<&'a ActivationFormatFacts>, String> {
    let Some(layout) = value.ty.activation_format else { return Ok(None) };
    let facts = target.activation_format(layout).ok_or_else(|| {
        let has: Vec<String> = target.activation_formats.iter().map(|facts| facts.format.to_string()).collect();
        let has = if has.is_empty() { "none".into() } else { has.join(", ") };
        format!("`{}` is {}; of the layouts of activations the target has {has}", value.name, value.ty)
    })?;
    Ok(Some(facts))
}

/// In how many parts a value is quantised.
fn quantized_parts(graph: &Graph, id: ValueId) -> Option<u32> {
    let ValueSource::Node { node, output } = graph.value(id).source else { return None };
    match &graph.nodes[node as usize].kind {
        NodeKind::Op(Op::Quantize(q)) => Some(q.parts),
        NodeKind::Op(_) => None,
        // Tiles are plain numbers.
        NodeKind::Region(r) if r.tiled.is_some() => None,
        NodeKind::Region(r) => quantized_parts(&r.graph, r.graph.outputs[output as usize]),
    }
}
