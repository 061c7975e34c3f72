//! Times products and attention on a device of NVIDIA's, the kernels that are written by hand beside the generated ones, by the
//! device's own clock, in captured graphs: products for each format, shape and number of rows, attention for each format of the cache,
//! depth and number of tokens. Weights and caches are read cold: there are as many of them as are larger than any cache of the device. The
//! bound is what the device itself reads and writes in a copy.
//!
//! usage: `products_on_device [MEBIBYTES [ROUNDS]]`   bytes of all weights together (2048), and replays of a graph (20)
#![allow(clippy::unwrap_used, clippy::print_stdout)] // a tool

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;
use yirage_compile::{CompileOptions, compile, plan_weights};
use yirage_cuda::{CudaBackend, CudaDriver, CudaVendor, attention, matmul};
use yirage_hal::driver::{
    BufferSlice, Driver, GridExtent, KernelCall, Launch, Library, MemoryCommand, ModuleId, StepCommand, ValueSlices,
};
use yirage_hal::{Backend, HalError, Record};
use yirage_ir::{DType, Dims, Graph, ValueId, ValueSource, text};
use yirage_kernels::{KernelLibrary, target};
use yirage_plan::{DeviceLimits, Plan, Precision};
use yirage_probe::ProbeEnvironment;

const FORMATS: [&str; 6] = ["bf16", "f16", "q8_0", "q4_0", "q4_k", "q6_k"];
/// Columns and elements along k, of models of 1 and 8 billion parameters.
const SHAPES: [[u32; 2]; 4] = [[2048, 2048], [2048, 8192], [4096, 14_336], [28_672, 4096]];
const ROWS: [u32; 5] = [1, 8, 32, 128, 512];
/// Rows up to which generated kernels are timed: more of them take too long.
const MOST_GENERATED: u32 = 8;
/// What keys and values are stored as.
const CACHES: [&str; 3] = ["bf16", "f16", "q8_0"];
/// Positions that a token sees.
const DEPTHS: [u32; 5] = [128, 512, 2048, 8192, 32_768];
/// Tokens of a sequence at once: one that decodes, and a piece of a prompt.
const TOKENS: [u32; 2] = [1, 128];
/// Positions of a block of a cache.
const POSITIONS: u32 = 32;
/// Launches of a graph at most.
const MOST_LAUNCHES: u64 = 256;
const LONG: Duration = Duration::from_secs(100);

fn main() {
    let number = |at: usize, otherwise: u64| std::env::args().nth(at).map_or(otherwise, |text| text.parse().unwrap());
    let (bytes, rounds) = (number(1, 2048) << 20, number(2, 20));
    let backend = CudaBackend::new(CudaVendor::Nvidia, ProbeEnvironment::of_this_process());
    let info = backend.probe().unwrap().remove(0);
    let driver = backend.driver(0).unwrap();
    let bound = copied(&driver, bytes, rounds);
    println!("{{\"device\": {:?}, \"arch\": {:?}, \"copy_gb_s\": {bound:.1}}}", info.name, info.arch);
    let limits = || DeviceLimits {
        block_bytes: Some(48 << 10),
        threads: Some(1024),
        grid: Some([i32::MAX as u32, 65_535, 65_535]),
        subgroup_widths: vec![32],
        ..DeviceLimits::aligned(256)
    };
    let generated = KernelLibrary::new(target("cuda", &info.arch, limits()));
    let by_hand =
        matmul(&info.arch).map(|products| KernelLibrary::with_products(target("cuda", &info.arch, limits()), products));
    let attention_by_hand = attention(&info.arch).map(|own| generated.clone().and_attention(own));
    time_attention(&driver, [Some(&generated), attention_by_hand.as_ref()], bytes, rounds, bound);
    for format in FORMATS {
        for [columns, k] in SHAPES {
            for rows in ROWS {
                let graph = format!(
                    "graph g {{ input %x: f32[Tokens, {k}] weight %w: {format}[{columns}, {k}]
                     %y = linear{{groups=1}}(%x, %w): f32[Tokens, {columns}] output %y }}"
                );
                let graph = text::parse(&graph).unwrap();
                let bucket = Dims { tokens: rows, seqs: 1, blocks: 1, rows: 1 };
                let of = |library: &KernelLibrary| timed(&driver, library, &graph, bucket, bytes, rounds);
                let plain = Some(&generated).filter(|_| rows <= MOST_GENERATED);
                let [plain, own] = [plain, by_hand.as_ref()].map(|library| library.map(of));
                println!(
                    "{{\"format\": \"{format}\", \"columns\": {columns}, \"k\": {k}, \"rows\": {rows}, \"by_hand\": {}, \
                     \"generated\": {}}}",
                    figures(own, bound),
                    figures(plain, bound)
                );
            }
        }
    }
}

