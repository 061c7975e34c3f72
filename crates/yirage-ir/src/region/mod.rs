//! Regions: nodes that are several ops, run as one kernel. What a region may hold is a matter of its kind, one file each.

mod chain;
mod matmul_group;
mod rows;
mod tiled;

pub use chain::{ChainMatmul, ChainRead, Core, ElementExpr, FusedChain};
pub use matmul_group::is_weight_matmul;
pub use rows::row_dim;
pub(crate) use tiled::evaluate as evaluate_tiled;
pub use tiled::{
    Accumulate, CONTINUED, MAX_UNROLLED, NotUnrolled, TileIn, TileOut, Tiled, block_bytes, in_place, unrolled,
};

use crate::graph::{Graph, NodeKind, ValueSource};
use crate::op::Op;
use crate::types::{Type, TypeError};
use std::collections::HashSet;

/// Most ops of a region.
pub const MAX_REGION_OPS: usize = 4096;

/// A fused node: a nested graph whose inputs and outputs are, in order, the node's; of a tiled one, the body of its loop.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Region {
    /// What it is: which ops it may hold, and what a kernel is selected by.
    pub kind: RegionKind,
    /// The ops.
    pub graph: Graph,
    /// What makes a tiled region one; none of other kinds.
    pub tiled: Option<Box<Tiled>>,
}

/// One graph of a region.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct RegionGraph<'a> {
    /// The graph.
    pub graph: &'a Graph,
    /// For each of its inputs the input of the node that it is, or is a tile of; none for accumulators.
    pub ins: Vec<Option<usize>>,
}

/// What a region is.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum RegionKind {
    /// Row-wise ops over one dimension of rows: one pass over the rows, without waiting between the ops.
    Rows,
    /// Products of one kind that share their first input, with the maps and views behind them.
    MatmulGroup,
    /// Maps and views around at most one reduction or contraction ([`FusedChain`]): one pass over memory.
    Chain,
    /// A grid of blocks that loop over tiles ([`Tiled`]).
    Tiled,
}

impl RegionKind {
    /// All kinds.
    pub const ALL: [RegionKind; 4] = [RegionKind::Rows, RegionKind::MatmulGroup, RegionKind::Chain, RegionKind::Tiled];

    /// The name in text forms.
    pub fn name(self) -> &'static str {
        match self {
            RegionKind::Rows => "rows",
            RegionKind::MatmulGroup => "matmul_group",
            RegionKind::Chain => "chain",
            RegionKind::Tiled => "tiled",
        }
    }

    /// The inverse of [`RegionKind::name`].
    pub fn parse(name: &str) -> Option<RegionKind> {
        RegionKind::ALL.into_iter().find(|k| k.name() == name)
    }
}

impl Region {
    /// A region of any kind but a tiled one.
    pub fn new(kind: RegionKind, graph: Graph) -> Region {
        Region { kind, graph, tiled: None }
    }

    /// A tiled region; `body` is its loop's.
    pub fn tiled(body: Graph, tiled: Tiled) -> Region {
        Region { kind: RegionKind::Tiled, graph: body, tiled: Some(Box::new(tiled)) }
    }

    /// The types of the node's outputs, for inputs of these types. The ops must form a sound graph ([`crate::verify()`]).
    ///
    /// # Errors
    /// When the region holds what its kind does not allow, or its inputs are not the node's.
    pub fn infer(&self, ins: &[Type]) -> Result<Vec<Type>, TypeError> {
        let (nodes, graph) = (self.graphs().map(|g| g.nodes.len()).sum::<usize>(), &self.graph);
        let outside = |checked: Result<(), String>| checked.and_then(|()| as_outside(graph, ins));
        let types = match (self.kind, &self.tiled) {
            _ if nodes > MAX_REGION_OPS => Err(format!("{nodes} ops, {MAX_REGION_OPS} are the most")),
            (RegionKind::Tiled, Some(tiled)) => tiled::infer(graph, tiled, ins),
            (RegionKind::Tiled, None) => Err("nothing says how it is tiled".into()),
            (_, Some(_)) => Err("it is tiled, which is a kind of its own".into()),
            _ if nodes == 0 => Err(format!("0 ops, 1 to {MAX_REGION_OPS} wanted")),
            (RegionKind::Rows, None) => outside(rows::check(graph)),
            (RegionKind::MatmulGroup, None) => outside(matmul_group::check(graph)),
            (RegionKind::Chain, None) => outside(chain::check(graph)),
        };
        types.map_err(|why| TypeError::new(format!("region `{}`: {why}", self.kind.name())))
    }

    /// Its graphs with what their inputs are.
    pub fn parts(&self) -> Vec<RegionGraph<'_>> {
        let whole = |graph: &Graph| (0..graph.inputs.len()).map(Some).collect();
        let Some(tiled) = &self.tiled else { return vec![RegionGraph { graph: &self.graph, ins: whole(&self.graph) }] };
        let tiles = (0..tiled.ins.len()).map(Some).chain(tiled.running.iter().map(|_| None));
        let read = tiled.reads.iter().map(|&at| Some(at as usize));
        let after = tiled.accumulators.iter().map(|_| None).chain(read);
        vec![
            RegionGraph { graph: &self.graph, ins: tiles.collect() },
            RegionGraph { graph: &tiled.block, ins: after.collect() },
        ]
    }

    /// Its graphs: its own, and what follows the loop of a tiled one.
    pub fn graphs(&self) -> impl Iterator<Item = &Graph> {
        std::iter::once(&self.graph).chain(self.tiled.iter().map(|tiled| &tiled.block))
    }

    /// The ops, in order. What is not an op is left out; [`Region::infer`] refuses it.
    pub fn ops(&self) -> impl Iterator<Item = &Op> {
        self.graphs().flat_map(|g| &g.nodes).filter_map(|n| match &n.kind {
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
        if !matches!(v.source, ValueSource::Node { .. }) || !seen.insert(o) {
            return Err(format!("its output `{}` is not made inside, once", v.name));
        }
        types.push(v.ty.clone());
    }
    Ok(types)
}
