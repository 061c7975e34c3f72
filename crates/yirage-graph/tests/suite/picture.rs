//! Pictures: every op, edge, input and output is there, labels are escaped, nothing lies on anything.

use crate::support::{layers, llama_block, regions};
use yirage_graph::{dot, svg};
use yirage_ir::{Graph, NodeKind};

/// Boxes and edges of a graph, of regions their insides.
fn counts(graph: &Graph) -> (usize, usize) {
    let ends = graph.inputs.len() + graph.outputs.len();
    let mut all = (ends, graph.outputs.len());
    for node in &graph.nodes {
        all.1 += node.ins.len();
        match &node.kind {
            NodeKind::Op(_) => all.0 += 1,
            NodeKind::Region(region) => {
                let (boxes, edges) = counts(&region.graph);
                all = (all.0 + boxes, all.1 + edges);
            }
        }
    }
    all
}

/// The statements of a DOT text: what stands between braces and ends in `;` or a brace, texts in quotes kept whole.
fn statements(text: &str) -> Vec<String> {
    let (mut out, mut now, mut quoted, mut escaped) = (Vec::new(), String::new(), false, false);
    for c in text.chars() {
        if quoted {
            now.push(c);
            quoted = escaped || c != '"';
            escaped = !escaped && c == '\\';
            continue;
        }
        match c {
            '{' | '}' | ';' => out.push(std::mem::take(&mut now) + &c.to_string()),
            '"' => {
                quoted = true;
                now.push(c);
            }
            c => now.push(c),
        }
    }
    assert!(!quoted && now.trim().is_empty(), "unfinished: {now}");
    out.into_iter().map(|s| s.trim().to_owned()).collect()
}

#[test]
fn dot_has_every_box_and_edge() {
    for (name, graph) in layers() {
        let text = dot(&graph);
        let all = statements(&text);
        let depth = all.iter().fold(0i32, |depth, s| {
            let depth = depth + i32::from(s.ends_with('{')) - i32::from(s.ends_with('}'));
            assert!(depth >= 0, "{name}");
            depth
        });
        assert_eq!(depth, 0, "{name}");
        let edges: Vec<&String> = all.iter().filter(|s| s.contains(" -> ")).collect();
        let is_box = |s: &&String| s.starts_with('n') && !s.starts_with("node") && !s.contains(" -> ");
        let boxes: Vec<&str> = all.iter().filter(is_box).map(|s| s.split(' ').next().unwrap()).collect();
        assert_eq!((boxes.len(), edges.len()), counts(&graph), "{name}");
        for edge in edges {
            let ends: Vec<&str> = edge.split(' ').collect();
            assert!(boxes.contains(&ends[0]) && boxes.contains(&ends[2]), "{name}: {edge}");
        }
    }
}

#[test]
fn labels_are_escaped() {
    let text = dot(&regions());
    assert!(text.contains(r#"label="with \"regions\" <&>";"#), "{text}");
    let picture = svg(&regions()).unwrap();
    assert!(picture.contains("<title>with &quot;regions&quot; &lt;&amp;&gt;</title>"));
    let mut odd = regions();
    odd.name = "a\u{1}b\\n\"]; x -> y [label=\"".into();
    assert_eq!(statements(&dot(&odd)).len(), statements(&text).len());
    assert!(dot(&odd).contains(r#"label="a�b\\n\"]; x -> y [label=\"";"#));
    assert!(!svg(&odd).unwrap().contains('\u{1}'));
}

#[test]
fn regions_are_framed() {
    assert_eq!(dot(&regions()).matches("subgraph cluster_").count(), 2);
    assert_eq!(svg(&regions()).unwrap().matches("stroke-dasharray").count(), 2);
}

/// A rectangle of the picture: left, top, right, bottom.
type Area = (f64, f64, f64, f64);

fn areas(picture: &str) -> Vec<Area> {
    let number = |tag: &str, name: &str| {
        let (_, rest) = tag.split_once(&format!(" {name}=\"")).unwrap();
        rest.split_once('"').unwrap().0.parse::<f64>().unwrap()
    };
    let tags = picture.split("<rect").skip(2);
    tags.map(|tag| {
        let (x, y) = (number(tag, "x"), number(tag, "y"));
        (x, y, x + number(tag, "width"), y + number(tag, "height"))
    })
    .collect()
}

#[test]
fn boxes_lie_apart_and_frames_hold_what_is_theirs() {
    for (name, graph) in layers() {
        let picture = svg(&graph).unwrap();
        assert_eq!(picture.matches("<path class=\"e\"").count(), counts(&graph).1, "{name}");
        let all = areas(&picture);
        assert!(all.len() >= counts(&graph).0, "{name}");
        for (i, a) in all.iter().enumerate() {
            for b in &all[i + 1..] {
                let apart = a.2 <= b.0 || b.2 <= a.0 || a.3 <= b.1 || b.3 <= a.1;
                let holds = |a: &Area, b: &Area| a.0 <= b.0 && a.1 <= b.1 && a.2 >= b.2 && a.3 >= b.3;
                assert!(apart || holds(a, b) || holds(b, a), "{name}: {a:?} and {b:?}");
            }
        }
    }
}

#[test]
fn pictures_are_the_same_each_time_and_too_large_ones_are_refused() {
    assert_eq!(svg(&llama_block()), svg(&llama_block()));
    // A ladder: each of many ops reads the first one's result as well as the last one's.
    let mut g = yirage_ir::GraphBuilder::new("ladder");
    let x = g.step_input("x", yirage_ir::Type::new(yirage_ir::DType::F32, [4u32])).unwrap();
    let add = yirage_ir::op::Map::of(yirage_ir::expr::Func::Add);
    let first = g.op("t", add.clone(), &[x, x]).unwrap();
    let mut last = first;
    for n in 0..2000 {
        last = g.op(&format!("t{n}"), add.clone(), &[first, last]).unwrap();
    }
    g.output(last);
    let graph = g.finish();
    assert!(svg(&graph).unwrap_err().to_string().contains("2003 boxes"));
    assert!(dot(&graph).contains(" -> "));
}
