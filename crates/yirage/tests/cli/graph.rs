//! `yirage graph`: a graph in a file, run with arrays, shown and checked; what is wrong is told with file and input.

use crate::support::{keys, path, yirage};
use std::path::Path;
use yirage_graph::{KernelGraph, Npy, npy, to_json};
use yirage_ir::{DType, Format, Graph, Type};

/// `silu(x w)`, and x itself.
pub(crate) fn gate(dtype: DType) -> Graph {
    let mut g = KernelGraph::new("gate");
    let x = g.named_input("x", &[2, 4], None, dtype).unwrap();
    let w = g.new_weight("w", &[4, 3], None, dtype).unwrap();
    let product = g.matmul(x, w).unwrap();
    let y = g.silu(product).unwrap();
    g.named_output("y", y, None).unwrap();
    g.named_output("product", product, None).unwrap();
    g.finish().unwrap()
}

fn floats(sizes: &[u32], values: &[f32]) -> Vec<u8> {
    let elements: Vec<u8> = values.iter().flat_map(|x| x.to_le_bytes()).collect();
    npy::write(&Type::new(DType::F32, sizes.iter().copied()), &elements).unwrap().0
}

/// Writes the graph and its arrays into a folder.
pub(crate) fn files(folder: &Path) {
    std::fs::write(folder.join("gate.json"), to_json(&gate(DType::F32))).unwrap();
    std::fs::write(folder.join("x.npy"), floats(&[2, 4], &[1.0, 2.0, 3.0, 4.0, -1.0, 0.0, 0.5, 2.0])).unwrap();
    let w = [0.5, -1.0, 0.0, 0.25, 1.0, 0.0, -0.5, 1.0, 0.0, 1.0, -0.25, 0.0];
    std::fs::write(folder.join("w.npy"), floats(&[4, 3], &w)).unwrap();
}

/// A folder with the files, and how the command line names one.
fn folder() -> (tempfile::TempDir, impl Fn(&str) -> String) {
    let folder = tempfile::tempdir().unwrap();
    files(folder.path());
    let at = folder.path().to_path_buf();
    (folder, move |name: &str| path(&at.join(name)))
}

fn read(file: &str) -> Vec<f32> {
    let bytes = std::fs::read(file).unwrap();
    let array = Npy::parse(&bytes).unwrap();
    let sizes: Vec<u32> = array.header().shape.iter().map(|&n| n as u32).collect();
    let (memory, _) = array.memory(&Type::new(DType::F32, sizes)).unwrap();
    memory.as_chunks().0.iter().map(|b| f32::from_le_bytes(*b)).collect()
}

pub(crate) fn input() {
    let (_folder, file) = folder();
    let ran =
        |x: &str| yirage(&["graph", "run", &file("gate.json"), "--input", x, "--input", &file("w.npy")]).ran().code;
    assert_eq!((ran(&file("x.npy")), ran(&file("no.npy"))), (0, 1));
}

pub(crate) fn output() {
    let (_folder, file) = folder();
    let inputs = ["--input", &file("x.npy"), "--input", &file("w.npy"), "--output", &file("y.npy")];
    assert_eq!(yirage(&[&["graph", "run", &file("gate.json")], &inputs[..]].concat()).ran().code, 0);
    assert_eq!(read(&file("y.npy")).len(), 6);
}

/// What `graph show` prints with this option.
fn shown(option: &str) -> String {
    let (_folder, file) = folder();
    yirage(&["graph", "show", &file("gate.json"), option]).ran().out
}

pub(crate) fn dot() {
    assert!(shown("--dot").starts_with("digraph"));
}

pub(crate) fn svg() {
    assert!(shown("--svg").starts_with("<svg"));
}

