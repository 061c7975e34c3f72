//! Attention and a Llama block in plain ops, fused and not, beside the named ops that they are the general forms of.
//!
//! `cargo bench -p yirage-tune --bench attention -- [attention] [block] [workloads] [--svg=FILE]`. All of a row run in turns, and a
//! figure is the median of the rounds. Bytes are those of the operands of all kernels together: what is read and written of
//! memory if no cache holds it. With `--svg` the Llama blocks are drawn.
#![allow(clippy::print_stdout, clippy::unwrap_used)] // printing is its purpose; it may stop at anything unexpected

mod plot;

use plot::Row;
use std::collections::HashMap;
use std::sync::Arc;
use yirage_compile::{CompileOptions, compile, plan_weights};
use yirage_graph::workloads::{Parameters, Scale, Workload};
use yirage_hal::{Backend, Device, OpenOptions, Record};
use yirage_ir::{DType, Dims, Format, Graph, GraphBuilder, NodeKind, Type, ValueId, text};
use yirage_plan::Precision;
use yirage_tune::{LoadedGraph, Timing, prepared};

const DIMS: Dims = Dims { tokens: 1, seqs: 1, blocks: 1, rows: 1 };
const ROUNDS: usize = 7;
const STEPS: usize = 5;

/// A name, and what is compiled how.
type BenchCase = (&'static str, Graph, CompileOptions);

fn main() {
    let (options, args): (Vec<String>, Vec<String>) = std::env::args().skip(1).partition(|a| a.starts_with("--"));
    let wanted = |what: &str| args.is_empty() || args.iter().any(|a| a == what);
    let device = yirage_cpu::Cpu.open(0, &OpenOptions::default()).unwrap().0;
    println!("graph                              |  kernels     bytes       ms   against the first");
    if wanted("attention") {
        // Heads, key heads, tokens, width.
        for [heads, kv_heads, tokens, width] in [[32, 8, 256, 64], [32, 8, 1024, 64], [8, 8, 2048, 128]] {
            let named = attention(heads, kv_heads, tokens, width);
            beside(&*device, &format!("attention {heads}/{kv_heads} of {tokens} x {width}"), &named);
        }
    }
    if wanted("block") {
        let blocks: Vec<(u32, Vec<Row>)> = [16, 256]
            .map(|tokens| (tokens, beside(&*device, &format!("Llama block of {tokens} tokens"), &block(tokens))))
            .into();
        if let Some(file) = options.iter().find_map(|option| option.strip_prefix("--svg=")) {
            std::fs::write(file, plot::svg(&blocks)).unwrap();
        }
    }
    if wanted("workloads") {
        for name in ["group_query_attention", "qknorm_gqa", "multi_head_attention"] {
            for dtype in [DType::Stored(Format::F32), DType::Stored(Format::BF16)] {
                let graph = Workload::named(name).unwrap();
                let graph = graph.graph(Parameters { batch: 1, dtype, scale: Scale::Mirage }).unwrap();
                let exact = CompileOptions::new(Precision::Exact);
                let rows = [("fused", graph.clone(), exact.clone()), ("unfused", graph, exact.unfused())];
                timed(&*device, &format!("{name} {dtype}"), &rows);
            }
        }
    }
}

/// The named ops, and their general forms fused and not.
fn beside(device: &dyn Device, what: &str, named: &Graph) -> Vec<Row> {
    let (exact, plain) = (CompileOptions::new(Precision::Exact), plain(named));
    let rows = [
        ("named", named.clone(), exact.clone()),
        ("plain, fused", plain.clone(), exact.clone()),
        ("plain, unfused", plain, exact.unfused()),
    ];
    timed(device, what, &rows)
}

fn timed(device: &dyn Device, what: &str, rows: &[BenchCase]) -> Vec<Row> {
    println!("{what}");
    let load = |(_, graph, options): &BenchCase| {
        let mut prepared = prepared(graph, DIMS, options).unwrap();
        for (name, record) in &mut prepared.step_inputs {
            if name == "positions" {
                *record = Arc::new(Record::of(
                    &(0..graph.ty(graph.find(name).unwrap()).elems(&DIMS) as i32).collect::<Vec<_>>(),
                ));
            }
        }
        LoadedGraph::new(device, prepared).unwrap()
    };
    let mut loaded: Vec<LoadedGraph> = rows.iter().map(load).collect();
    let mut all: Vec<Vec<f64>> = vec![Vec::new(); rows.len()];
    for round in 0..ROUNDS {
        for turn in 0..rows.len() {
            let at = (round + turn) % rows.len();
            all[at].push(Timing::of_steps(STEPS, &mut loaded[at]).unwrap().median());
        }
    }
    let median = |of: &[f64]| {
        let mut sorted = of.to_vec();
        sorted.sort_by(f64::total_cmp);
        sorted[sorted.len() / 2]
    };
    let row = |((name, graph, options), times): (&BenchCase, &Vec<f64>)| {
        let ratios: Vec<f64> = times.iter().zip(&all[0]).map(|(time, first)| time / first).collect();
        let (kernels, bytes) = moved(device, graph, options);
        let row = Row { name, kernels, megabytes: bytes as f64 / 1e6, milliseconds: median(times) * 1e3 };
        let Row { megabytes: mb, milliseconds: ms, .. } = row;
        println!("  {name:32} | {kernels:8} {mb:7.1} MB {ms:8.3} {:12.2}", median(&ratios));
        row
    };
    rows.iter().zip(&all).map(row).collect()
}

/// Kernels of a plan, and the bytes of their operands.
fn moved(device: &dyn Device, graph: &Graph, options: &CompileOptions) -> (usize, usize) {
    let target = device.target();
    let weights = plan_weights(graph, &target).unwrap();
    let plan = compile(graph, DIMS, &target, &weights, options).unwrap();
    let operands = plan.graph.nodes.iter().flat_map(|n| n.ins.iter().chain(&n.outs));
    (plan.graph.nodes.len(), operands.map(|&id| plan.graph.ty(id).storage_bytes(&DIMS)).sum())
}

/// The general forms of all ops that have one.
fn plain(graph: &Graph) -> Graph {
    let mut b = GraphBuilder::new(graph.name.clone());
    let mut is: HashMap<ValueId, ValueId> = HashMap::new();
    for &i in &graph.inputs {
        let v = graph.value(i);
        is.insert(i, b.declare(&v.name, v.ty.clone(), v.source).unwrap());
    }
    for node in &graph.nodes {
        let types: Vec<Type> = node.ins.iter().map(|&i| graph.ty(i).clone()).collect();
        let NodeKind::Op(op) = &node.kind else { panic!("a region") };
        let name = &graph.value(node.outs[0]).name;
        let Ok(form) = op.lower(&types) else {
            let ins: Vec<ValueId> = node.ins.iter().map(|i| is[i]).collect();
            is.insert(node.outs[0], b.node(node.kind.clone(), &ins, std::slice::from_ref(name)).unwrap()[0]);
            continue;
        };
        let mut inner: HashMap<ValueId, ValueId> =
            form.inputs.iter().copied().zip(node.ins.iter().map(|i| is[i])).collect();
        for part in &form.nodes {
            let ins: Vec<ValueId> = part.ins.iter().map(|i| inner[i]).collect();
            let own = format!("{name}.{}", form.value(part.outs[0]).name);
            inner.insert(part.outs[0], b.node(part.kind.clone(), &ins, &[own]).unwrap()[0]);
        }
        is.insert(node.outs[0], inner[&form.outputs[0]]);
    }
    graph.outputs.iter().for_each(|o| b.output(is[o]));
    b.finish()
}

fn attention(heads: u32, kv_heads: u32, tokens: u32, width: u32) -> Graph {
    let (q, kv) = (heads * width, kv_heads * width);
    let op = op(heads, kv_heads, width);
    text::parse(&format!(
        "graph attention {{ input %q: f32[{tokens}, {q}] input %k: f32[{tokens}, {kv}] input %v: f32[{tokens}, {kv}]
           input %positions: i32[{tokens}] input %seqs: i32[{tokens}]
           %a = {op}(%q, %k, %v, %positions, %seqs): f32[{tokens}, {q}] output %a }}"
    ))
    .unwrap()
}