/// Times attention of one sequence's last tokens over its whole cache.
fn time_attention(
    driver: &CudaDriver,
    [generated, by_hand]: [Option<&KernelLibrary>; 2],
    bytes: u64,
    rounds: u64,
    bound: f64,
) {
    for cache in CACHES {
        for depth in DEPTHS {
            for tokens in TOKENS {
                let graph = format!(
                    "graph g {{ input %q: f32[Tokens, 4096] kv_cache %c: {cache}[32, 8, 256] input %p: i32[Tokens] input %s: i32[Tokens]
                     input %t: i32[Seqs, Blocks]
                     %y = attention{{heads=32, kv_heads=8, k_width=128, v_width=128, scale=0.088, softcap=0.0, window=0, causal=true,
                     cached=true, v_in_k=false}}(%q, %c, %p, %s, %t): f32[Tokens, 4096] output %y }}"
                );
                let graph = text::parse(&graph).unwrap();
                let bucket = Dims { tokens, seqs: 1, blocks: depth / POSITIONS, rows: 1 };
                let of = |library: &KernelLibrary| timed(driver, library, &graph, bucket, bytes, rounds);
                let generated = generated.filter(|_| tokens <= MOST_GENERATED);
                let [plain, own] = [generated, by_hand].map(|library| figures(library.map(of), bound));
                println!(
                    "{{\"cache\": \"{cache}\", \"depth\": {depth}, \"tokens\": {tokens}, \"by_hand\": {own}, \"generated\": {plain}}}"
                );
            }
        }
    }
}

fn figures(timed: Option<Timed>, bound: f64) -> String {
    timed.map_or("null".into(), |Timed { micros, gb_s }| {
        format!("{{\"us\": {micros:.2}, \"gb_s\": {gb_s:.1}, \"of_copy\": {:.3}}}", gb_s / bound)
    })
}

/// Microseconds of a node, and what it reads of its weight or cache in a second.
struct Timed {
    micros: f64,
    gb_s: f64,
}

/// Where the values of a node lie.
struct Values {
    of: HashMap<ValueId, BufferSlice>,
    sizes: BufferSlice,
    blocks: u32,
}

impl ValueSlices for Values {
    fn slice(&self, value: ValueId) -> Result<BufferSlice, HalError> {
        self.of.get(&value).copied().ok_or_else(|| HalError::Load("a value that has no place".into()))
    }

    fn blocks(&self, _: ValueId) -> Result<u32, HalError> {
        Ok(self.blocks)
    }

    fn sizes(&self) -> BufferSlice {
        self.sizes
    }
}

fn buffer(driver: &CudaDriver, bytes: u64) -> BufferSlice {
    BufferSlice { buffer: driver.alloc(bytes).unwrap(), offset: 0, bytes }
}

/// Whole numbers that a step is given: the table of blocks in ascending order, else the last positions of the only sequence.
fn step_integers(graph: &Graph, value: ValueId, bucket: &Dims) -> Vec<u32> {
    let first = bucket.blocks * POSITIONS - bucket.tokens.min(bucket.blocks * POSITIONS);
    let numbers = graph.values.iter().enumerate().filter(|(_, value)| value.ty.dtype == DType::I32);
    match numbers.map(|(at, _)| at).position(|at| at == value.0 as usize) {
        Some(0) => (first..first + bucket.tokens).collect(),
        Some(1) => vec![0; bucket.tokens as usize],
        _ => (0..bucket.blocks).collect(),
    }
}

