//! The smallest part of a graph of which something is still wrong.

use super::RandomGraph;
use super::check::RandomGraphVerdict;
use yirage_hal::{Device, Record};
use yirage_ir::{Graph, ValueId, ValueSource};

impl RandomGraph {
    /// A part of the graph, as small as dropping outputs and cutting values loose makes it, that is wrong as well.
    #[must_use]
    pub fn smallest(&self, device: &dyn Device) -> RandomGraph {
        let wrong = |drawn: &RandomGraph| matches!(drawn.check(device), RandomGraphVerdict::Wrong(_));
        let mut best = self.clone();
        loop {
            let smaller = best.parts().into_iter().find(|part| wrong(part));
            let Some(smaller) = smaller else { return best };
            best = smaller;
        }
    }

    /// Parts that are smaller: with one output, with a value given as a step input.
    fn parts(&self) -> Vec<RandomGraph> {
        let graph = &self.setup.graph;
        let mut parts = Vec::new();
        let made = |v: &ValueId| matches!(graph.value(*v).source, ValueSource::Node { .. });
        if graph.outputs.len() > 1 {
            parts.extend(graph.outputs.iter().map(|&output| self.with(&[output], None)));
        }
        let values: Vec<ValueId> = (0..graph.values.len() as u32).map(ValueId).filter(made).collect();
        for &value in values.iter().rev() {
            if !graph.outputs.contains(&value) {
                parts.push(self.with(&[value], None));
                let ValueSource::Node { node, .. } = graph.value(value).source else { continue };
                let alone = graph.nodes[node as usize].outs.len() == 1 && graph.kv_cache_of(value).is_none();
                let plain = graph.ty(value).dtype.is_plain();
                parts.extend((alone && plain).then(|| self.with(&graph.outputs, Some(value))));
            }
        }
        let fewer = |part: &RandomGraph| part.setup.graph.values.len() < graph.values.len();
        parts.into_iter().filter(fewer).collect()
    }

    /// What these outputs need, `given` being a step input of what the reference makes.
    fn with(&self, outputs: &[ValueId], given: Option<ValueId>) -> RandomGraph {
        let mut out = self.clone();
        if let Some(value) = given {
            let mut whole = self.setup.clone();
            whole.graph.outputs = vec![value];
            let tensor = whole.reference().ok().and_then(|mut made| made.pop());
            let Some(tensor) = tensor.filter(|tensor| tensor.dtype.is_plain() && tensor.activation_format().is_none())
            else {
                return out;
            };
            out.setup.step_inputs.insert(out.setup.graph.value(value).name.clone(), Record::of(&tensor.memory()));
        }
        out.setup.graph = needed(&self.setup.graph, outputs, given);
        let names: Vec<&str> = out.setup.graph.inputs.iter().map(|&i| out.setup.graph.value(i).name.as_str()).collect();
        out.setup.weights.retain(|name, _| names.contains(&name.as_str()));
        out.setup.step_inputs.retain(|name, _| names.contains(&name.as_str()));
        out.setup.kv_caches.retain(|state| names.contains(&state.name.as_str()));
        out
    }
}

/// The graph without what `outputs` do not need; `given` is a step input.
fn needed(graph: &Graph, outputs: &[ValueId], given: Option<ValueId>) -> Graph {
    let mut live = vec![false; graph.values.len()];
    outputs.iter().for_each(|o| live[o.index()] = true);
    let runs = |node: &yirage_ir::Node, live: &[bool]| node.outs.iter().any(|o| live[o.index()] && Some(*o) != given);
    for node in graph.nodes.iter().rev() {
        if runs(node, &live) {
            node.ins.iter().chain(&node.outs).for_each(|v| live[v.index()] = true);
        }
    }
    let mut names = vec![ValueId(0); graph.values.len()];
    let mut out = Graph { name: graph.name.clone(), ..Graph::default() };
    for (i, value) in graph.values.iter().enumerate().filter(|(i, _)| live[*i]) {
        names[i] = ValueId(out.values.len() as u32);
        out.values.push(value.clone());
        let slot = given == Some(ValueId(i as u32));
        if slot || !matches!(value.source, ValueSource::Node { .. }) {
            out.inputs.push(names[i]);
        }
        if slot {
            out.values[names[i].index()].source = ValueSource::StepInput;
        }
    }
    for node in graph.nodes.iter().filter(|node| runs(node, &live)) {
        let mut node = node.clone();
        node.ins.iter_mut().chain(&mut node.outs).for_each(|v| *v = names[v.index()]);
        for (output, id) in node.outs.iter().enumerate() {
            out.values[id.index()].source = ValueSource::Node { node: out.nodes.len() as u32, output: output as u32 };
        }
        out.nodes.push(node);
    }
    out.outputs = outputs.iter().map(|o| names[o.index()]).collect();
    out
}
