//! Steps as one kernel: the bytes of launches one after the other whatever order blocks run in, mistakes in its text and in what its
//! launches wait for, and a model whose steps are run so.

use crate::fake::FakeCuda;
use crate::models::greedy;
use crate::support::{LONG, buffer_of, device, driver, run, words};
use std::sync::Arc;
use yirage_cuda::{CudaBackend, CudaDriver, CudaVendor};
use yirage_engine::{Engine, EngineOptions};
use yirage_hal::driver::{
    Binding, BindingAccess, BufferSlice, Driver, DriverError, GridExtent, KernelLaunch, Launch, LaunchConfig, ModuleId,
    PersistentLaunch, PersistentStep, StepCommand, step_sizes,
};
use yirage_hal::{Device, Record, SelectionReason};
use yirage_ir::{Dims, Format, Sym};
use yirage_kir::{BufferAccess, BufferOwnership, ComputeKernel, KernelWriter, ScalarType};
use yirage_model::Checkpoint;
use yirage_plan::{ExecutorKind, Precision};
use yirage_testkit::json::{self, ids};
use yirage_testkit::tiny;

/// Words of each buffer: a last turn of a block has groups for some of its threads alone.
const WORDS: u32 = 1920;

/// `z[i] = x[WORDS - 1 - i] * 3 + y[j] + plus`, where `j` is the word of the thread that mirrors this one in its group: what a
/// group reads another one has written, and what a thread reads another one of its group has staged.
fn mixed(name: &str, threads: u32, plus: u32) -> ComputeKernel {
    let mut w = KernelWriter::new(name, threads);
    let [x, y] = ["x", "y"].map(|name| w.buffer(name, ScalarType::U32, BufferAccess::Read, BufferOwnership::Pooled));
    let z = w.buffer("z", ScalarType::U32, BufferAccess::Write, BufferOwnership::Own);
    let staged = w.shared(ScalarType::U32, threads);
    let (group, thread, count, last) = (w.group(0), w.thread(), w.u32(threads), w.u32(threads - 1));
    let first = w.mul(group, count);
    let at = w.add(first, thread);
    let own = w.load(y, at);
    w.store(staged, thread, own);
    w.barrier();
    let mirrored = w.sub(last, thread);
    let other = w.load(staged, mirrored);
    let end = w.u32(WORDS - 1);
    let far = w.sub(end, at);
    let (far, three, plus) = (w.load(x, far), w.u32(3), w.u32(plus));
    let product = w.mul(far, three);
    let sum = w.add(product, other);
    let sum = w.add(sum, plus);
    w.store(z, at, sum);
    w.finish()
}

/// Kernels and a step of them, over buffers of a driver.
struct Chain {
    step: PersistentStep,
    launches: Vec<Launch>,
    buffers: Vec<BufferSlice>,
    first: Vec<Vec<u32>>,
}

/// What each launch reads, reads and writes of four buffers, by which kernel, and what it has to wait for: a diamond, values that are
/// written over while others still read them, and launches that nobody waits for.
const LAUNCHES: &[([usize; 3], usize, &[u32])] = &[
    ([0, 1, 2], 0, &[]),
    ([2, 0, 1], 1, &[0]),
    ([2, 0, 3], 0, &[0]),
    ([1, 3, 2], 1, &[1, 2]),
    ([2, 2, 0], 0, &[3]),
    ([2, 3, 1], 1, &[3]),
    ([1, 0, 3], 0, &[4, 5]),
    ([3, 0, 2], 1, &[6]),
];

const KERNELS: [(&str, u32); 2] = [("mixed_by_64", 64), ("mixed_by_128", 128)];

impl Chain {
    fn new(driver: &CudaDriver, launches: &[([usize; 3], usize, &[u32])]) -> Chain {
        let module = driver.load(&KERNELS.map(|(name, threads)| mixed(name, threads, threads))).unwrap();
        let first: Vec<Vec<u32>> = (0..4).map(|of| (0..WORDS).map(|at| at * 7 + of * 1000).collect()).collect();
        let buffers: Vec<BufferSlice> = first.iter().map(|words| buffer_of(driver, words)).collect();
        let dims = Dims { tokens: WORDS / 64, seqs: 1, blocks: 1, rows: 1 };
        let sizes = buffer_of(driver, Record::of(&step_sizes(&dims)).values());
        let made: Vec<PersistentLaunch> = launches
            .iter()
            .map(|&(of, kernel, after)| launch(of.map(|at| buffers[at]), KERNELS[kernel], after))
            .collect();
        let launches = made.iter().map(|made| ordinary(module, &made.launch, &dims)).collect();
        Chain { step: PersistentStep { module, sizes, bucket: dims, launches: made }, launches, buffers, first }
    }

