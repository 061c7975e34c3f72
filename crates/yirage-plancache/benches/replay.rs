//! Kept plans at a batch of one: native, replayed and fused in turns, first calls beside later ones, and first processes beside
//! second ones.
//!
//! `cargo bench -p yirage-plancache --bench replay` prints the tables of docs/benchmarks/plans.md. A round times every mode,
//! so that what else the machine does meets all of them. The limit is the time of reading weights, inputs and outputs once at
//! the bandwidth of memory, which the device measures in each round. What caches hold is read faster than that.
#![allow(clippy::unwrap_used, clippy::print_stdout)] // printing is its purpose

#[path = "../tests/suite/support/mod.rs"]
mod support;

use std::path::Path;
use std::process::Command;
use std::sync::Arc;
use std::time::Instant;
use support::{array, block, small, tokens};
use yirage_hal::{Backend, Device, Limit, OpenOptions, Roofline};
use yirage_ir::{Dims, Graph, ValueSource, text};
use yirage_plancache::{BoundGraph, CacheOptions, HostArray, Mode, PlanCache, PlanFolder};

/// Rounds of warm calls.
const ROUNDS: usize = 21;
/// First calls of each mode.
const FIRSTS: usize = 7;
/// Processes of each kind.
const PROCESSES: usize = 5;
/// Microseconds that the calls of a mode take in a round, about.
const ROUND_US: f64 = 10_000.0;
/// The word before what a child process is to do.
const CHILD: &str = "--child";

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    if let Some(at) = arguments.iter().position(|word| word == CHILD) {
        return child(&arguments[at + 1..]);
    }
    let device = device();
    println!("{} workers; a batch of one token\n", device.target().queues());
    calls(&device);
    processes();
}

fn device() -> Arc<dyn Device> {
    yirage_cpu::Cpu.open(0, &OpenOptions::default()).unwrap().0
}

