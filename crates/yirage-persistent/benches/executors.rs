//! Kernels of small layers at a batch of one: the executor whose tasks wait for what they read beside the one that goes step
//! after step, and a start that compiles beside one that reads its plans.
//!
//! `cargo bench -p yirage-persistent --bench executors` prints tables of docs/benchmarks/plans.md. A round decodes the same
//! tokens with every executor. The limit is the time of reading all weights of a step once at the bandwidth of memory, which
//! the device measures in each round. What caches hold is read faster than that.
#![allow(clippy::unwrap_used, clippy::print_stdout)] // printing is its purpose

use std::collections::HashMap;
use std::path::Path;
use std::sync::Arc;
use std::time::Instant;
use yirage_hal::{Backend, Device, Limit, OpenOptions, Roofline};
use yirage_ir::{Format, rng};
use yirage_persistent::{
    AttentionInputs, KernelBuilder, KernelConfig, KernelDType, KernelTensor, LaunchDims, MetaData, MetaTensor,
    MetaTensors, PersistentKernel, TensorId,
};
use yirage_plan::ExecutorKind;

const ROUNDS: usize = 15;
const STARTS: usize = 5;
/// Positions of a request; all but the first four are decoded.
const LENGTH: u32 = 68;
const PROMPT: [i64; 4] = [1, 2, 3, 4];
const VOCABULARY: u32 = 512;
const LAYERS: u32 = 2;
const WIDTHS: [u32; 4] = [64, 128, 256, 512];
const F32: KernelDType = KernelDType::Floats(Format::F32);
const EXECUTORS: [ExecutorKind; 2] = [ExecutorKind::Steps, ExecutorKind::Persistent];

fn main() {
    let device = device();
    println!("{} workers; {LAYERS} Llama layers, {VOCABULARY} tokens, one request\n", device.target().queues());
    executors(&device);
    starts(&device);
}

fn device() -> Arc<dyn Device> {
    yirage_cpu::Cpu.open(0, &OpenOptions::default()).unwrap().0
}

fn config(executor: Option<ExecutorKind>) -> KernelConfig {
    KernelConfig { executor, max_seq_length: LENGTH, max_num_batched_tokens: 8, ..KernelConfig::default() }
}

fn meta() -> MetaTensors {
    let mut tokens = vec![0; LENGTH as usize];
    tokens[..PROMPT.len()].copy_from_slice(&PROMPT);
    MetaTensors::from_list(vec![
        MetaTensor { shape: vec![1], data: MetaData::Int32(vec![PROMPT.len() as i32 - 1]) },
        MetaTensor { shape: vec![1, LENGTH as usize], data: MetaData::Int64(tokens) },
    ])
    .unwrap()
}

/// Llama layers with heads of 32, four times as wide inside, and the bytes of their weights that a step reads.
fn layers(width: u32, executor: Option<ExecutorKind>) -> (KernelBuilder, f64) {
    let mut b = KernelBuilder::new(config(executor), meta()).unwrap();
    let mut bytes = 0.0;
    let mut seed = 0;
    let mut weight = |b: &mut KernelBuilder, name: String, dims: &[u32]| {
        seed += 1;
        let count: u32 = dims.iter().product();
        let scale = 2.0 / f64::from(width).sqrt();
        let value = |i: u32| ((rng::at(seed, u64::from(i)) >> 11) as f64 / (1u64 << 53) as f64 - 0.5) * scale;
        let values: Vec<f32> = (0..count).map(|i| value(i) as f32).collect();
        // Of the embedding a step reads one row.
        bytes += if name == "embed" { f64::from(width) } else { f64::from(count) } * 4.0;
        b.attach_input(KernelTensor::f32(dims, &values), &name).unwrap()
    };
    let new = |b: &mut KernelBuilder, name: &str, width: u32| b.new_tensor(&[8, width], F32, name).unwrap();
    let ids = b.attach_input(KernelTensor::declared(&[8, 1], KernelDType::Int64), "ids").unwrap();
    let (heads, inner) = (width / 32, 4 * width);
    let [mut x, mut y, mid] = ["x", "y", "mid"].map(|name| new(&mut b, name, width));
    let (qkv, attended) = (new(&mut b, "qkv", 3 * width), new(&mut b, "attended", width));
    let wide = new(&mut b, "wide", 2 * inner);
    let table = weight(&mut b, "embed".into(), &[VOCABULARY, width]);
    b.embed_layer(ids, table, x, 0, LaunchDims::ONE).unwrap();
    for l in 0..LAYERS {
        let norm = weight(&mut b, format!("{l}.norm"), &[width]);
        let parts: Vec<TensorId> =
            ["q", "k", "v"].iter().map(|p| weight(&mut b, format!("{l}.{p}"), &[width, width])).collect();
        let fused = b.fuse_tensors(&parts, 0, heads, &format!("{l}.qkv")).unwrap();
        b.rmsnorm_linear_layer(x, norm, fused, qkv, LaunchDims::ONE).unwrap();
        let cache = KernelTensor::declared(&[2, 64, heads, 32], F32);
        let [k_cache, v_cache] = ["k", "v"].map(|p| b.attach_input(cache.clone(), &format!("{l}.{p}_cache")).unwrap());
        let inputs =
            AttentionInputs { k_cache, v_cache, q_norm: None, k_norm: None, cos_pos_embed: None, sin_pos_embed: None };
        b.paged_attention_layer(qkv, inputs, attended, LaunchDims::ONE).unwrap();
        let out = weight(&mut b, format!("{l}.o"), &[width, width]);
        b.linear_with_residual_layer(attended, out, x, mid, LaunchDims::ONE).unwrap();
        let norm = weight(&mut b, format!("{l}.norm2"), &[width]);
        let parts: Vec<TensorId> =
            ["gate", "up"].iter().map(|p| weight(&mut b, format!("{l}.{p}"), &[inner, width])).collect();
        let fused = b.fuse_tensors(&parts, 0, 1, &format!("{l}.gate_up")).unwrap();
        b.rmsnorm_linear_layer(mid, norm, fused, wide, LaunchDims::ONE).unwrap();
        let down = weight(&mut b, format!("{l}.down"), &[width, inner]);
        b.silu_mul_linear_with_residual_layer(wide, down, mid, y, LaunchDims::ONE).unwrap();
        std::mem::swap(&mut x, &mut y);
    }
    let norm = weight(&mut b, "norm".into(), &[width]);
    let head = weight(&mut b, "head".into(), &[VOCABULARY, width]);
    let logits = new(&mut b, "logits", VOCABULARY);
    b.rmsnorm_linear_layer(x, norm, head, logits, LaunchDims::ONE).unwrap();
    let chosen = b.new_tensor(&[8, 1], KernelDType::Int64, "chosen").unwrap();
    b.argmax_layer(logits, chosen, LaunchDims::ONE).unwrap();
    (b, bytes)
}

