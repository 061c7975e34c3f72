//! JSON both ways: equal graphs and hashes; what is malformed has a typed error with its place.

use crate::support::{layers, llama_block, regions};
use yirage_graph::{JsonError, KernelGraph, from_json, to_json};
use yirage_ir::op::{Fill, Map, Op};
use yirage_ir::rng::Rng;
use yirage_ir::{DType, Expr, Graph, GraphBuilder, Type};

fn round_trip(graph: &Graph) {
    let text = to_json(graph);
    let again = from_json(&text).unwrap_or_else(|e| panic!("{e}\n{text}"));
    assert_eq!(&again, graph);
    assert_eq!((again.stable_hash(), again.structural_hash()), (graph.stable_hash(), graph.structural_hash()));
    assert_eq!(to_json(&again), text);
}

#[test]
fn graphs_come_back() {
    layers().iter().for_each(|(_, graph)| round_trip(graph));
}

/// Every op with every attribute that its cases have.
#[test]
fn every_op_comes_back() {
    for case in Op::all_cases() {
        let mut g = GraphBuilder::new(case.name.clone());
        let ins: Result<Vec<_>, _> =
            case.ins.iter().enumerate().map(|(i, t)| g.weight(&format!("x{i}"), t.ty())).collect();
        let Ok(ins) = ins else { continue };
        let types: Vec<Type> = case.ins.iter().map(yirage_ir::Tensor::ty).collect();
        let Ok(outs) = case.op.infer(&types) else { continue };
        let names: Vec<String> = (0..outs.len()).map(|i| format!("y{i}")).collect();
        let made = g.node(yirage_ir::NodeKind::Op(case.op.clone()), &ins, &names).unwrap();
        made.into_iter().for_each(|id| g.output(id));
        round_trip(&g.finish());
    }
}

#[test]
fn inputs_keep_their_place_among_nodes_and_odd_values_survive() {
    let mut g = GraphBuilder::new("a \"name\" with \u{1}\n and \\");
    let x = g.step_input("x", Type::new(DType::F32, [2u32, 3])).unwrap();
    let y = g.op("y", Map { expr: Expr::input(0).cast(DType::I32) }, &[x]).unwrap();
    let strided = Type { strides: Some(vec![1, 2]), ..Type::new(DType::I32, [2u32, 3]) };
    let w = g.weight("w", strided).unwrap();
    let z = g.op("z", Map::of(yirage_ir::expr::Func::Add), &[y, w]).unwrap();
    for (n, value) in [f32::NAN, f32::INFINITY, -0.0, 1e-45, 16777216.0].into_iter().enumerate() {
        let f =
            g.op(&format!("f{n}"), Fill { value: value.into(), shape: yirage_ir::attr::List(vec![2]) }, &[]).unwrap();
        g.output(f);
    }
    g.step_input("late", Type::new(DType::Bool, [1u32])).unwrap();
    g.output(z);
    g.output(z);
    round_trip(&g.finish());
}

#[test]
fn a_graph_written_by_hand_is_read() {
    let text = r#"{"yirage-graph": 2, "graph": {"name": "g", "inputs": [
        {"name": "x", "kind": "input", "dtype": "f32", "shape": ["Tokens", 8]}],
        "nodes": [{"op": "reduce", "attrs": {"kind": "sum", "axes": [1], "keep": true}, "inputs": ["x"], "outputs": [{"name": "y"}]}],
        "outputs": ["y"]}}"#;
    let graph = from_json(text).unwrap();
    assert_eq!(graph.ty(graph.outputs[0]).to_string(), "f32[Tokens, 1]");
    round_trip(&graph);
}

#[test]
fn a_built_graph_is_the_one_that_is_read() {
    let mut g = KernelGraph::new("g");
    let x = g.new_input(&[4, 8], Some(&[1, 4]), DType::F32).unwrap();
    let y = g.softmax(x, 0).unwrap();
    g.mark_output(y, None).unwrap();
    round_trip(&g.finish().unwrap());
}