/// A Llama block without rotation of this width, four times as wide inside, with heads of 64.
fn layer(width: u32) -> Graph {
    let (heads, inner) = (width / 64, 4 * width);
    text::parse(&format!(
        "graph layer{width} {{ input %x: f32[Tokens, {width}] input %positions: i32[Tokens] input %seqs: i32[Tokens]
         weight %norm: f32[{width}] weight %wq: f32[{width}, {width}] weight %wk: f32[{width}, {width}]
         weight %wv: f32[{width}, {width}] weight %wo: f32[{width}, {width}] weight %norm2: f32[{width}]
         weight %gate: f32[{inner}, {width}] weight %up: f32[{inner}, {width}] weight %down: f32[{width}, {inner}]
         %n = rms_norm{{eps=1e-5, width={width}, unit_offset=false}}(%x, %norm): f32[Tokens, {width}]
         %q = linear{{groups=1}}(%n, %wq): f32[Tokens, {width}] %k = linear{{groups=1}}(%n, %wk): f32[Tokens, {width}]
         %v = linear{{groups=1}}(%n, %wv): f32[Tokens, {width}]
         %a = attention{{heads={heads}, kv_heads={heads}, k_width=64, v_width=64, scale=0.125, softcap=0.0, window=0, \
         causal=true, cached=false, v_in_k=false}}(%q, %k, %v, %positions, %seqs): f32[Tokens, {width}]
         %o = linear{{groups=1}}(%a, %wo): f32[Tokens, {width}] %r = map{{expr=\"add(x0, x1)\"}}(%x, %o): f32[Tokens, {width}]
         %m = rms_norm{{eps=1e-5, width={width}, unit_offset=false}}(%r, %norm2): f32[Tokens, {width}]
         %g = linear{{groups=1}}(%m, %gate): f32[Tokens, {inner}] %u = linear{{groups=1}}(%m, %up): f32[Tokens, {inner}]
         %h = map{{expr=\"mul(silu(x0), x1)\"}}(%g, %u): f32[Tokens, {inner}]
         %d = linear{{groups=1}}(%h, %down): f32[Tokens, {width}] %y = map{{expr=\"add(x0, x1)\"}}(%r, %d): f32[Tokens, {width}]
         output %y }}"
    ))
    .unwrap()
}

fn graph(name: &str) -> Graph {
    match name {
        "a sum and a scale, 512" => small("small", 2.0),
        "layer of 64" => block(),
        "layer of 256" => layer(256),
        _ => layer(1024),
    }
}

const GRAPHS: [&str; 4] = ["a sum and a scale, 512", "layer of 64", "layer of 256", "layer of 1024"];

/// A graph with its weights, its inputs, and the bytes that a call touches at least.
struct Subject {
    graph: BoundGraph,
    inputs: Vec<HostArray>,
    bytes: f64,
}

impl Subject {
    fn new(graph: Graph) -> Subject {
        let dims = tokens(1);
        let weights: Vec<(String, HostArray)> = graph
            .inputs_of(ValueSource::Weight)
            .enumerate()
            .map(|(i, id)| (graph.value(id).name.clone(), array(graph.ty(id), &dims, 77 + i as u64)))
            .collect();
        let inputs = support::inputs(&graph, &dims, 1);
        let outputs = graph.outputs.iter().map(|&id| graph.ty(id).storage_bytes(&dims));
        let arrays = weights.iter().map(|(_, array)| array).chain(&inputs).map(|array| array.bytes().len());
        let bytes = arrays.chain(outputs).sum::<usize>() as f64;
        let sizes = Dims { tokens: 0, seqs: 1, blocks: 1, rows: 0 };
        Subject { graph: BoundGraph::new(graph, weights).unwrap().with_sizes(sizes), inputs, bytes }
    }

    fn call(&self, cache: &PlanCache, mode: Mode) {
        let called = cache.call(&self.graph, &self.inputs, mode).unwrap();
        assert_eq!(called.mode, mode, "{:?}", called.notices);
    }
}

/// Plans that are made for this run, of graphs as small as they are.
fn cache(device: &Arc<dyn Device>, folder: Option<&Path>) -> PlanCache {
    let folder = folder.map(|path| PlanFolder::new(path.to_owned(), 1 << 28));
    PlanCache::new(device.clone(), CacheOptions { min_tensor_elements: 0, folder, ..CacheOptions::default() })
}

fn microseconds(of: impl FnOnce()) -> f64 {
    let began = Instant::now();
    of();
    began.elapsed().as_secs_f64() * 1e6
}

/// Lowest, median and highest.
fn spread(values: &[f64]) -> [f64; 3] {
    let mut values = values.to_vec();
    values.sort_by(f64::total_cmp);
    [values[0], values[values.len() / 2], values[values.len() - 1]]
}

fn shown(values: &[f64]) -> String {
    let [low, mid, high] = spread(values);
    let digits = if mid < 100.0 { 1 } else { 0 };
    format!("{mid:.digits$} ({low:.digits$} to {high:.digits$})")
}

fn calls(device: &Arc<dyn Device>) {
    let mut roofline = Roofline::new(&**device, vec![Limit::MemoryRead]).unwrap();
    println!(
        "| graph | mode | first call µs | later calls µs | of native, pair by pair | limit µs | share of the limit |"
    );
    println!("|---|---|---|---|---|---|---|");
    for name in GRAPHS {
        let subject = Subject::new(graph(name));
        let firsts = Mode::ALL.map(|mode| {
            let first = |_| {
                let fresh = cache(device, None);
                microseconds(|| subject.call(&fresh, mode))
            };
            (0..FIRSTS).map(first).collect::<Vec<f64>>()
        });
        let warm = cache(device, None);
        // Plans and weights are there before the first round, and the time of a call is known.
        let counts = Mode::ALL.map(|mode| {
            subject.call(&warm, mode);
            let one = microseconds(|| (0..5).for_each(|_| subject.call(&warm, mode))) / 5.0;
            (ROUND_US / one).clamp(1.0, 500.0) as usize
        });
        let mut times = Mode::ALL.map(|_| Vec::new());
        let mut limits = Vec::new();
        for round in 0..ROUNDS {
            limits.push(subject.bytes / roofline.read().unwrap().get(Limit::MemoryRead).unwrap() * 1e6);
            // Each mode comes first as often as the others.
            for turn in 0..Mode::ALL.len() {
                let at = (round + turn) % Mode::ALL.len();
                let all = microseconds(|| (0..counts[at]).for_each(|_| subject.call(&warm, Mode::ALL[at])));
                times[at].push(all / counts[at] as f64);
            }
        }
        let [_, limit, _] = spread(&limits);
        for (at, mode) in Mode::ALL.into_iter().enumerate() {
            let ratios: Vec<f64> = times[at].iter().zip(&times[0]).map(|(time, native)| time / native).collect();
            let [low, mid, high] = spread(&ratios);
            let share = limit / spread(&times[at])[1];
            println!(
                "| {name} | {mode} | {} | {} | {mid:.3} ({low:.3} to {high:.3}) | {limit:.1} | {share:.3} |",
                shown(&firsts[at]),
                shown(&times[at]),
            );
        }
    }
}

/// A process that opens the device, makes a cache with a folder, and calls a graph for the first time.
fn child(words: &[String]) {
    let (folder, mode, graph_name) = (Path::new(&words[0]), words[1].parse().unwrap(), &words[2]);
    let (device, subject) = (device(), Subject::new(graph(graph_name)));
    let cache = cache(&device, Some(folder));
    let first = microseconds(|| subject.call(&cache, mode));
    let stats = cache.stats();
    println!("{first} {} {} {}", stats.compiled, stats.read, stats.refused);
}

fn processes() {
    println!("\n| graph | mode | process | plans compiled | plans read | first call µs |");
    println!("|---|---|---|---|---|---|");
    for name in GRAPHS {
        for mode in [Mode::GraphReplay, Mode::Fusion] {
            let mut times = [Vec::new(), Vec::new()];
            for _ in 0..PROCESSES {
                let folder = tempfile::tempdir().unwrap();
                for (second, times) in times.iter_mut().enumerate() {
                    let mut run = Command::new(std::env::current_exe().unwrap());
                    let out = run.arg(CHILD).arg(folder.path()).args([mode.name(), name]).output().unwrap();
                    let text = String::from_utf8(out.stdout).unwrap();
                    let words: Vec<f64> = text.split_whitespace().map(|word| word.parse().unwrap()).collect();
                    let [first, compiled, read, refused] = words[..] else { panic!("{text}") };
                    let wanted = if second == 1 { [0.0, 1.0, 0.0] } else { [1.0, 0.0, 0.0] };
                    assert_eq!([compiled, read, refused], wanted, "a second start compiles nothing");
                    times.push(first);
                }
            }
            for (second, times) in times.iter().enumerate() {
                let (process, compiled, read) = if second == 1 { ("second", 0, 1) } else { ("first", 1, 0) };
                println!("| {name} | {mode} | {process} | {compiled} | {read} | {} |", shown(times));
            }
        }
    }
}