#[test]
fn a_graph_is_run_with_arrays() {
    let (_folder, file) = folder();
    let (x, w) = (format!("x={}", file("x.npy")), format!("w={}", file("w.npy")));
    let (y, p) = (format!("y={}", file("y.npy")), format!("product={}", file("p.npy")));
    let run = ["graph", "run", &file("gate.json"), "--input", &x, "--input", &w];
    let ran = yirage(&[&run[..], &["--output", &y, "--output", &p]].concat()).ran();
    assert_eq!(ran.code, 0, "{}", ran.err);
    assert_eq!(ran.out, format!("y: f32[2, 3] -> {}\nproduct: f32[2, 3] -> {}\n", file("y.npy"), file("p.npy")));
    // By hand.
    let product = [3.5, 3.0, 0.0, 1.25, 1.0, 0.0];
    assert_eq!(read(&file("p.npy")), product);
    let silu = |x: f32| x / (1.0 + (-x).exp());
    let near = |(a, b): (f32, f32)| (a - b).abs() < 1e-6;
    assert!(read(&file("y.npy")).into_iter().zip(product.map(silu)).all(near));
    // In order, as JSON; an output that nobody wants is said.
    let bare = ["graph", "run", &file("gate.json"), "--input", &file("x.npy"), "--input", &file("w.npy"), "--json"];
    let ran = yirage(&[&bare[..], &["-q", "--output", &file("again.npy")]].concat()).json();
    assert_eq!(keys(&ran), ["graph", "backend", "outputs"]);
    assert_eq!(ran["outputs"][0]["file"], file("again.npy"));
    assert_eq!((ran["outputs"][1]["name"].as_str(), ran["outputs"][1]["file"].is_null()), (Some("product"), true));
    assert_eq!(read(&file("again.npy")), read(&file("y.npy")));
    assert!(yirage(&bare).ran().err.contains("`product` is not written"));
}

#[test]
fn bf16_comes_and_goes_with_a_note() {
    let (_folder, file) = folder();
    let bf16 = DType::Stored(Format::BF16);
    std::fs::write(file("gate.json"), to_json(&gate(bf16))).unwrap();
    let array = |sizes: [u32; 2], word: [u8; 2]| npy::write(&Type::new(bf16, sizes), &word.repeat(8)).map(|f| f.0);
    std::fs::write(file("x.npy"), array([2, 4], [0x80, 0x3f]).unwrap()).unwrap();
    let w = npy::write(&Type::new(bf16, [4u32, 3]), &[0x00, 0x3f].repeat(12)).unwrap().0;
    std::fs::write(file("w.npy"), w).unwrap();
    let inputs = ["--input", &file("x.npy"), "--input", &file("w.npy")];
    let outputs = ["--output", &format!("product={}", file("p.npy"))];
    let ran = yirage(&[&["graph", "run", &file("gate.json")], &inputs[..], &outputs[..]].concat()).ran();
    assert_eq!(ran.code, 0, "{}", ran.err);
    assert!(ran.err.contains("taken for bf16") && ran.err.contains(".view(ml_dtypes.bfloat16)"), "{}", ran.err);
    let bytes = std::fs::read(file("p.npy")).unwrap();
    assert!(bytes.ends_with(&[0x00, 0x40].repeat(6)), "four times one times a half is two");
}

/// Runs and wants this exit code and these words.
fn refused(arguments: &[&str], code: i32, wanted: &[&str]) {
    let ran = yirage(arguments).ran();
    assert_eq!(ran.code, code, "{arguments:?}: {}", ran.err);
    wanted.iter().for_each(|part| assert!(ran.err.contains(part), "`{part}` is not in: {}", ran.err));
}

