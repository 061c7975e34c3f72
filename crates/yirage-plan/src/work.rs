//! What a step has to do at least: the bytes it has to read and the operations it has to compute, from a lowered graph
//! and the sizes of the step alone.
//!
//! It is a floor, not an estimate. Weights are counted once a step as the device stores them; of an embedding table only
//! the rows of the step's tokens; of experts those that so many tokens choose if they choose evenly; of a cache every
//! position that is seen, once. Activations, logits and what is written are not counted, nor is arithmetic other than
//! products, contractions and attention. What an op has to do says the op ([`Op::work`]); here it is summed. What a node
//! alone has to do is told with the activations that it moves ([`activation_bytes`]), which no other node may share. Knows
//! nothing of devices and of how fast they are.

use crate::target::Target;
use std::collections::BTreeMap;
use std::ops::AddAssign;
use yirage_ir::cost::{Reads, StepSizes};
use yirage_ir::region::RegionGraph;
use yirage_ir::{Format, Graph, Node, NodeKind, Op, Type, ValueId, ValueSource};

pub use yirage_ir::cost::SequenceSpan;

/// Bytes and operations.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Work {
    /// Bytes of weights that are read.
    pub weight_bytes: f64,
    /// Bytes of cached keys and values that are read.
    pub cache_bytes: f64,
    /// Operations of products by the format of their weights; a multiplication and its addition are two.
    pub matmul_ops: Vec<(Format, f64)>,
    /// Operations that are f32 on any device: attention, contractions, and products with weights in slices.
    pub f32_ops: f64,
}

impl Work {
    /// All bytes.
    pub fn bytes(&self) -> f64 {
        self.weight_bytes + self.cache_bytes
    }

    /// All operations.
    pub fn ops(&self) -> f64 {
        self.f32_ops + self.matmul_ops.iter().map(|(_, ops)| ops).sum::<f64>()
    }

    fn add_matmul_ops(&mut self, format: Format, ops: f64) {
        match self.matmul_ops.iter_mut().find(|(f, _)| *f == format) {
            Some((_, sum)) => *sum += ops,
            None => self.matmul_ops.push((format, ops)),
        }
    }
}

impl AddAssign<&Work> for Work {
    fn add_assign(&mut self, other: &Work) {
        self.weight_bytes += other.weight_bytes;
        self.cache_bytes += other.cache_bytes;
        self.f32_ops += other.f32_ops;
        other.matmul_ops.iter().for_each(|&(format, ops)| self.add_matmul_ops(format, ops));
    }
}

/// The ops of a graph and what they read, from which the work of each step is summed.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Costs {
    ops: Vec<CostedOp>,
}

/// An op with its inputs.
#[derive(Clone, PartialEq, Debug)]
struct CostedOp {
    op: Op,
    ins: Vec<Type>,
    /// For each input the weight or state that it is, if it is one, or a tile of.
    resident_inputs: Vec<Option<ResidentInput>>,
    /// How often it is run: once but in a loop over tiles.
    times: f64,
}

/// A weight or state on the device.
#[derive(Clone, Copy, PartialEq, Debug)]
struct ResidentInput {
    id: ValueId,
    /// Of all of a weight, or of one position of a state.
    bytes: f64,
    is_kv_cache: bool,
    /// How many outermost parts it has.
    parts: f64,
}

/// What the weights and states of a graph take on a device.
pub trait ResidentSizes {
    /// Bytes of the weight called `name`.
    fn weight(&self, name: &str) -> u64;
    /// Bytes of one position of the state called `name`.
    fn position(&self, name: &str) -> f64;
}

impl Costs {
    /// Of the nodes of a lowered graph.
    pub fn new(graph: &Graph, sizes: &dyn ResidentSizes) -> Costs {
        Costs::of_all([(graph, sizes)])
    }