    /// Puts back what was there.
    fn reset(&self, driver: &CudaDriver) -> Result<(), DriverError> {
        let mut all = self.buffers.iter().zip(&self.first);
        all.try_for_each(|(&buffer, words)| driver.upload(Arc::new(Record::of(words)), buffer))
    }

    fn contents(&self, driver: &CudaDriver) -> Vec<Vec<u32>> {
        self.buffers.iter().map(|&buffer| words(driver, buffer)).collect()
    }

    /// What is there after the launches one after the other.
    fn wanted(&self, driver: &CudaDriver) -> Vec<Vec<u32>> {
        self.launches.iter().for_each(|launch| run(driver, launch.clone()).unwrap());
        self.contents(driver)
    }

    /// Whether the step as one kernel leaves that so many times, with blocks in other orders.
    fn is_right(&self, driver: &CudaDriver, wanted: &[Vec<u32>], times: usize) -> Result<bool, DriverError> {
        let kernels = driver.persistent_kernels().unwrap();
        let step = kernels.prepare(&self.step)?;
        for _ in 0..times {
            self.reset(driver)?;
            kernels.run(step)?;
            let value = driver.signal()?;
            driver.wait(value, LONG)?;
            if self.contents(driver) != wanted {
                return Ok(false);
            }
        }
        kernels.release(step);
        Ok(true)
    }
}

fn launch(of: [BufferSlice; 3], (entry, threads): (&str, u32), after: &[u32]) -> PersistentLaunch {
    let accesses = [BindingAccess::Read, BindingAccess::Read, BindingAccess::Write];
    let bindings = of.into_iter().zip(accesses).map(|(slice, access)| Binding { slice, access }).collect();
    let launch = KernelLaunch::new(entry, bindings, Vec::new());
    let config = LaunchConfig { block: [threads, 1, 1], ..launch.config };
    let grid =
        [GridExtent::Of { size: Sym::Tokens, times: 64, per: threads }, GridExtent::Fixed(1), GridExtent::Fixed(1)];
    PersistentLaunch { launch: KernelLaunch { config, grid, ..launch }, after: after.to_vec() }
}

fn ordinary(module: ModuleId, launch: &KernelLaunch, dims: &Dims) -> Launch {
    let grid = launch.grid.map(|extent| extent.at(dims).unwrap());
    Launch { module, config: launch.config.clone(), grid, bindings: launch.bindings.clone() }
}

#[test]
#[ignore = "needs a compiler of C++"]
fn launches_that_wait_for_each_other_leave_what_they_leave_one_after_the_other() {
    let driver = driver();
    let chain = Chain::new(&driver, LAUNCHES);
    let wanted = chain.wanted(&driver);
    assert!(chain.is_right(&driver, &wanted, 40).unwrap());
    // A launch without a group passes on what it waits for.
    let mut launches = LAUNCHES.to_vec();
    launches[5].2 = &[4];
    let mut chain = Chain::new(&driver, &launches);
    let empty = GridExtent::Fixed(0);
    chain.step.launches[4].launch.grid[1] = empty;
    chain.launches.remove(4);
    let wanted = chain.wanted(&driver);
    assert!(chain.is_right(&driver, &wanted, 20).unwrap());
}

/// Waits that follow from no others: of two launches that the same blocks run, who has waited for the later one has for both.
const NEEDED: [(usize, u32); 5] = [(1, 0), (3, 2), (4, 3), (6, 5), (7, 6)];

#[test]
#[ignore = "needs a compiler of C++"]
fn each_wait_that_is_dropped_is_found() {
    let driver = driver();
    for (number, dropped) in NEEDED {
        let mut chain = Chain::new(&driver, LAUNCHES);
        let wanted = chain.wanted(&driver);
        chain.step.launches[number].after.retain(|&earlier| earlier != dropped);
        let is_right = chain.is_right(&driver, &wanted, 100).unwrap();
        assert!(!is_right, "launch {number} does not wait for {dropped}, and nothing tells");
    }
}

