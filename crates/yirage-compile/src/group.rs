//! Nodes that become a region.

use crate::error::CompileError;
use crate::rebuild::Rebuild;
use std::collections::HashMap;
use std::collections::hash_map::Entry;
use yirage_ir::{Graph, GraphBuilder, NodeKind, Region, RegionKind, ValueId, ValueSource};

/// Adds the region of `members`, nodes of the old graph in their order, which gives `outs`.
pub(crate) fn emit(
    graph: &Graph,
    members: &[usize],
    outs: &[ValueId],
    kind: RegionKind,
    r: &mut Rebuild,
) -> Result<(), CompileError> {
    let (region, ins) = region(graph, members, outs, kind)?;
    let new_ins: Vec<ValueId> = ins.iter().map(|&i| r.get(i)).collect();
    let names: Vec<String> = outs.iter().map(|&o| graph.value(o).name.clone()).collect();
    let made = r.add(NodeKind::Region(Box::new(region)), &new_ins, &names)?;
    outs.iter().zip(made).for_each(|(&old, new)| r.bind(old, new));
    Ok(())
}

/// The region, with the old values that are its inputs.
pub(crate) fn region(
    graph: &Graph,
    members: &[usize],
    outs: &[ValueId],
    kind: RegionKind,
) -> Result<(Region, Vec<ValueId>), CompileError> {
    let mut builder = GraphBuilder::new(kind.name());
    let mut map: HashMap<ValueId, ValueId> = HashMap::new();
    let mut ins = Vec::new();
    for &i in members.iter().flat_map(|&n| &graph.nodes[n].ins) {
        let source = match graph.value(i).source {
            ValueSource::Node { node, .. } if members.contains(&(node as usize)) => continue,
            ValueSource::Node { .. } if graph.kv_cache_of(i).is_some() => ValueSource::KvCache,
            ValueSource::Node { .. } => ValueSource::StepInput,
            other => other,
        };
        if let Entry::Vacant(place) = map.entry(i) {
            place.insert(builder.declare(&graph.value(i).name, graph.ty(i).clone(), source)?);
            ins.push(i);
        }
    }
    for &n in members {
        let node = &graph.nodes[n];
        let inner: Vec<ValueId> = node.ins.iter().map(|i| map[i]).collect();
        let made = match &node.kind {
            NodeKind::Op(_) => {
                let names: Vec<String> = node.outs.iter().map(|&o| graph.value(o).name.clone()).collect();
                builder.node(node.kind.clone(), &inner, &names)?
            }
            NodeKind::Region(region) => inline(&region.graph, &inner, &mut builder)?,
        };
        map.extend(node.outs.iter().copied().zip(made));
    }
    outs.iter().for_each(|o| builder.output(map[o]));
    Ok((Region::new(kind, builder.finish()), ins))
}

/// Adds the ops of a region that takes `ins`: regions hold no regions. Gives what the region gives.
fn inline(region: &Graph, ins: &[ValueId], builder: &mut GraphBuilder) -> Result<Vec<ValueId>, CompileError> {
    let mut map: HashMap<ValueId, ValueId> = region.inputs.iter().copied().zip(ins.iter().copied()).collect();
    for node in &region.nodes {
        let inner: Vec<ValueId> = node.ins.iter().map(|i| map[i]).collect();
        let names: Vec<String> = node.outs.iter().map(|&o| region.value(o).name.clone()).collect();
        let made = builder.node(node.kind.clone(), &inner, &names)?;
        map.extend(node.outs.iter().copied().zip(made));
    }
    Ok(region.outputs.iter().map(|o| map[o]).collect())
}
