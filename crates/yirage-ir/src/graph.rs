//! Graphs: values and the nodes that make them, immutable once built.
//!
//! A graph says what a model computes and nothing of how: no device, no layout, no kernel. The same graph serves
//! prefill and decode, because its token dimension is symbolic.

use crate::op::Op;
use crate::region::Region;
use crate::types::{Type, TypeError};
use std::collections::HashSet;
use thiserror::Error;

/// A value of one graph.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub struct ValueId(pub u32);

impl ValueId {
    /// Position in [`Graph::values`].
    pub fn index(self) -> usize {
        self.0 as usize
    }
}

/// Where a value comes from.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum ValueSource {
    /// Given anew for each step: ids, positions, tables, sampling parameters, or an output of another graph. Nothing else
    /// may change between steps.
    StepInput,
    /// A weight, fixed after load.
    Weight,
    /// Cache memory that outlives the step.
    KvCache,
    /// Output `output` of node `node`.
    Node {
        /// Position in [`Graph::nodes`].
        node: u32,
        /// Which of its outputs.
        output: u32,
    },
}

/// A value.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Value {
    /// Unique within the graph: letters, digits, `_` and `.`.
    pub name: String,
    /// Its type.
    pub ty: Type,
    /// Where it comes from.
    pub source: ValueSource,
}

/// What a node does.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub enum NodeKind {
    /// One op.
    Op(Op),
    /// Several ops fused: run as one kernel.
    Region(Box<Region>),
}

/// A node.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Node {
    /// What it does.
    pub kind: NodeKind,
    /// Its inputs.
    pub ins: Vec<ValueId>,
    /// Its outputs.
    pub outs: Vec<ValueId>,
}

impl Node {
    /// The op's name or the region's kind.
    pub fn name(&self) -> &str {
        match &self.kind {
            NodeKind::Op(op) => op.name(),
            NodeKind::Region(r) => r.kind.name(),
        }
    }
}

/// A graph. Nodes are in an order in which they can run.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Default)]
pub struct Graph {
    /// The name of what is computed.
    pub name: String,
    /// All values.
    pub values: Vec<Value>,
    /// All nodes.
    pub nodes: Vec<Node>,
    /// Slots, weights and states, in the order they were declared.
    pub inputs: Vec<ValueId>,
    /// What the graph gives back.
    pub outputs: Vec<ValueId>,
}

impl Graph {
    /// A value.
    pub fn value(&self, id: ValueId) -> &Value {
        &self.values[id.index()]
    }

    /// The type of a value.
    pub fn ty(&self, id: ValueId) -> &Type {
        &self.value(id).ty
    }

    /// The state input that a value names, possibly after updates, in regions too; none for other values.
    pub fn kv_cache_of(&self, mut id: ValueId) -> Option<ValueId> {
        // A chain of updates may be long: one turn an update.
        loop {
            let ValueSource::Node { node, output } = self.value(id).source else {
                return (self.value(id).source == ValueSource::KvCache).then_some(id);
            };
            let node = &self.nodes[node as usize];
            id = match &node.kind {
                NodeKind::Op(op) => {
                    let state = op.updates().filter(|state| state.output == output as usize)?;
                    *node.ins.get(state.input)?
                }
                // Tiles are of no state.
                NodeKind::Region(r) if r.tiled.is_some() => return None,
                NodeKind::Region(r) => {
                    let inner = r.graph.kv_cache_of(r.graph.outputs[output as usize])?;
                    let at = r.graph.inputs.iter().position(|&i| i == inner)?;
                    node.ins[at]
                }
            };
        }
    }

    /// The value called `name`.
    pub fn find(&self, name: &str) -> Option<ValueId> {
        self.values.iter().position(|v| v.name == name).map(|i| ValueId(i as u32))
    }

    /// Inputs of one kind, in declaration order.
    pub fn inputs_of(&self, source: ValueSource) -> impl Iterator<Item = ValueId> {
        self.inputs.iter().copied().filter(move |&id| self.value(id).source == source)
    }
}

/// Checks a value's type, and that what outlives a step has a size that no step changes.
pub(crate) fn check_value(ty: &Type, source: ValueSource) -> Result<(), TypeError> {
    ty.check()?;
    match source {
        ValueSource::Weight | ValueSource::KvCache if !ty.is_fixed() => {
            Err(TypeError::new(format!("{ty}: weights and KV caches have fixed dimensions")))
        }
        _ => Ok(()),
    }
}

/// What is wrong with a graph being built.
#[derive(Clone, PartialEq, Eq, Debug, Error)]
pub enum BuildError {
    /// An op does not accept its inputs.
    #[error("`{value}` = {op}: {source}")]
    Type {
        /// The value to be made.
        value: String,
        /// The op.
        op: String,
        /// What it says.
        source: TypeError,
    },
    /// Two values have one name.
    #[error("the name `{0}` is taken")]
    Duplicate(String),
    /// A name that the text form could not hold.
    #[error("the name `{0}` is not made of letters, digits, `_` and `.`")]
    BadName(String),
    /// An op with several outputs where one is wanted.
    #[error("`{value}` = {op} has {outputs} outputs")]
    Outputs {
        /// The value to be made.
        value: String,
        /// The op.
        op: String,
        /// How many it has.
        outputs: usize,
    },
}

