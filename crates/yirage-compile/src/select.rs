//! Chooses a kernel for every node.

use crate::error::CompileError;
use std::collections::HashMap;
use yirage_ir::{DType, Graph, Node, NodeKind, RegionKind};
use yirage_plan::{Accepts, KernelRef, Target};

/// The kernels used and, for each node, which of them runs it.
pub(crate) fn run(graph: &Graph, target: &Target) -> Result<(Vec<KernelRef>, Vec<u32>), CompileError> {
    let mut used: Vec<KernelRef> = Vec::new();
    let mut index: HashMap<usize, u32> = HashMap::new();
    let mut chosen = Vec::with_capacity(graph.nodes.len());
    for node in &graph.nodes {
        let at = target.kernels.iter().position(|k| accepts(&k.accepts, graph, node));
        let at = at.ok_or_else(|| no_kernel(graph, node, target))?;
        let kernel = *index.entry(at).or_insert_with(|| {
            let facts = &target.kernels[at];
            let (name, variant) = (facts.name.clone(), facts.variant.clone());
            used.push(KernelRef { name, variant, stages: facts.stages.clone(), scratch: facts.scratch });
            used.len() as u32 - 1
        });
        chosen.push(kernel);
    }
    Ok((used, chosen))
}

fn accepts(accepts: &Accepts, graph: &Graph, node: &Node) -> bool {
    match (accepts, &node.kind) {
        (Accepts::Op(name), NodeKind::Op(op)) => op.name() == name,
        (Accepts::Op(_), NodeKind::Region(_)) => false,
        (Accepts::Rows(ops), NodeKind::Op(op)) => op.row_wise() && ops.iter().any(|o| o == op.name()),
        (Accepts::Rows(ops), NodeKind::Region(r)) => {
            r.kind == RegionKind::Rows && r.ops().all(|op| ops.iter().any(|o| o == op.name()))
        }
        (Accepts::Products { ops, formats }, NodeKind::Op(op)) => {
            let format_fits = matches!(node.ins.get(1).map(|&w| graph.ty(w).dtype),
                Some(DType::Stored(f)) if formats.contains(&f));
            ops.iter().any(|o| o == op.name()) && format_fits
        }
        (products @ Accepts::Products { .. }, NodeKind::Region(r)) => {
            r.kind == RegionKind::Products && r.graph.nodes.iter().all(|n| self::accepts(products, &r.graph, n))
        }
    }
}

fn no_kernel(graph: &Graph, node: &Node, target: &Target) -> CompileError {
    let types: Vec<String> = node.ins.iter().map(|&i| graph.ty(i).to_string()).collect();
    let names: Vec<&str> = target.kernels.iter().map(|k| k.name.as_str()).collect();
    CompileError::NoKernel {
        target: target.describe(),
        op: node.name().to_string(),
        types: types.join(", "),
        why: format!("its kernels are {}", names.join(", ")),
    }
}
