//! Graphs for graphviz: the DOT language.

use super::diagram::{Box, BoxKind, Diagram, Inside};
use std::fmt::Write;
use yirage_ir::Graph;

/// The graph in the DOT language: a node for each input, op and output, an edge for each operand, labelled with the
/// operand's type, a cluster for each region with a node for each of its inputs and outputs.
pub fn dot(graph: &Graph) -> String {
    let mut out = String::from("digraph {\n");
    // Writing to a String cannot fail.
    let _ = writeln!(out, "  label={};", quoted(&graph.name));
    out.push_str("  node [shape=box, style=\"rounded,filled\", fontname=\"monospace\", fontsize=11];\n");
    out.push_str("  edge [fontname=\"monospace\", fontsize=9];\n");
    let mut edges = String::new();
    nodes(&Diagram::of(graph), "n", 1, &mut out, &mut edges);
    out + &edges + "}\n"
}

/// Nodes, and edges, whose ends may lie in clusters.
fn nodes(diagram: &Diagram, prefix: &str, depth: usize, out: &mut String, edges: &mut String) {
    let pad = "  ".repeat(depth);
    for (at, shown) in diagram.boxes.iter().enumerate() {
        let id = format!("{prefix}{at}");
        let Some(inside) = &shown.inside else {
            let (label, tip) = (quoted(&label(shown)), quoted(&shown.tip));
            let _ = writeln!(out, "{pad}{id} [label={label}, tooltip={tip}, {}];", look(shown.kind));
            continue;
        };
        let _ = writeln!(out, "{pad}subgraph cluster_{id} {{");
        let _ = writeln!(out, "{pad}  label={}; tooltip={}; style=dashed;", quoted(&shown.title), quoted(&shown.tip));
        nodes(&inside.diagram, &format!("{id}_"), depth + 1, out, edges);
        let _ = writeln!(out, "{pad}}}");
    }
    for edge in &diagram.edges {
        let end = |at: usize, port: &dyn Fn(&Inside) -> usize| match &diagram.boxes[at].inside {
            Some(inside) => format!("{prefix}{at}_{}", port(inside)),
            None => format!("{prefix}{at}"),
        };
        let from = end(edge.from, &|inside| inside.outs[edge.output]);
        let to = end(edge.to, &|inside| inside.ins[edge.input]);
        let _ = writeln!(edges, "  {from} -> {to} [label={}];", quoted(&edge.ty));
    }
}

fn label(shown: &Box) -> String {
    [std::slice::from_ref(&shown.title), &shown.lines].concat().join("\n")
}

fn look(kind: BoxKind) -> &'static str {
    match kind {
        BoxKind::StepInput => "fillcolor=\"#e2f3e2\"",
        BoxKind::Weight => "fillcolor=\"#fdf0d5\"",
        BoxKind::KvCache => "fillcolor=\"#f0e4f7\"",
        BoxKind::Op | BoxKind::Region => "fillcolor=\"#e9f0fb\"",
        BoxKind::Output => "fillcolor=\"#f9dfe0\"",
        BoxKind::Port => "fillcolor=\"#ffffff\", height=0.2",
    }
}

/// A quoted text of DOT. A backslash is written twice, as it begins escapes in labels.
fn quoted(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 2);
    out.push('"');
    for c in text.chars() {
        match c {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            c if c.is_control() => out.push('\u{fffd}'),
            c => out.push(c),
        }
    }
    out.push('"');
    out
}