/// Times a node by a library's kernels, with as many weights or caches in turn as have so many bytes.
fn timed(driver: &CudaDriver, library: &KernelLibrary, graph: &Graph, bucket: Dims, bytes: u64, rounds: u64) -> Timed {
    let (target, options) = (library.target(), CompileOptions::new(Precision::Exact));
    let weights = plan_weights(graph, &target).unwrap();
    let plan = compile(graph, bucket, &target, &weights, &options).unwrap();
    let plan: &Plan = &plan;
    let module = driver.module(&library.code(plan).unwrap()).unwrap();
    let sizes = buffer(driver, 16);
    driver.upload(Arc::new(Record::of(&[bucket.tokens, bucket.seqs, bucket.blocks, bucket.rows])), sizes).unwrap();
    let (mut of, mut many, mut held) = (HashMap::new(), None, vec![sizes]);
    for (at, value) in plan.graph.values.iter().enumerate() {
        let (id, is_read) = (ValueId(at as u32), matches!(value.source, ValueSource::Weight | ValueSource::KvCache));
        let times = if value.source == ValueSource::KvCache { u64::from(bucket.blocks) } else { 1 };
        let one = value.ty.bytes(&bucket) as u64 * times;
        let count = if is_read { (bytes / one).clamp(1, MOST_LAUNCHES) } else { 1 };
        let slices: Vec<BufferSlice> = (0..count).map(|_| buffer(driver, one)).collect();
        for &slice in &slices {
            if value.ty.dtype == DType::I32 {
                driver.upload(Arc::new(Record::of(&step_integers(&plan.graph, id, &bucket))), slice).unwrap();
            } else {
                // Small floats, whatever the format.
                driver.submit(StepCommand::Memory(MemoryCommand::Fill { slice, byte: 0x2c })).unwrap();
            }
        }
        held.extend(&slices);
        if is_read {
            many = Some((id, slices));
        } else {
            of.insert(id, slices[0]);
        }
    }
    let (of_many, slices) = many.unwrap();
    let mut commands = Vec::new();
    for &slice in &slices {
        of.insert(of_many, slice);
        let values = Values { of: of.clone(), sizes, blocks: bucket.blocks };
        for step in 0..plan.steps.len() {
            let calls = library.calls(plan, step, &values).unwrap();
            commands.extend(calls.into_iter().map(|call| StepCommand::Launch(launch(call, module, &bucket))));
        }
    }
    let micros = replayed(driver, commands, rounds) / slices.len() as f64;
    held.iter().for_each(|slice| driver.free(slice.buffer));
    driver.unload(module);
    Timed { micros, gb_s: slices[0].bytes as f64 / micros / 1e3 }
}

fn launch(call: KernelCall, module: ModuleId, dims: &Dims) -> Launch {
    let KernelCall::Launch(launch) = call else { panic!("a product is a launch") };
    let groups = |extent: GridExtent| match extent {
        GridExtent::Fixed(groups) => groups,
        GridExtent::Of { size, times, per } => (dims.get(size) * times).div_ceil(per),
    };
    Launch { module, config: launch.config, grid: launch.grid.map(groups), bindings: launch.bindings }
}

/// Microseconds of a graph of commands: the least of several replays.
fn replayed(driver: &CudaDriver, commands: Vec<StepCommand>, rounds: u64) -> f64 {
    let (capture, clock) = (driver.graph_capture().unwrap(), driver.clock().unwrap());
    let graph = capture.capture(commands).unwrap();
    let mut least = f64::INFINITY;
    for _ in 0..rounds.max(1) {
        let before = clock.timestamp().unwrap();
        capture.replay(graph).unwrap();
        let after = clock.timestamp().unwrap();
        driver.wait(driver.signal().unwrap(), LONG).unwrap();
        let (before, after) = (before.take(), after.take());
        least = least.min(after.saturating_sub(before).as_secs_f64() * 1e6);
    }
    capture.release(graph);
    least
}

/// GB/s that a copy reads and writes together.
fn copied(driver: &CudaDriver, bytes: u64, rounds: u64) -> f64 {
    let [from, to] = [0; 2].map(|_| buffer(driver, bytes / 2));
    let micros = replayed(driver, vec![StepCommand::Memory(MemoryCommand::Copy { from, to })], rounds);
    [from, to].iter().for_each(|slice| driver.free(slice.buffer));
    bytes as f64 / micros / 1e3
}