/// Mistakes in the text around the kernels.
const MISTAKES: &[(&str, &str)] = &[
    // Waits: none at all, for too few, for another counter, for the wrong launch.
    ("    wait_at_least(step.done + earlier, blocks_of(launch_of(earlier)));\n", ""),
    ("blocks_of(launch_of(earlier)));", "1);"),
    ("wait_at_least(step.done + earlier,", "wait_at_least(step.done + at,"),
    ("at < waits.count", "at + 1 < waits.count"),
    ("table + table[2] + launch[11]", "table + table[2]"),
    // What ends a launch is not told, is told twice, or of another one.
    ("    if (block_thread() == 0) raise(done + number);\n", ""),
    ("if (block_thread() == 0) raise(done + number);", "if (block_thread() < 2) raise(done + number);"),
    ("raise(done + number)", "raise(done + launches - 1 - number)"),
    // It is told before the others have ended.
    ("    // The next groups have the same memory.\n    meet_all();\n", ""),
    // Barriers that are dropped: of the block behind its waits, of a part of it.
    ("    meet_all();\n    run_groups", "    run_groups"),
    ("#define __syncthreads() meet_task<TASK_THREADS>()", "#define __syncthreads()"),
    ("#define __syncthreads() meet_task<TASK_THREADS>()", "#define __syncthreads() meet_all()"),
    ("    step = own;\n  }\n  meet_all();\n", "    step = own;\n  }\n"),
    // Groups that nobody runs, that two run, or that are another one.
    ("first += stride", "first += stride + 1"),
    ("{group % x,", "{first % x,"),
    ("if (block_thread() < together) {", "if (block_thread() == 0) {"),
    ("return groups_of_block[block_thread() / THREADS]", "return groups_of_block[0]"),
    ("{block_thread() % THREADS}", "{block_thread()}"),
    // Memory that two groups have at once.
    ("return block_memory + block_thread() / THREADS * (BYTES / 16)", "return block_memory"),
    // Numbers of the table.
    ("pointers + launch[13]", "pointers"),
    ("step.sizes[of[0] - 1]", "step.sizes[of[0]]"),
    ("+ of[2] - 1) / of[2]", ") / of[2] / 2"),
];

#[test]
#[ignore = "needs a compiler of C++"]
fn each_mistake_in_the_text_is_found() {
    let mut survivors = Vec::new();
    for &(right, wrong) in MISTAKES {
        // A fault ends a context: each has a device of its own.
        let machine = FakeCuda::new(&[]);
        let driver = CudaBackend::new(CudaVendor::Nvidia, machine.surroundings()).driver(0).unwrap();
        let text = CudaDriver::persistent_text();
        assert!(text.contains(right), "the text has no `{right}`");
        let driver = driver.with_persistent_text(text.replacen(right, wrong, 1));
        let chain = Chain::new(&driver, LAUNCHES);
        let wanted = chain.wanted(&driver);
        if chain.is_right(&driver, &wanted, 100).unwrap_or(false) {
            survivors.push(format!("`{right}` as `{wrong}`"));
        }
    }
    assert!(survivors.is_empty(), "{} of {}: {survivors:#?}", survivors.len(), MISTAKES.len());
}

/// Its own words where a block waits for what never comes.
#[test]
#[ignore = "needs a compiler of C++"]
fn a_block_that_waits_in_vain_is_told() {
    let machine = FakeCuda::new(&[]);
    let driver = CudaBackend::new(CudaVendor::Nvidia, machine.surroundings()).driver(0).unwrap();
    let text = CudaDriver::persistent_text().replacen("raise(done + number)", "(void)0", 1);
    let driver = driver.with_persistent_text(text);
    let chain = Chain::new(&driver, LAUNCHES);
    let error = chain.is_right(&driver, &[], 1).unwrap_err();
    assert!(matches!(error, DriverError::Lost(_)), "{error}");
}

#[test]
#[ignore = "needs a compiler of C++"]
fn a_device_without_cooperative_launches_has_no_such_executor() {
    let machine = FakeCuda::new(&[("FAKE_CUDA_ARCH", "sm_75")]);
    let driver = CudaBackend::new(CudaVendor::Nvidia, machine.surroundings()).driver(0).unwrap();
    assert!(driver.persistent_kernels().is_none());
    let kinds = [ExecutorKind::Replay, ExecutorKind::Steps, ExecutorKind::Persistent];
    assert_eq!(device().target().executors, kinds);
}