fn op(heads: u32, kv_heads: u32, width: u32) -> String {
    let sizes = format!("heads={heads}, kv_heads={kv_heads}, k_width={width}, v_width={width}");
    format!("attention{{{sizes}, scale=0.125, softcap=0.0, window=0, causal=false, cached=false, v_in_k=false}}")
}

/// A block of the sizes of Llama 3.2 1B, without a cache.
fn block(tokens: u32) -> Graph {
    let op = op(32, 8, 64);
    let t = tokens;
    let norm = "rms_norm{eps=1e-5, width=2048, unit_offset=false}";
    let rope = "rope{width=64, rotary=64, interleaved=false, per_row=false}";
    let graph = format!(
        "graph block {{ input %x: f32[{t}, 2048] input %positions: i32[{t}] input %seqs: i32[{t}]
           weight %n1: f32[2048] weight %n2: f32[2048] weight %cos: f32[4096, 32] weight %sin: f32[4096, 32]
           weight %wq: bf16[2048, 2048] weight %wk: bf16[512, 2048] weight %wv: bf16[512, 2048]
           weight %wo: bf16[2048, 2048] weight %wg: bf16[8192, 2048] weight %wu: bf16[8192, 2048]
           weight %wd: bf16[2048, 8192]
           %h = {norm}(%x, %n1): f32[{t}, 2048]
           %q = linear{{groups=1}}(%h, %wq): f32[{t}, 2048] %k = linear{{groups=1}}(%h, %wk): f32[{t}, 512]
           %v = linear{{groups=1}}(%h, %wv): f32[{t}, 512]
           %qr = {rope}(%q, %cos, %sin, %positions): f32[{t}, 2048]
           %kr = {rope}(%k, %cos, %sin, %positions): f32[{t}, 512]
           %a = {op}(%qr, %kr, %v, %positions, %seqs): f32[{t}, 2048]
           %o = linear{{groups=1}}(%a, %wo): f32[{t}, 2048]
           %r = map{{expr=\"add(x0, x1)\"}}(%x, %o): f32[{t}, 2048]
           %m = {norm}(%r, %n2): f32[{t}, 2048]
           %g = linear{{groups=1}}(%m, %wg): f32[{t}, 8192] %u = linear{{groups=1}}(%m, %wu): f32[{t}, 8192]
           %s = map{{expr=\"mul(silu(x0), x1)\"}}(%g, %u): f32[{t}, 8192]
           %d = linear{{groups=1}}(%s, %wd): f32[{t}, 2048]
           %y = map{{expr=\"add(x0, x1)\"}}(%r, %d): f32[{t}, 2048] output %y }}"
    );
    text::parse(&graph).unwrap()
}
