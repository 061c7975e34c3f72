//! Graph to text.

use super::lexer::is_word;
use crate::graph::{Graph, Node, NodeKind, ValueId, ValueSource};
use std::fmt::Write;

/// The text form of a graph.
pub fn print(graph: &Graph) -> String {
    let mut out = String::new();
    print_graph(graph, 0, &mut out);
    out
}

fn print_graph(graph: &Graph, indent: usize, out: &mut String) {
    let pad = "  ".repeat(indent);
    // Writing to a String cannot fail.
    let _ = writeln!(out, "{pad}graph {} {{", graph.name);
    for &i in &graph.inputs {
        let v = graph.value(i);
        let kind = match v.source {
            ValueSource::StepInput => "input",
            ValueSource::Weight => "weight",
            ValueSource::KvCache => "kv_cache",
            ValueSource::Node { .. } => "node",
        };
        let _ = writeln!(out, "{pad}  {kind} %{}: {}", v.name, v.ty);
    }
    for node in &graph.nodes {
        print_node(graph, node, indent + 1, out);
    }
    if !graph.outputs.is_empty() {
        let _ = writeln!(out, "{pad}  output {}", names(graph, &graph.outputs));
    }
    let _ = writeln!(out, "{pad}}}");
}

fn print_node(graph: &Graph, node: &Node, indent: usize, out: &mut String) {
    let pad = "  ".repeat(indent);
    let types: Vec<String> = node.outs.iter().map(|&o| graph.ty(o).to_string()).collect();
    let (outs, ins, types) = (names(graph, &node.outs), names(graph, &node.ins), types.join(", "));
    match &node.kind {
        NodeKind::Op(op) => {
            let _ = writeln!(out, "{pad}{outs} = {}{}({ins}): {types}", op.name(), print_attrs(&op.attrs()));
        }
        NodeKind::Region(region) => {
            let attrs = region.tiled.as_ref().map(|tiled| print_attrs(&tiled.attrs())).unwrap_or_default();
            let own_order = region.tiled.as_ref().is_some_and(|tiled| !tiled.keeps_order());
            let order = if own_order { " // adds up in an order of its own" } else { "" };
            let _ = writeln!(out, "{pad}{outs} = region {}{attrs}({ins}): {types}{order}", region.kind.name());
            region.graphs().for_each(|graph| print_graph(graph, indent + 1, out));
        }
    }
}

/// In braces, where there is one.
fn print_attrs(attrs: &[(&'static str, String)]) -> String {
    let attrs: Vec<String> = attrs.iter().map(|(n, v)| print_attr(n, v)).collect();
    if attrs.is_empty() { String::new() } else { format!("{{{}}}", attrs.join(", ")) }
}

/// In quotes, where the value is no single word.
fn print_attr(name: &str, value: &str) -> String {
    if !value.is_empty() && value.chars().all(is_word) {
        format!("{name}={value}")
    } else {
        format!("{name}=\"{value}\"")
    }
}

fn names(graph: &Graph, ids: &[ValueId]) -> String {
    let list: Vec<String> = ids.iter().map(|&i| format!("%{}", graph.value(i).name)).collect();
    list.join(", ")
}