/// Replaces a part of a sound document and wants the error at a place.
fn broken(from: &str, to: &str, path: &str, what: &str) {
    let good = r#"{"yirage-graph": 2, "graph": {"name": "g", "inputs": [{"name": "x", "kind": "input", "dtype": "f32", "shape": [2, 3]}], "nodes": [{"op": "view", "attrs": {"form": "permute(1, 0)"}, "inputs": ["x"], "outputs": [{"name": "y", "dtype": "f32", "shape": [3, 2]}]}], "outputs": ["y"]}}"#;
    from_json(good).unwrap();
    assert!(good.contains(from), "{from}");
    let error = from_json(&good.replacen(from, to, 1)).unwrap_err();
    let JsonError::At { path: is, what: says } = &error else { panic!("{to}: {error}") };
    assert_eq!(is, path, "{to}: {error}");
    assert!(says.contains(what), "{to}: {error}");
}

#[test]
fn what_is_malformed_is_told_with_its_place() {
    broken("[2, 3]", "[2, -3]", "graph.inputs[0].shape[1]", "a size below 2^32");
    broken("[2, 3]", "[2, 4294967296]", "graph.inputs[0].shape[1]", "a size below 2^32");
    broken("[2, 3]", "[2, \"Batch\"]", "graph.inputs[0].shape[1]", "`Batch` is no symbol");
    broken("[2, 3]", "[1, 1, 1, 1, 1, 1, 1, 1, 1]", "graph.inputs[0].shape", "9 dimensions");
    broken("[2, 3]", "[2, 3], \"strides\": [1]", "graph.inputs[0]", "one stride a dimension");
    broken("[2, 3]", "[2, 3], \"after\": 2", "graph.inputs[0].after", "2 of 1 nodes");
    broken("[2, 3]", "[2, 3], \"after\": 1", "graph.nodes[0].inputs[0]", "`x`");
    broken("[2, 3]", "[2, 3], \"color\": 1", "graph.inputs[0].color", "unknown field");
    broken("\"f32\"", "\"f33\"", "graph.inputs[0].dtype", "no dtype `f33`");
    broken("\"input\"", "\"slot\"", "graph.inputs[0].kind", "`slot`");
    broken("\"view\"", "\"viev\"", "graph.nodes[0].op", "no op `viev`");
    broken("permute(1, 0)", "permute(1, 1)", "graph.nodes[0]", "each dimension is wanted once");
    broken("permute(1, 0)", "turn(1, 0)", "graph.nodes[0].attrs", "`form` cannot be `turn(1, 0)`");
    broken("\"form\":", "\"from\":", "graph.nodes[0].attrs", "`form` is missing");
    broken("{\"form\"", "{\"form\": \"reshape(6)\", \"form\"", "graph.nodes[0].attrs", "no attribute `form`");
    broken("\"permute(1, 0)\"", "1.5", "graph.nodes[0].attrs.form", "whole number");
    broken("\"permute(1, 0)\"", "null", "graph.nodes[0].attrs.form", "whole number");
    broken("[\"x\"]", "[\"z\"]", "graph.nodes[0].inputs[0]", "`z`");
    broken("[\"x\"]", "[\"y\"]", "graph.nodes[0].inputs[0]", "`y`");
    broken("[3, 2]", "[2, 3]", "graph.nodes[0].outputs[0].shape", "declared f32[2, 3], but is f32[3, 2]");
    broken("\"y\", \"dtype\": \"f32\"", "\"y\", \"dtype\": \"f16\"", "graph.nodes[0].outputs[0].dtype", "f16");
    broken("[\"y\"]", "[\"y\", \"q\"]", "graph.outputs[1]", "`q`");
    broken("{\"op\": \"view\", ", "{\"op\": \"view\", \"region\": \"rows\", ", "graph.nodes[0]", "either");
    broken("{\"name\": \"y\"", "{\"name\": \"x\"", "graph.nodes[0]", "`x` is taken");
    broken("\"outputs\": [\"y\"]", "\"outputs\": \"y\"", "graph.outputs", "expected a sequence");
    broken("\"name\": \"g\"", "\"name\": 3", "graph.name", "expected a string");
    let good = to_json(&llama_block());
    let old = from_json(&good.replacen("2,", "1,", 1)).unwrap_err();
    assert!(matches!(old, JsonError::Version { version: 1 }), "{old}");
    assert!(
        old.to_string().contains("reads version 2; save the graph anew")
            && old.to_string().contains("cargo xtask migrate-text"),
        "{old}"
    );
    assert!(matches!(from_json(&good.replacen("2,", "3,", 1)), Err(JsonError::Version { version: 3 })));
    assert!(from_json("").is_err() && from_json("[]").is_err() && from_json("{}").is_err());
    assert!(from_json(&format!("{good} x")).unwrap_err().to_string().contains("the end"));
}

