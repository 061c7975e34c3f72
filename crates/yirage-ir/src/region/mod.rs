//! Regions: nodes that are several ops, run as one kernel. What a region may hold is a matter of its kind, one file each.

mod chain;
mod products;
mod rows;

pub use chain::{Chain, Core, Elements, Read};
pub use products::is_product;
pub use rows::row_dim;

use crate::graph::{Graph, NodeKind, Source};
use crate::op::Op;
use crate::types::{Type, TypeError};
use std::collections::HashSet;

/// Most ops of a region.
pub const MAX_REGION_OPS: usize = 4096;

/// A fused node: a nested graph whose inputs and outputs are, in order, the node's.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Region {
    /// What it is: which ops it may hold, and what a kernel is selected by.
    pub kind: RegionKind,
    /// The ops.
    pub graph: Graph,
}

/// What a region is.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum RegionKind {
    /// Row-wise ops over one dimension of rows: one pass over the rows, without waiting between the ops.
    Rows,
    /// Products of one kind that share their first input, each with the maps and views behind it.
    Products,
    /// Maps and views around at most one reduction or contraction ([`Chain`]): one pass over memory.
    Chain,
}

impl RegionKind {
    /// All kinds.
    pub const ALL: [RegionKind; 3] = [RegionKind::Rows, RegionKind::Products, RegionKind::Chain];

    /// The name in text forms.
    pub fn name(self) -> &'static str {
        match self {
            RegionKind::Rows => "rows",
            RegionKind::Products => "products",
            RegionKind::Chain => "chain",
        }
    }

    /// The inverse of [`RegionKind::name`].
    pub fn parse(name: &str) -> Option<RegionKind> {
        RegionKind::ALL.into_iter().find(|k| k.name() == name)
    }
}

impl Region {
    /// The types of the node's outputs, for inputs of these types. The ops must form a sound graph ([`crate::verify()`]).
    ///
    /// # Errors
    /// When the region holds what its kind does not allow, or its inputs are not the node's.
    pub fn infer(&self, ins: &[Type]) -> Result<Vec<Type>, TypeError> {
        let (nodes, name) = (self.graph.nodes.len(), self.kind.name());
        let checked = match self.kind {
            _ if nodes == 0 || nodes > MAX_REGION_OPS => Err(format!("{nodes} ops, 1 to {MAX_REGION_OPS} wanted")),
            RegionKind::Rows => rows::check(&self.graph),
            RegionKind::Products => products::check(&self.graph),
            RegionKind::Chain => chain::check(&self.graph),
        };
        let types = checked.and_then(|()| as_outside(&self.graph, ins));
        types.map_err(|why| TypeError::new(format!("region `{name}`: {why}")))
    }

    /// The ops, in order. What is not an op is left out; [`Region::infer`] refuses it.
    pub fn ops(&self) -> impl Iterator<Item = &Op> {
        self.graph.nodes.iter().filter_map(|n| match &n.kind {
            NodeKind::Op(op) => Some(op),
            NodeKind::Region(_) => None,
        })
    }
}

/// For kinds whose ops see what the node sees: inputs have the node's types, and each output is made inside, once.
fn as_outside(graph: &Graph, ins: &[Type]) -> Result<Vec<Type>, String> {
    if !graph.inputs.iter().map(|&i| graph.ty(i)).eq(ins) {
        return Err("its inputs are not those of the node".into());
    }
    let mut seen = HashSet::new();
    let mut types = Vec::with_capacity(graph.outputs.len());
    for &o in &graph.outputs {
        let v = graph.value(o);
        if !matches!(v.source, Source::Node { .. }) || !seen.insert(o) {
            return Err(format!("its output `{}` is not made inside, once", v.name));
        }
        types.push(v.ty.clone());
    }
    Ok(types)
}
