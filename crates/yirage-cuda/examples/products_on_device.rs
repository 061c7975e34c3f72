//! Times products on a device of NVIDIA's: for each format, shape and number of rows, the kernels that are written by hand beside
//! the generated ones, by the device's own clock, in captured graphs. Weights are read cold: there are as many of them as are
//! larger than any cache. The bound is what the device itself reads and writes in a copy.
//!
//! usage: `products_on_device [MEBIBYTES [ROUNDS]]`   bytes of all weights together (2048), and replays of a graph (20)
#![allow(clippy::unwrap_used, clippy::print_stdout)] // a tool

use std::sync::Arc;
use std::time::Duration;
use yirage_compile::{CompileOptions, compile, plan_weights};
use yirage_cuda::{CudaBackend, CudaDriver, CudaVendor, matmul};
use yirage_hal::driver::{
    BufferSlice, Driver, GridExtent, KernelCall, Launch, Library, MemoryCommand, ModuleId, StepCommand, ValueSlices,
};
use yirage_hal::{Backend, HalError, Record};
use yirage_ir::{Dims, Graph, ValueId, ValueSource, text};
use yirage_kernels::{KernelLibrary, target};
use yirage_plan::{DeviceLimits, Plan, Precision};
use yirage_probe::ProbeEnvironment;

const FORMATS: [&str; 6] = ["bf16", "f16", "q8_0", "q4_0", "q4_k", "q6_k"];
/// Columns and elements along k, of models of 1 and 8 billion parameters.
const SHAPES: [[u32; 2]; 4] = [[2048, 2048], [2048, 8192], [4096, 14_336], [28_672, 4096]];
const ROWS: [u32; 3] = [1, 4, 8];
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
    let by_hand = matmul(&info.arch)
        .map(|products| KernelLibrary::with_products(target("cuda", &info.arch, limits()), products));
    for format in FORMATS {
        for [columns, k] in SHAPES {
            for rows in ROWS {
                let graph = format!(
                    "graph g {{ slot %x: f32[Tokens, {k}] weight %w: {format}[{columns}, {k}]
                     %y = linear{{groups=1}}(%x, %w): f32[Tokens, {columns}] output %y }}"
                );
                let graph = text::parse(&graph).unwrap();
                let of = |library: &KernelLibrary| timed(&driver, library, &graph, rows, bytes, rounds);
                let [plain, own] = [Some(&generated), by_hand.as_ref()].map(|library| library.map(of));
                let figures = |timed: Option<Timed>| {
                    timed.map_or("null".into(), |Timed { micros, gb_s }| {
                        format!("{{\"us\": {micros:.2}, \"gb_s\": {gb_s:.1}, \"of_copy\": {:.3}}}", gb_s / bound)
                    })
                };
                println!(
                    "{{\"format\": \"{format}\", \"columns\": {columns}, \"k\": {k}, \"rows\": {rows}, \"by_hand\": {}, \
                     \"generated\": {}}}",
                    figures(own),
                    figures(plain)
                );
            }
        }
    }
}

/// Microseconds of a product, and what it reads of its weight in a second.
struct Timed {
    micros: f64,
    gb_s: f64,
}

/// Where the values of a product lie.
struct Values<'a> {
    graph: &'a Graph,
    sizes: BufferSlice,
    x: BufferSlice,
    weight: BufferSlice,
    y: BufferSlice,
}

impl ValueSlices for Values<'_> {
    fn slice(&self, value: ValueId) -> Result<BufferSlice, HalError> {
        Ok(match self.graph.value(value).source {
            ValueSource::StepInput => self.x,
            ValueSource::Weight => self.weight,
            _ => self.y,
        })
    }

    fn blocks(&self, _: ValueId) -> Result<u32, HalError> {
        Ok(0)
    }

    fn sizes(&self) -> BufferSlice {
        self.sizes
    }
}

fn buffer(driver: &CudaDriver, bytes: u64) -> BufferSlice {
    BufferSlice { buffer: driver.alloc(bytes).unwrap(), offset: 0, bytes }
}

/// Times a product by a library's kernels, with as many weights in turn as have so many bytes.
fn timed(driver: &CudaDriver, library: &KernelLibrary, graph: &Graph, rows: u32, bytes: u64, rounds: u64) -> Timed {
    let bucket = Dims { tokens: rows, seqs: 1, blocks: 1, rows: 1 };
    let (target, options) = (library.target(), CompileOptions::new(Precision::Exact));
    let weights = plan_weights(graph, &target).unwrap();
    let plan = compile(graph, bucket, &target, &weights, &options).unwrap();
    let plan: &Plan = &plan;
    let module = driver.module(&library.code(plan).unwrap()).unwrap();
    let size = |source: fn(&ValueSource) -> bool| {
        let value = plan.graph.values.iter().find(|value| source(&value.source)).unwrap();
        value.ty.bytes(&bucket) as u64
    };
    let of_weight = size(|source| matches!(source, ValueSource::Weight));
    let sizes = buffer(driver, 16);
    driver.upload(Arc::new(Record::of(&[rows, 1, 1, 1])), sizes).unwrap();
    let x = buffer(driver, size(|source| matches!(source, ValueSource::StepInput)));
    let y = buffer(driver, size(|source| matches!(source, ValueSource::Node { .. })));
    let weights: Vec<BufferSlice> = (0..(bytes / of_weight).max(1)).map(|_| buffer(driver, of_weight)).collect();
    for &slice in weights.iter().chain([&x, &y]) {
        // Small floats, whatever the format.
        driver.submit(StepCommand::Memory(MemoryCommand::Fill { slice, byte: 0x2c })).unwrap();
    }
    let mut commands = Vec::new();
    for &weight in &weights {
        let values = Values { graph: &plan.graph, sizes, x, weight, y };
        for step in 0..plan.steps.len() {
            let calls = library.calls(plan, step, &values).unwrap();
            commands.extend(calls.into_iter().map(|call| StepCommand::Launch(launch(call, module, &bucket))));
        }
    }
    let micros = replayed(driver, commands, rounds) / weights.len() as f64;
    weights.iter().chain([&sizes, &x, &y]).for_each(|slice| driver.free(slice.buffer));
    driver.unload(module);
    Timed { micros, gb_s: of_weight as f64 / micros / 1e3 }
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
