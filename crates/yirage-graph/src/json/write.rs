//! Graph to JSON.

use super::VERSION;
use super::form::{Attributes, GraphForm, InputForm, NodeForm, OutputForm, Size};
use serde::Serialize;
use yirage_ir::{Dim, Graph, Node, NodeKind, Type, Value, ValueId, ValueSource};

/// The JSON form of a sound graph ([`yirage_ir::verify()`]): a line for each input and node.
pub fn to_json(graph: &Graph) -> String {
    let form = graph_form(graph);
    format!(
        "{{\"yirage-graph\": {VERSION}, \"graph\": {{\n\"name\": {},\n\"inputs\": {},\n\"nodes\": {},\n\"outputs\": {}}}}}\n",
        line(&form.name),
        lines(&form.inputs),
        lines(&form.nodes),
        line(&form.outputs)
    )
}

fn line(value: &impl Serialize) -> String {
    serde_json::to_string(value).unwrap_or_else(|why| unreachable!("texts, numbers and lists of them: {why}"))
}

fn lines(values: &[impl Serialize]) -> String {
    let lines: Vec<String> = values.iter().map(|value| format!("\n  {}", line(value))).collect();
    format!("[{}]", lines.join(","))
}

fn graph_form(graph: &Graph) -> GraphForm {
    let name = |&id: &ValueId| graph.value(id).name.clone();
    GraphForm {
        name: graph.name.clone(),
        inputs: graph.inputs.iter().map(|&id| input_form(graph, id)).collect(),
        nodes: graph.nodes.iter().map(|node| node_form(graph, node)).collect(),
        outputs: graph.outputs.iter().map(name).collect(),
    }
}

fn input_form(graph: &Graph, id: ValueId) -> InputForm {
    let Value { name, ty, source } = graph.value(id);
    let kind = match source {
        ValueSource::StepInput => "input",
        ValueSource::Weight => "weight",
        ValueSource::KvCache => "kv_cache",
        ValueSource::Node { .. } => unreachable!("`{name}` is an input and an output of a node, in a verified graph"),
    };
    let before = |value: &Value| matches!(value.source, ValueSource::Node { output: 0, .. });
    InputForm {
        name: name.clone(),
        kind: kind.to_owned(),
        dtype: ty.elements().to_owned(),
        shape: sizes(ty),
        strides: ty.strides.clone(),
        after: graph.values[..id.index()].iter().filter(|v| before(v)).count(),
    }
}

fn node_form(graph: &Graph, node: &Node) -> NodeForm {
    let inputs = node.ins.iter().map(|&id| graph.value(id).name.clone()).collect();
    let outputs = node.outs.iter().map(|&id| output_form(graph.value(id))).collect();
    match &node.kind {
        NodeKind::Op(op) => {
            let (attrs, op) = (attributes(op.attrs()), Some(op.name().to_owned()));
            NodeForm { op, attrs, region: None, graph: None, block: None, inputs, outputs }
        }
        NodeKind::Region(region) => NodeForm {
            op: None,
            attrs: region.tiled.as_ref().map(|tiled| attributes(tiled.attrs())).unwrap_or_default(),
            region: Some(region.kind.name().to_owned()),
            graph: Some(Box::new(graph_form(&region.graph))),
            block: region.tiled.as_ref().map(|tiled| Box::new(graph_form(&tiled.block))),
            inputs,
            outputs,
        },
    }
}

fn attributes(list: Vec<(&'static str, String)>) -> Attributes {
    Attributes(list.into_iter().map(|(name, text)| (name.to_owned(), text)).collect())
}

fn output_form(value: &Value) -> OutputForm {
    let (dtype, shape) = (Some(value.ty.elements().to_owned()), Some(sizes(&value.ty)));
    OutputForm { name: value.name.clone(), dtype, shape }
}

fn sizes(ty: &Type) -> Vec<Size> {
    let size = |dim: &Dim| match dim {
        Dim::Const(n) => Size::Fixed(*n),
        Dim::Sym(sym) => Size::Symbol(sym.name().to_owned()),
    };
    ty.shape.iter().map(size).collect()
}
