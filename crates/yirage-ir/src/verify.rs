//! What must hold for every graph. Each pass's output is checked with this in tests and debug builds.

use crate::graph::{Graph, NodeKind, ValueId, ValueSource, check_value};
use crate::types::Type;
use std::collections::HashSet;
use thiserror::Error;

/// How deep regions may nest.
pub const MAX_REGION_DEPTH: usize = 4;

/// What is wrong with a graph.
#[derive(Clone, PartialEq, Eq, Debug, Error)]
#[error("graph `{graph}`: {what}")]
pub struct VerifyError {
    /// The graph.
    pub graph: String,
    /// What is wrong, with the names.
    pub what: String,
}

/// Checks a graph: every value has one maker before its readers, types are those the ops infer, regions fit their
/// nodes, names are unique.
pub fn verify(graph: &Graph) -> Result<(), VerifyError> {
    check(graph, 0).map_err(|what| VerifyError { graph: graph.name.clone(), what })
}

fn check(graph: &Graph, depth: usize) -> Result<(), String> {
    if depth > MAX_REGION_DEPTH {
        return Err(format!("regions nest deeper than {MAX_REGION_DEPTH}"));
    }
    let mut names = HashSet::new();
    for v in &graph.values {
        check_value(&v.ty, v.source).map_err(|e| format!("`{}`: {e}", v.name))?;
        if !names.insert(&v.name) {
            return Err(format!("the name `{}` is used twice", v.name));
        }
    }
    let mut ready = vec![false; graph.values.len()];
    for &i in &graph.inputs {
        let Some(v) = graph.values.get(i.index()) else { return Err(format!("input {} does not exist", i.0)) };
        if matches!(v.source, ValueSource::Node { .. }) || std::mem::replace(&mut ready[i.index()], true) {
            return Err(format!("`{}` cannot be an input (again)", v.name));
        }
    }
    for n in 0..graph.nodes.len() {
        check_node(graph, n, &mut ready, depth)?;
    }
    if let Some(i) = ready.iter().position(|r| !r) {
        return Err(format!("nothing makes `{}`", graph.values[i].name));
    }
    match graph.outputs.iter().find(|o| o.index() >= graph.values.len()) {
        Some(o) => Err(format!("output {} does not exist", o.0)),
        None => Ok(()),
    }
}

fn check_node(graph: &Graph, n: usize, ready: &mut [bool], depth: usize) -> Result<(), String> {
    let node = &graph.nodes[n];
    for i in &node.ins {
        if !ready.get(i.index()).copied().unwrap_or(false) {
            return Err(format!("node {n} ({}) reads value {} before it is made", node.name(), i.0));
        }
    }
    let ins: Vec<Type> = node.ins.iter().map(|&i| graph.ty(i).clone()).collect();
    let types = match &node.kind {
        NodeKind::Op(op) => op
            .infer(&ins.iter().map(Type::dense).collect::<Vec<_>>())
            .map_err(|e| format!("node {n} ({}): {e}", node.name()))?,
        NodeKind::Region(region) => {
            for graph in region.graphs() {
                check(graph, depth + 1).map_err(|e| format!("region of node {n}: {e}"))?;
            }
            region.infer(&ins).map_err(|e| format!("node {n}: {e}"))?
        }
    };
    if types.len() != node.outs.len() {
        return Err(format!("node {n} ({}) has {} outputs, not {}", node.name(), types.len(), node.outs.len()));
    }
    for (output, (&id, ty)) in node.outs.iter().zip(types).enumerate() {
        check_output(graph, n, output, id, &ty)?;
        ready[id.index()] = true;
    }
    Ok(())
}

fn check_output(graph: &Graph, n: usize, output: usize, id: ValueId, ty: &Type) -> Result<(), String> {
    let Some(v) = graph.values.get(id.index()) else { return Err(format!("output {} does not exist", id.0)) };
    if v.source != (ValueSource::Node { node: n as u32, output: output as u32 }) {
        return Err(format!("`{}` says it comes from {:?}, not from node {n}", v.name, v.source));
    }
    if v.ty != *ty {
        return Err(format!("`{}` is declared {} but its op gives {ty}", v.name, v.ty));
    }
    Ok(())
}