#[test]
fn limits_are_told() {
    let error = from_json(&" ".repeat(yirage_graph::json::MAX_BYTES + 1)).unwrap_err();
    assert!(error.to_string().contains("16777217 bytes"), "{error}");
    let deep = "{\"yirage-graph\": 2, \"graph\": ".to_owned() + &"[".repeat(100_000);
    assert!(from_json(&deep).is_err());
    let node = r#"{"op":"a","inputs":[],"outputs":[]}"#;
    let many = vec![node; yirage_graph::json::MAX_VALUES + 1].join(",");
    let many =
        format!("{{\"yirage-graph\":2,\"graph\":{{\"name\":\"g\",\"inputs\":[],\"nodes\":[{many}],\"outputs\":[]}}}}");
    assert!(from_json(&many).unwrap_err().to_string().contains("131072 inputs and nodes"));
    // A region within a region within a region and so on.
    let mut graph = r#"{"name":"g","inputs":[],"nodes":[],"outputs":[]}"#.to_owned();
    for _ in 0..6 {
        let node = format!(r#"{{"region":"rows","graph":{graph},"inputs":[],"outputs":[]}}"#);
        graph = format!(r#"{{"name":"g","inputs":[],"nodes":[{node}],"outputs":[]}}"#);
    }
    let error = from_json(&format!("{{\"yirage-graph\":2,\"graph\":{graph}}}")).unwrap_err();
    assert!(error.to_string().contains("nest deeper than 4"), "{error}");
}

/// Documents with bytes changed, cut out and doubled are refused or read, and what is read is sound.
#[test]
fn damaged_documents_never_break_the_reader() {
    let mut rng = Rng::new(5);
    let documents = [to_json(&llama_block()), to_json(&regions())];
    let mut read = 0;
    for round in 0..4000 {
        let mut bytes = documents[round % 2].clone().into_bytes();
        for _ in 0..1 + rng.below(3) {
            let at = rng.index(bytes.len());
            let end = (at + rng.index(12)).min(bytes.len());
            match rng.below(3) {
                0 => bytes[at] = b"0123456789\"{}[],:aefx-"[rng.index(22)],
                1 => drop(bytes.drain(at..end)),
                _ => {
                    let part = bytes[at..end].to_vec();
                    bytes.splice(at..at, part);
                }
            }
        }
        if let Ok(graph) = String::from_utf8(bytes).map_err(drop).and_then(|text| from_json(&text).map_err(drop)) {
            yirage_ir::verify(&graph).unwrap();
            round_trip(&graph);
            read += 1;
        }
    }
    assert!(read > 40, "only {read} were read");
}

#[test]
fn tiled_regions_come_back_and_say_what_is_missing() {
    let graph = yirage_ir::text::parse(
        "graph g { input %x: f32[4, 256]
         %y = region tiled{grid=\"[2, 1, 1]\", loops=2, ins=\"[0 - - loop 1]\", outs=\"[0 - -]\",
             accumulate=\"[continue]\", running=\"[]\", reads=\"[]\"}(%x): f32[4, 1]
           graph body { input %t: f32[2, 128]
             %s = reduce{kind=sum, axes=\"[1]\", keep=true}(%t): f32[2, 1] output %s }
           graph block { input %a: f32[2, 1] %b = map{expr=\"neg(x0)\"}(%a): f32[2, 1] output %b }
         output %y }",
    )
    .unwrap();
    round_trip(&graph);
    let text = to_json(&graph);
    let refused = |text: String| from_json(&text).unwrap_err().to_string();
    let without_block = refused(text.replace("\"block\":", "\"graph\":"));
    assert!(without_block.contains("graph"), "{without_block}");
    let unknown = refused(text.replace("\"loops\":", "\"loop\":"));
    assert!(unknown.contains("attrs") && unknown.contains("loop"), "{unknown}");
    let not_tiled = refused(text.replace("\"tiled\"", "\"rows\""));
    assert!(not_tiled.contains("belong to tiled regions"), "{not_tiled}");
}