#[test]
fn what_is_wrong_is_told_with_file_and_input() {
    let (_folder, file) = folder();
    let graph = file("gate.json");
    let (x, w) = (file("x.npy"), file("w.npy"));
    let run = |more: &[&str], code, wanted: &[&str]| {
        refused(&[&["graph", "run", graph.as_str()], more].concat(), code, wanted);
    };
    run(&[], 2, &["the input `x`, f32[2, 4], is not given", "--input x=FILE.npy"]);
    run(&["--input", &x], 2, &["`w`"]);
    run(&["--input", &format!("z={x}")], 2, &["nothing is called `z`", "x, w"]);
    run(&["--input", &x, "--input", &w, "--input", &x], 2, &["no more than 2"]);
    run(&["--input", &w, "--input", &x], 1, &["w.npy: `x`", "f32[2, 4] wanted", "[4, 3]"]);
    run(&["--input", &file("no.npy"), "--input", &w], 1, &["no.npy"]);
    run(&["--input", &graph, "--input", &w], 1, &["gate.json: `x`", "no .npy file"]);
    run(&["--input", &x, "--input", &w, "--output", "q=o.npy"], 2, &["nothing is called `q`", "y, product"]);
    let nowhere = file("no/such/folder.npy");
    run(&["--input", &x, "--input", &w, "--output", &nowhere], 1, &["folder.npy"]);
    run(&["--input", &x, "--input", &w, "--backend", "nothing"], 2, &["nothing"]);
    let json = std::fs::read_to_string(&graph).unwrap();
    std::fs::write(file("bad.json"), json.replacen("silu", "silv", 1)).unwrap();
    for command in ["run", "show", "check"] {
        refused(&["graph", command, &file("bad.json")], 1, &["bad.json", "graph.nodes[1].attrs", "silv"]);
        refused(&["graph", command, &file("none.json")], 1, &["none.json"]);
        refused(&["graph", command], 2, &["FILE"]);
    }
}

#[test]
fn graphs_are_shown() {
    let (_folder, file) = folder();
    let graph = file("gate.json");
    let text = yirage(&["graph", "show", &graph]).ran();
    assert!(text.out.starts_with("graph gate {\n  input %x: f32[2, 4]\n"), "{}", text.out);
    let dot = yirage(&["graph", "show", &graph, "--dot"]).ran().out;
    assert!(dot.starts_with("digraph {") && dot.matches(" -> ").count() == 5, "{dot}");
    let svg = yirage(&["graph", "show", &graph, "--svg"]).ran().out;
    assert!(svg.starts_with("<svg ") && svg.ends_with("</svg>\n"));
    let json = yirage(&["graph", "show", &graph, "--json"]).json();
    assert_eq!(yirage_graph::from_json(&json.to_string()).unwrap(), gate(DType::F32));
    refused(&["graph", "show", &graph, "--dot", "--svg"], 2, &["exclude each other"]);
}

#[test]
fn graphs_are_checked() {
    let (_folder, file) = folder();
    let checked = yirage(&["graph", "check", &file("gate.json"), "--json"]).json();
    assert_eq!(checked["structural_hash"], format!("{:032x}", gate(DType::F32).structural_hash()));
    assert_eq!(checked["inputs"][1]["type"], "f32[4, 3]");
    assert!(!checked["kernels"].as_array().unwrap().is_empty());
    assert!(yirage(&["graph", "check", &file("gate.json")]).ran().out.contains("  weight w: f32[4, 3]\n"));
    // A graph with a cache is none that is called.
    let state = r#"{"yirage-graph": 2, "graph": {"name": "cached", "inputs": [
        {"name": "s", "kind": "kv_cache", "dtype": "f32", "shape": [32, 1, 8]}], "nodes": [], "outputs": ["s"]}}"#;
    std::fs::write(file("state.json"), state).unwrap();
    refused(&["graph", "check", &file("state.json")], 3, &["`s`", "not supported"]);
    let ran = yirage(&["graph", "check", &file("state.json"), "--json"]).ran();
    assert_eq!(ran.code, 3);
    let printed: serde_json::Value = serde_json::from_str(&ran.out).unwrap();
    assert!(printed["kernels"].is_null() && printed["problem"].as_str().unwrap().contains("`s`"));
}