    /// Of the nodes of several lowered graphs that a step runs one after the other, such as the stages of a pipeline. Weights of
    /// one name in two of them are two.
    pub fn of_all<'g>(graphs: impl IntoIterator<Item = (&'g Graph, &'g dyn ResidentSizes)>) -> Costs {
        let (mut costs, mut first) = (Costs::default(), 0);
        for (graph, sizes) in graphs {
            let held = |id: ValueId| {
                let input = resident_input(graph, id, sizes)?;
                Some(ResidentInput { id: ValueId(first + input.id.0), ..input })
            };
            costs.add_graph(graph, &held, 1.0);
            first += graph.values.len() as u32;
        }
        costs
    }

    /// Of one node of a lowered graph.
    pub fn of_node(graph: &Graph, node: &Node, sizes: &dyn ResidentSizes) -> Costs {
        let mut costs = Costs::default();
        costs.add_node(graph, node, &|id| resident_input(graph, id, sizes), 1.0);
        costs
    }

    /// Adds the nodes of a graph, or of a region, which is run so often; `held` says what a value of it is on the device.
    fn add_graph(&mut self, graph: &Graph, held: &dyn Fn(ValueId) -> Option<ResidentInput>, times: f64) {
        graph.nodes.iter().for_each(|node| self.add_node(graph, node, held, times));
    }

    fn add_node(&mut self, graph: &Graph, node: &Node, held: &dyn Fn(ValueId) -> Option<ResidentInput>, times: f64) {
        match &node.kind {
            NodeKind::Op(op) => self.ops.push(CostedOp {
                op: op.clone(),
                ins: node.ins.iter().map(|&i| graph.ty(i).clone()).collect(),
                resident_inputs: node.ins.iter().map(|&i| held(i)).collect(),
                times,
            }),
            NodeKind::Region(region) => {
                let (blocks, loops) = region.tiled.as_ref().map_or((1.0, 1.0), |tiled| {
                    let blocks: f64 = tiled.grid.iter().map(|&n| f64::from(n)).product();
                    (blocks, f64::from(tiled.loops))
                });
                // The loop's body comes first.
                for (part, often) in region.parts().into_iter().zip([blocks * loops, blocks]) {
                    let outer = |id: ValueId| outer(node, &part, id).and_then(held);
                    self.add_graph(part.graph, &outer, times * often);
                }
            }
        }
    }

    /// The work of one step over these sequences.
    pub fn step(&self, spans: &[SequenceSpan]) -> Work {
        let step = StepSizes::of(spans);
        let mut work = Work::default();
        let mut whole = BTreeMap::new();
        for reader in &self.ops {
            let cost = reader.op.work(&reader.ins, &step);
            work.add(cost.format, cost.ops * reader.times);
            for (held, reads) in reader.resident_inputs.iter().zip(cost.reads) {
                match (held, reads) {
                    (Some(held), Reads::Whole) if !held.is_kv_cache => drop(whole.insert(held.id, held.bytes)),
                    (Some(held), Reads::Parts(n)) if !held.is_kv_cache => {
                        work.weight_bytes += held.bytes / held.parts * n
                    }
                    (Some(held), Reads::Positions(n)) if held.is_kv_cache => work.cache_bytes += held.bytes * n,
                    _ => {}
                }
            }
        }
        work.weight_bytes += whole.values().sum::<f64>();
        work
    }
}

/// Bytes of the step inputs and computed values that a node of a graph reads and makes in a step of these sizes, as the target
/// stores them. Of what it reads in parts, as rows of a table, the parts are counted.
pub fn activation_bytes(graph: &Graph, node: &Node, target: &Target, step: &StepSizes<'_>) -> f64 {
    let is_held = |id: ValueId| graph.kv_cache_of(id).is_some() || graph.value(id).source == ValueSource::Weight;
    let stored = |id: ValueId| target.storage_bytes(graph.ty(id), &step.dims).unwrap_or(u64::MAX) as f64;
    let cost = match &node.kind {
        NodeKind::Op(op) => {
            let ins: Vec<Type> = node.ins.iter().map(|&i| graph.ty(i).clone()).collect();
            op.work(&ins, step).reads
        }
        // What a region reads it reads whole.
        NodeKind::Region(_) => Vec::new(),
    };
    let mut bytes = 0.0;
    let mut read: Vec<ValueId> = Vec::new();
    for (at, &id) in node.ins.iter().enumerate().filter(|(_, id)| !is_held(**id)) {
        if read.contains(&id) {
            continue;
        }
        read.push(id);
        let outermost = graph.ty(id).shape.first().map_or(1, |d| d.get(&step.dims)).max(1) as f64;
        bytes += match cost.get(at) {
            Some(Reads::Parts(parts)) => stored(id) / outermost * parts.min(outermost),
            _ => stored(id),
        };
    }
    bytes + node.outs.iter().filter(|id| !is_held(**id)).map(|&id| stored(id)).sum::<f64>()
}

/// The weight or state of a graph that a value is, as the device has it.
fn resident_input(graph: &Graph, id: ValueId, sizes: &dyn ResidentSizes) -> Option<ResidentInput> {
    if let Some(id) = graph.kv_cache_of(id) {
        return Some(ResidentInput { id, bytes: sizes.position(&graph.value(id).name), is_kv_cache: true, parts: 1.0 });
    }
    let v = graph.value(id);
    let parts = v.ty.shape.first().and_then(|d| d.as_const()).unwrap_or(1).max(1) as f64;
    (v.source == ValueSource::Weight).then(|| ResidentInput {
        id,
        bytes: sizes.weight(&v.name) as f64,
        is_kv_cache: false,
        parts,
    })
}

/// The value of the graph around a region that a value of the region is.
fn outer(node: &Node, part: &RegionGraph<'_>, id: ValueId) -> Option<ValueId> {
    let id = part.graph.kv_cache_of(id).unwrap_or(id);
    let at = part.graph.inputs.iter().position(|&input| input == id)?;
    part.ins.get(at).copied().flatten().and_then(|at| node.ins.get(at).copied())
}

impl Work {
    fn add(&mut self, format: Option<Format>, ops: f64) {
        match format {
            Some(format) => self.add_matmul_ops(format, ops),
            None => self.f32_ops += ops,
        }
    }
}