/// Runs the request again: microseconds of each step that decoded a token.
fn decode(kernel: &mut PersistentKernel) -> f64 {
    kernel.load_new_request(0, &PROMPT).unwrap();
    // The prompt's step is none of them.
    kernel.call(Some(1)).unwrap();
    let began = Instant::now();
    let report = kernel.call(None).unwrap();
    let all = began.elapsed().as_secs_f64() * 1e6;
    assert!(report.finished && report.steps > u64::from(LENGTH) / 2, "{report:?}");
    all / report.steps as f64
}

/// Lowest, median and highest.
fn spread(values: &[f64]) -> [f64; 3] {
    let mut values = values.to_vec();
    values.sort_by(f64::total_cmp);
    [values[0], values[values.len() / 2], values[values.len() - 1]]
}

fn executors(device: &Arc<dyn Device>) {
    let mut roofline = Roofline::new(&**device, vec![Limit::MemoryRead]).unwrap();
    println!("| width | executor | step µs | of steps, pair by pair | limit µs | share of the limit |");
    println!("|---|---|---|---|---|---|");
    for width in WIDTHS {
        let mut bytes = 0.0;
        let mut kernels = EXECUTORS.map(|kind| {
            let made = layers(width, Some(kind));
            bytes = made.1;
            let mut kernel = made.0.compile(device.clone(), None).unwrap();
            kernel.call(None).unwrap();
            decode(&mut kernel);
            kernel
        });
        let (mut times, mut limits) = (EXECUTORS.map(|_| Vec::new()), Vec::new());
        for round in 0..ROUNDS {
            limits.push(bytes / roofline.read().unwrap().get(Limit::MemoryRead).unwrap() * 1e6);
            for turn in 0..EXECUTORS.len() {
                let at = (round + turn) % EXECUTORS.len();
                times[at].push(decode(&mut kernels[at]));
            }
        }
        assert_eq!(kernels[0].meta(), kernels[1].meta(), "executors give the same tokens");
        let [_, limit, _] = spread(&limits);
        for (at, kind) in EXECUTORS.into_iter().enumerate() {
            let [low, mid, high] = spread(&times[at]);
            let ratios: Vec<f64> = times[at].iter().zip(&times[0]).map(|(time, steps)| time / steps).collect();
            let [least, ratio, most] = spread(&ratios);
            println!(
                "| {width} | {kind} | {mid:.1} ({low:.1} to {high:.1}) | {ratio:.3} ({least:.3} to {most:.3}) | {limit:.1} \
                 | {:.3} |",
                limit / mid
            );
        }
    }
}

/// Milliseconds from layers, or from a folder, to the end of the first request.
fn starts(device: &Arc<dyn Device>) {
    println!("\n| width | start | plans compiled | plans read | ms to the end of the first request |");
    println!("|---|---|---|---|---|");
    for width in WIDTHS {
        let mut times = [Vec::new(), Vec::new()];
        let mut counts = [(0, 0); 2];
        for _ in 0..STARTS {
            let folder = tempfile::tempdir().unwrap();
            for second in [false, true] {
                let builder = layers(width, None).0;
                let began = Instant::now();
                let mut kernel = start(builder, folder.path(), device, second);
                kernel.call(None).unwrap();
                times[usize::from(second)].push(began.elapsed().as_secs_f64() * 1e3);
                let made = kernel.plan_counts();
                counts[usize::from(second)] = (made.compiled, made.read);
            }
        }
        assert_eq!(counts[1].0, 0, "a second start compiles nothing");
        for (at, (compiled, read)) in counts.into_iter().enumerate() {
            let [low, mid, high] = spread(&times[at]);
            let name = ["first", "second"][at];
            println!("| {width} | {name} | {compiled} | {read} | {mid:.1} ({low:.1} to {high:.1}) |");
        }
    }
}

fn start(builder: KernelBuilder, folder: &Path, device: &Arc<dyn Device>, again: bool) -> PersistentKernel {
    if !again {
        return builder.compile(device.clone(), Some(folder)).unwrap();
    }
    let tensors: HashMap<String, KernelTensor> =
        builder.attached_tensors().map(|(name, tensor)| (name.to_owned(), tensor.clone())).collect();
    PersistentKernel::load(folder, config(None), meta(), &tensors, device.clone(), false).unwrap()
}