/// Builds a graph, checking each node's types as it is added.
#[derive(Clone, Debug, Default)]
pub struct GraphBuilder {
    graph: Graph,
    names: HashSet<String>,
}

impl GraphBuilder {
    /// An empty graph.
    pub fn new(name: impl Into<String>) -> GraphBuilder {
        GraphBuilder { graph: Graph { name: name.into(), ..Graph::default() }, names: HashSet::new() }
    }

    fn add_value(&mut self, name: String, ty: Type, source: ValueSource) -> Result<ValueId, BuildError> {
        let legal = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '.';
        if name.is_empty() || !name.chars().all(legal) {
            return Err(BuildError::BadName(name));
        }
        check_value(&ty, source).map_err(|source| BuildError::Type {
            value: name.clone(),
            op: "type".into(),
            source,
        })?;
        if !self.names.insert(name.clone()) {
            return Err(BuildError::Duplicate(name));
        }
        self.graph.values.push(Value { name, ty, source });
        Ok(ValueId(self.graph.values.len() as u32 - 1))
    }

    fn input(&mut self, name: &str, ty: Type, source: ValueSource) -> Result<ValueId, BuildError> {
        let id = self.add_value(name.to_string(), ty, source)?;
        self.graph.inputs.push(id);
        Ok(id)
    }

    /// Declares an input of any kind but [`ValueSource::Node`].
    pub fn declare(&mut self, name: &str, ty: Type, source: ValueSource) -> Result<ValueId, BuildError> {
        debug_assert!(!matches!(source, ValueSource::Node { .. }));
        self.input(name, ty, source)
    }

    /// Declares a value given anew for each step.
    pub fn step_input(&mut self, name: &str, ty: Type) -> Result<ValueId, BuildError> {
        self.input(name, ty, ValueSource::StepInput)
    }

    /// Declares a weight.
    pub fn weight(&mut self, name: &str, ty: Type) -> Result<ValueId, BuildError> {
        self.input(name, ty, ValueSource::Weight)
    }

    /// Declares a cache state, of keys and values or of a recurrence; `ty` is the type of one block.
    pub fn kv_cache(&mut self, name: &str, ty: Type) -> Result<ValueId, BuildError> {
        self.input(name, ty, ValueSource::KvCache)
    }

    /// The type of a value.
    pub fn ty(&self, id: ValueId) -> &Type {
        self.graph.ty(id)
    }

    /// Adds a node with named outputs.
    pub fn node(&mut self, kind: NodeKind, ins: &[ValueId], names: &[String]) -> Result<Vec<ValueId>, BuildError> {
        let label = || names.first().cloned().unwrap_or_default();
        let op_name = match &kind {
            NodeKind::Op(op) => op.name().to_string(),
            NodeKind::Region(r) => format!("region {}", r.kind.name()),
        };
        let types: Vec<Type> = ins.iter().map(|&i| self.ty(i).clone()).collect();
        let outs = match &kind {
            NodeKind::Op(op) => op.infer(&types.iter().map(Type::dense).collect::<Vec<_>>()),
            NodeKind::Region(r) => r.infer(&types),
        };
        let outs = outs.map_err(|source| BuildError::Type { value: label(), op: op_name.clone(), source })?;
        if outs.len() != names.len() {
            return Err(BuildError::Outputs { value: label(), op: op_name, outputs: outs.len() });
        }
        let node = self.graph.nodes.len() as u32;
        let mut ids = Vec::with_capacity(outs.len());
        for (output, (ty, name)) in outs.into_iter().zip(names).enumerate() {
            ids.push(self.add_value(name.clone(), ty, ValueSource::Node { node, output: output as u32 })?);
        }
        self.graph.nodes.push(Node { kind, ins: ins.to_vec(), outs: ids.clone() });
        Ok(ids)
    }

    /// Adds an op with one output.
    pub fn op(&mut self, name: &str, op: impl Into<Op>, ins: &[ValueId]) -> Result<ValueId, BuildError> {
        Ok(self.node(NodeKind::Op(op.into()), ins, &[name.to_string()])?[0])
    }

    /// Adds an op with several outputs.
    pub fn op_multi(&mut self, names: &[&str], op: impl Into<Op>, ins: &[ValueId]) -> Result<Vec<ValueId>, BuildError> {
        let names: Vec<String> = names.iter().map(|n| n.to_string()).collect();
        self.node(NodeKind::Op(op.into()), ins, &names)
    }

    /// Declares what the graph gives back.
    pub fn output(&mut self, id: ValueId) {
        self.graph.outputs.push(id);
    }

    /// What stands so far.
    pub fn graph(&self) -> &Graph {
        &self.graph
    }

    /// The finished graph.
    pub fn finish(self) -> Graph {
        self.graph
    }
}
