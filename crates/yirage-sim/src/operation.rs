//! Operations of a vendor's library: nodes that are described by themselves, prepared once, and given a workspace.

use crate::kernel::Module;
use crate::memory::SimMemory;
use std::collections::{HashMap, HashSet};
use yirage_hal::driver::{Binding, BufferSlice, DriverError};
use yirage_ir::{Graph, Node, Value, ValueId, ValueSource, text};
use yirage_plan::WeightPlan;

/// What a workspace is full of when an operation begins and when it has ended: nobody keeps anything there.
const SPENT: u8 = 0x5a;

/// An operation that was prepared.
#[derive(Debug)]
pub(crate) struct SimOperation {
    module: Module,
    arguments: Vec<u8>,
    /// Bytes that it wants to work in.
    pub(crate) workspace: u64,
}

/// A node by itself: the bytes of its arguments, their number before them, then how its weights lie and a graph of it alone.
pub(crate) fn describe(graph: &Graph, weights: &WeightPlan, node: &Node, arguments: &[u8]) -> Vec<u8> {
    let mut descriptor = (arguments.len() as u32).to_le_bytes().to_vec();
    descriptor.extend(arguments);
    let own: HashSet<&str> = node.ins.iter().map(|&id| graph.value(id).name.as_str()).collect();
    let entries = weights.entries.iter().filter(|entry| own.contains(entry.name.as_str())).cloned().collect();
    descriptor.extend(WeightPlan { entries }.print().bytes());
    descriptor.extend(text::print(&alone(graph, node)).bytes());
    descriptor
}

/// A graph of one node. What other nodes make is an input here, and a KV cache one whatever was appended to it.
fn alone(graph: &Graph, node: &Node) -> Graph {
    let mut made = Graph { name: "operation".into(), ..Graph::default() };
    let mut ids: HashMap<ValueId, ValueId> = HashMap::new();
    let mut ins = Vec::new();
    for &id in &node.ins {
        ins.push(*ids.entry(id).or_insert_with(|| {
            let (value, at) = (graph.value(id), ValueId(made.values.len() as u32));
            let source = match (graph.kv_cache_of(id), value.source) {
                (Some(_), _) => ValueSource::KvCache,
                (None, ValueSource::Node { .. }) => ValueSource::StepInput,
                (None, source) => source,
            };
            made.values.push(Value { source, ..value.clone() });
            made.inputs.push(at);
            at
        }));
    }
    let mut outs = Vec::new();
    for (output, &id) in (0..).zip(&node.outs) {
        outs.push(ValueId(made.values.len() as u32));
        made.values.push(Value { source: ValueSource::Node { node: 0, output }, ..graph.value(id).clone() });
    }
    made.outputs = outs.clone();
    made.nodes = vec![Node { kind: node.kind.clone(), ins, outs }];
    made
}

impl SimOperation {
    /// Makes a described operation ready for operands of these bytes.
    pub(crate) fn new(descriptor: &[u8], bindings: &[Binding]) -> Result<SimOperation, DriverError> {
        let short = || DriverError::Failed { call: "prepare", why: "the descriptor is cut off".into() };
        let (length, rest) = descriptor.split_first_chunk().ok_or_else(short)?;
        let (arguments, code) = rest.split_at_checked(u32::from_le_bytes(*length) as usize).ok_or_else(short)?;
        let written = bindings.iter().filter(|binding| binding.access.writes()).map(|binding| binding.slice.bytes);
        let module = Module::new(code)?;
        module.node("0")?;
        // As real ones do, it wants room for what it writes, and some for itself.
        Ok(SimOperation { module, arguments: arguments.to_vec(), workspace: written.sum::<u64>().saturating_add(64) })
    }

    pub(crate) fn run(
        &self,
        bindings: &[Binding],
        workspace: Option<BufferSlice>,
        memory: &mut SimMemory,
    ) -> Result<(), DriverError> {
        let given = workspace.filter(|given| given.bytes >= self.workspace);
        let why = || format!("a workspace of {} bytes is wanted, {workspace:?} is given", self.workspace);
        let given = given.ok_or_else(|| DriverError::Failed { call: "operation", why: why() })?;
        memory.write(given)?.fill(SPENT);
        self.module.run(0, bindings, &self.arguments, memory)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_node_stands_by_itself() {
        let body = "input %x: f32[Tokens, 8] weight %w: f32[8] kv_cache %kv: f32[32, 1, 8] input %at: i32[Tokens]
            %n = rms_norm{eps=1e-5, width=8, unit_offset=false}(%x, %w): f32[Tokens, 8]
            %a = kv_append{kv_heads=1}(%kv, %n, %at): f32[32, 1, 8]
            %b = kv_append{kv_heads=1}(%a, %n, %at): f32[32, 1, 8] output %b";
        let graph = text::parse(&format!("graph g {{ {body} }}")).unwrap();
        for (node, sources) in [
            (0, vec![ValueSource::StepInput, ValueSource::Weight]),
            (2, vec![ValueSource::KvCache, ValueSource::StepInput, ValueSource::StepInput]),
        ] {
            let descriptor = describe(&graph, &WeightPlan::default(), &graph.nodes[node], &[1, 2, 3]);
            let text = str::from_utf8(&descriptor[7..]).unwrap();
            let alone = text::parse(text).unwrap();
            assert_eq!(alone.values.iter().map(|value| value.source).take(sources.len()).collect::<Vec<_>>(), sources);
            let operation = SimOperation::new(&descriptor, &[]).unwrap();
            assert_eq!((operation.arguments, operation.workspace), (vec![1, 2, 3], 64));
        }
        assert!(SimOperation::new(&[9, 0, 0, 0, 1], &[]).is_err() && SimOperation::new(&[0; 3], &[]).is_err());
    }
}
