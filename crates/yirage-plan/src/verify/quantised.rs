//! Quantised activations are read as they were made: whole or in parts, token by token or in tiles of tokens.

use crate::target::Target;
use std::collections::BTreeMap;
use yirage_ir::{DType, Graph, NodeKind, Op, Source, ValueId};

/// How a quantised value is read.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Read {
    /// Whether the reader meets it token by token; else in tiles of tokens.
    by_token: bool,
    /// Parts of a row that are read apart.
    parts: u32,
}

/// Checks the quantised values of a sound graph: all readers of one read it alike and in the parts in which it was made,
/// and parts are whole rows of the target.
///
/// # Errors
/// The first value that is read otherwise.
pub fn check_quantised(graph: &Graph, target: &Target) -> Result<(), String> {
    let mut reads: BTreeMap<ValueId, Read> = BTreeMap::new();
    for node in &graph.nodes {
        let of = |op: &Op| match op {
            Op::ExpertLinear(e) => Some(Read { by_token: true, parts: if e.shared { 1 } else { e.top_k } }),
            Op::Linear(_) => Some(Read { by_token: false, parts: 1 }),
            _ => None,
        };
        let all: Vec<Read> = match &node.kind {
            NodeKind::Op(op) => of(op).into_iter().collect(),
            NodeKind::Region(region) => region.ops().filter_map(of).collect(),
        };
        // The products of a region share their first input, which is the region's first.
        let Some(&x) = node.ins.first().filter(|&&x| graph.ty(x).dtype == DType::Q8A) else { continue };
        for read in all {
            let value = graph.value(x);
            if *reads.entry(x).or_insert(read) != read {
                return Err(format!(
                    "the quantised `{}` is read in two ways by `{}` and others",
                    value.name,
                    node.name()
                ));
            }
            let part = value.ty.width().unwrap_or(0) / read.parts.max(1) as usize;
            if read.parts > 1 && !part.is_multiple_of(target.q8a_row_multiple.max(1) as usize) {
                let multiple = target.q8a_row_multiple;
                return Err(format!("parts of {part} of the quantised `{}` are no multiple of {multiple}", value.name));
            }
        }
    }
    reads.iter().try_for_each(|(&id, read)| match made(graph, id) {
        Some(parts) if parts == read.parts => Ok(()),
        parts => Err(format!("`{}` is quantised in {parts:?} parts and read in {}", graph.value(id).name, read.parts)),
    })
}

/// In how many parts a value is quantised.
fn made(graph: &Graph, id: ValueId) -> Option<u32> {
    let Source::Node { node, output } = graph.value(id).source else { return None };
    match &graph.nodes[node as usize].kind {
        NodeKind::Op(Op::Quantize(q)) => Some(q.parts),
        NodeKind::Op(_) => None,
        NodeKind::Region(r) => made(&r.graph, r.graph.outputs[output as usize]),
    }
}