#[test]
#[ignore = "needs a compiler of C++"]
fn a_step_that_cannot_be_one_kernel_is_refused_with_its_reason() {
    let driver = driver();
    let kernel = mixed("of_48_threads", 48, 1);
    let module = driver.load(&[kernel]).unwrap();
    let chain = Chain::new(&driver, LAUNCHES);
    let buffers = [0, 1, 2].map(|at| chain.buffers[at]);
    let launches = vec![launch(buffers, ("of_48_threads", 48), &[])];
    let step = PersistentStep { module, launches, ..chain.step };
    let said = driver.persistent_kernels().unwrap().prepare(&step).unwrap_err();
    assert!(matches!(&said, DriverError::Unsupported { why, .. } if why.contains("48 threads")), "{said}");
}

fn engine(device: &Arc<dyn Device>, model: &str, executor: Option<ExecutorKind>) -> Engine {
    let options = EngineOptions {
        kv: Some(Format::F32),
        precision: Precision::Exact,
        max_seqs: 2,
        executor,
        ..EngineOptions::default()
    };
    let checkpoint = Checkpoint::open(tiny::model(model)).unwrap();
    Engine::load(&checkpoint, device.clone(), &options, &mut |_, _| {}).unwrap()
}

/// The golden tokens of models whose steps are one kernel each.
fn check(models: &[&str]) {
    let device = device();
    for model in models {
        let golden = json::read(&tiny::model(model).join("golden.json"));
        let mut engine = engine(&device, model, Some(ExecutorKind::Persistent));
        for case in golden["cases"].as_array().unwrap() {
            let wanted = ids(&case["greedy16"]);
            assert_eq!(greedy(&mut engine, &ids(&case["ids"]), wanted.len()), wanted, "{model}");
        }
        for (_, kind, why) in engine.executors() {
            assert_eq!((kind, why), (ExecutorKind::Persistent, SelectionReason::Forced));
        }
    }
}

#[test]
#[ignore = "needs a compiler of C++"]
fn a_model_as_persistent_kernels_gives_the_golden_tokens() {
    check(&tiny::NAMES[..1]);
}

#[test]
#[ignore = "needs a compiler of C++, and half an hour"]
fn every_architecture_in_all_its_ways_as_persistent_kernels_gives_the_golden_tokens() {
    check(tiny::NAMES);
}

/// Of a model that decodes for some time, the device's clock has chosen between two executors, and the faster takes turns with the
/// third.
#[test]
#[ignore = "needs a compiler of C++"]
fn the_devices_clock_compares_all_three() {
    let device = device();
    let model = tiny::NAMES[0];
    let golden = json::read(&tiny::model(model).join("golden.json"));
    let prompt = ids(&golden["cases"][0]["ids"]);
    let mut engine = engine(&device, model, None);
    let tokens = greedy(&mut engine, &prompt, 90);
    let wanted = ids(&golden["cases"][0]["greedy16"]);
    assert_eq!(tokens[..wanted.len()], wanted);
    let executors = engine.executors();
    let is_of_three = |why: &SelectionReason| match why {
        SelectionReason::Measuring { pairs, of } => pairs > &(of / 2),
        why => matches!(why, SelectionReason::Measured { .. }),
    };
    assert!(executors.iter().any(|(.., why)| is_of_three(why)), "{executors:?}");
    assert!(engine.notices().is_empty(), "none is left out");
}

/// A step of no launch, and one that was let go of.
#[test]
#[ignore = "needs a compiler of C++"]
fn a_step_of_nothing_runs_and_one_that_is_gone_does_not() {
    let driver = driver();
    let chain = Chain::new(&driver, LAUNCHES);
    let kernels = driver.persistent_kernels().unwrap();
    let step = kernels.prepare(&PersistentStep { launches: Vec::new(), ..chain.step.clone() }).unwrap();
    kernels.run(step).unwrap();
    kernels.release(step);
    let value = driver.signal().unwrap();
    driver.wait(value, LONG).unwrap();
    let gone = kernels.run(step).unwrap_err().to_string();
    assert!(gone.contains("there is no persistent step 1"), "{gone}");
    let capture = driver.graph_capture().unwrap();
    let graph = capture.capture(vec![StepCommand::Launch(chain.launches[0].clone())]).unwrap();
    capture.replay(graph).unwrap();
    assert_ne!(words(&driver, chain.buffers[2]), chain.first[2]);
}
