//! Kernels with one mistake each, made mechanically from those that every accelerator shares: the verifier, the interpreter
//! or what comes out tells each of them from the right one.

mod mutations;

use crate::driver::SimDriver;
use crate::settings::Settings;
use crate::shared_module::SharedKernels;
use mutations::{Mutation, mutants};
use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex};
use yirage_conformance::{GraphSetup, Trouble};
use yirage_hal::driver::{DriverDevice, KernelCall, Library, ValueSlices};
use yirage_hal::{DeviceInfo, HalError, Record};
use yirage_ir::rng::Rng;
use yirage_ir::tensor::Data;
use yirage_ir::{DType, Dims, Tensor, ValueSource, text};
use yirage_kernels::KernelLibrary;
use yirage_kir::ComputeKernel;
use yirage_plan::{Plan, Precision, Target};

/// Graphs whose kernels are changed: what they write fills memory to the last byte, and takes several groups.
const GRAPHS: &[(&str, &str)] = &[
    (
        "words of two",
        "input %a: f32[Tokens, 128] input %b: f32[128]
         %y = map{expr=\"cast.bf16(mul(x0, x1))\"}(%a, %b): bf16[Tokens, 128] output %y",
    ),
    (
        "transposed",
        "input %a: f32[16, 12] input %b: f32[12, 16] %t = view{form=\"permute(1, 0)\"}(%b): f32[16, 12]
         %y = map{expr=\"sub(x0, x1)\"}(%a, %t): f32[16, 12] output %y",
    ),
    ("sum", "input %a: f32[Tokens, 150] %y = reduce{kind=sum, axes=\"[1]\", keep=true}(%a): f32[Tokens, 1] output %y"),
    (
        "mean squares of 16 bits",
        "input %a: f32[24, 70] %q = reduce{kind=mean_square, axes=\"[1]\", keep=true}(%a): f32[24, 1]
         %y = map{expr=\"cast.bf16(x0)\"}(%q): bf16[24, 1] output %y",
    ),
    (
        "sum of whole numbers",
        "input %a: i32[150, 3] %y = reduce{kind=sum, axes=\"[0]\", keep=true}(%a): i32[1, 3] output %y",
    ),
    ("contraction", "input %a: f32[16, 11] input %b: f32[11, 12] %y = contract(%a, %b): f32[16, 12] output %y"),
    ("gather", "input %a: f32[9, 8] input %i: i32[24] %y = gather{axis=0}(%a, %i): f32[24, 8] output %y"),
    (
        "product with a weight",
        "input %a: f32[Tokens, 576] weight %w: f32[256, 576]
         %y = linear{groups=1}(%a, %w): f32[Tokens, 256] output %y",
    ),
    (
        "tiles that go on",
        "input %a: f32[6, 256] input %b: f32[256, 24]
         %y = region tiled{grid=\"[2, 1, 1]\", loops=4, ins=\"[- - - loop 1, 1 - - loop 0]\", outs=\"[1 - -]\",
           accumulate=\"[continue, continue]\", running=\"[]\", reads=\"[]\"}(%a, %b): f32[6, 24]
           graph body { input %a: f32[6, 64] input %b: f32[64, 12]
             %q = reduce{kind=mean_square, axes=\"[1]\", keep=true}(%a): f32[6, 1]
             %p = contract(%a, %b): f32[6, 12] output %q, %p }
           graph block { input %q: f32[6, 1] input %p: f32[6, 12]
             %y = map{expr=\"div(x1, sqrt(x0))\"}(%q, %p): f32[6, 12] output %y }
         output %y",
    ),
    (
        "tiles that are rescaled",
        "input %a: f32[6, 300] input %b: f32[300, 5]
         %y = region tiled{grid=\"[1, 3, 1]\", loops=3, ins=\"[- 0 - loop 1, - - - loop 0]\", outs=\"[- 0 -]\",
           accumulate=\"[sum, rescaled 2]\", running=\"[0]\", reads=\"[]\"}(%a, %b): f32[6, 5]
           graph body { input %a: f32[2, 100] input %b: f32[100, 5] input %before: f32[2, 1]
             %l = reduce{kind=sum, axes=\"[1]\", keep=true}(%a): f32[2, 1]
             %e = map{expr=\"mul(x0, x0)\"}(%a): f32[2, 100]
             %o = contract(%e, %b): f32[2, 5]
             %f = map{expr=\"mul(x0, 0.05)\"}(%before): f32[2, 1] output %l, %o, %f }
           graph block { input %l: f32[2, 1] input %o: f32[2, 5]
             %y = map{expr=\"sub(x0, x1)\"}(%o, %l): f32[2, 5] output %y }
         output %y",
    ),
];

/// Mutations that change nothing that these graphs show, by graph, with how many of them there are and why.
const EQUAL: &[(&str, Mutation, usize, &str)] = &[
    ("words of two", Mutation::WrongStride, 1, ONE_ROUND),
    ("words of two", Mutation::Swapped, 1, FULL_WORDS),
    ("transposed", Mutation::WrongStride, 1, ONE_ROUND),
    ("sum", Mutation::WrongStride, 1, ONE_ROUND),
    ("sum", Mutation::NoBarrier, 1, FIRST_ROUND),
    ("mean squares of 16 bits", Mutation::WrongStride, 1, ONE_ROUND),
    ("mean squares of 16 bits", Mutation::NoBarrier, 1, FIRST_ROUND),
    ("sum of whole numbers", Mutation::WrongStride, 1, ONE_ROUND),
    ("sum of whole numbers", Mutation::NoBarrier, 1, FIRST_ROUND),
    ("contraction", Mutation::WrongStride, 1, ONE_ROUND),
    ("gather", Mutation::WrongStride, 1, ONE_ROUND),
    ("product with a weight", Mutation::WrongStride, 1, ONE_ROUND),
    ("product with a weight", Mutation::BoundTooLow, 1, WIDE_STEPS),
    ("product with a weight", Mutation::Swapped, 1, "rows that are not made four at once are made one by one"),
    ("tiles that go on", Mutation::WrongStride, 2, FEW),
    ("tiles that are rescaled", Mutation::BoundTooHigh, 2, "what lies behind is written again before it is read"),
    ("tiles that are rescaled", Mutation::WrongStride, 7, FEW),
    ("tiles that are rescaled", Mutation::Swapped, 1, FULL_WORDS),
];
const WIDE_STEPS: &str = "the loop's step is wider than one: as many rounds reach a bound one off";
const ONE_ROUND: &str = "the loop goes round once in a grid of fewer groups than devices have along an axis";
const FEW: &str = "the loop goes round once where there are no more elements than threads";
const FULL_WORDS: &str = "the last word is full: nothing behind the last element is left out";
const FIRST_ROUND: &str = "what it waits for is the round before, and there is but one";

fn setup(graph: &str) -> GraphSetup {
    let graph = text::parse(&format!("graph g {{ {graph} }}")).unwrap();
    let dims = Dims { tokens: 6, seqs: 1, blocks: 1, rows: 1 };
    let mut rng = Rng::new(11);
    let (mut weights, mut step_inputs) = (HashMap::new(), HashMap::new());
    for value in graph.values.iter().filter(|value| !matches!(value.source, ValueSource::Node { .. })) {
        let shape: Vec<usize> = value.ty.shape.iter().map(|dim| dim.get(&dims)).collect();
        let elements = shape.iter().product();
        let floats: Vec<f32> = (0..elements).map(|_| rng.signed_f32() * 4.0).collect();
        match (value.source, value.ty.dtype) {
            (ValueSource::Weight, _) => drop(weights.insert(value.name.clone(), Tensor::f32(shape, floats))),
            (_, DType::I32) => {
                let whole: Vec<i32> = (0..elements).map(|_| rng.below(9) as i32).collect();
                step_inputs.insert(value.name.clone(), Record::of(&whole));
            }
            _ => drop(step_inputs.insert(value.name.clone(), Record::of(&floats))),
        }
    }
    GraphSetup { graph, weights, step_inputs, kv_caches: Vec::new(), dims, precision: Precision::Exact }
}

/// The shared kernels, of which one is another.
struct MutatedLibrary {
    library: KernelLibrary,
    mutant: Option<ComputeKernel>,
    seen: Arc<Mutex<Vec<ComputeKernel>>>,
}

impl Library for MutatedLibrary {
    fn target(&self) -> Target {
        self.library.target()
    }

    fn code(&self, plan: &Plan) -> Result<Vec<u8>, HalError> {
        let mut kernels = self.library.kernels_of(plan)?;
        self.seen.lock().unwrap().clone_from(&kernels);
        for kernel in &mut kernels {
            if let Some(mutant) = self.mutant.as_ref().filter(|mutant| mutant.name == kernel.name) {
                kernel.clone_from(mutant);
            }
        }
        Ok(kernels.iter().map(yirage_kir::text::print).collect::<String>().into_bytes())
    }

    fn calls(&self, plan: &Plan, step: usize, values: &dyn ValueSlices) -> Result<Vec<KernelCall>, HalError> {
        self.library.calls(plan, step, values)
    }
}

/// What a device gives whose kernels are these, with one of another; and its kernels.
fn run(setup: &GraphSetup, mutant: Option<ComputeKernel>) -> (Result<Vec<Data>, Trouble>, Vec<ComputeKernel>) {
    let settings = Settings { memory: 64 << 20, ..Settings::with_interpreter() };
    let shared = Arc::new(SharedKernels::new(settings.kernels));
    let driver = SimDriver::new(&settings, shared, 0, None).unwrap();
    let target = yirage_kernels::target("sim", "interpreter", settings.limits);
    let seen = Arc::default();
    let library = MutatedLibrary { library: KernelLibrary::new(target), mutant, seen: Arc::clone(&seen) };
    let device = DriverDevice::new(DeviceInfo::new("sim", 0, "mutated", "interpreter"), driver, library);
    let got = setup.run(&device);
    let kernels = seen.lock().unwrap().clone();
    (got, kernels)
}

/// How a mutant was told from the right kernel; none where it was not.
fn caught(setup: &GraphSetup, wanted: &[Tensor], mutant: ComputeKernel) -> Option<&'static str> {
    match run(setup, Some(mutant)).0.map_err(String::from) {
        Err(why) if why.contains("launch") => Some("interpreter"),
        Err(_) => Some("verifier"),
        Ok(got) => (!got.iter().zip(wanted).all(|(got, wanted)| close(got, &wanted.data))).then_some("result"),
    }
}

fn close(got: &Data, wanted: &Data) -> bool {
    match (got, wanted) {
        (Data::F32(got), Data::F32(wanted)) => {
            let near = |(a, b): (&f32, &f32)| (a - b).abs() <= 1e-4 * b.abs().max(1.0);
            got.len() == wanted.len() && got.iter().zip(wanted).all(near)
        }
        (got, wanted) => got == wanted,
    }
}

/// A mistake, the line that it changed, and how it was told; none where it was not.
type Verdict = (Mutation, String, Option<&'static str>);

/// Makes each mistake in the kernels of a graph, which are right without.
fn mistakes_in(name: &str, graph: &str) -> Vec<Verdict> {
    let setup = setup(graph);
    let wanted = setup.reference().unwrap();
    let (got, kernels) = run(&setup, None);
    let got = got.unwrap_or_else(|why| panic!("{name}: {why:?}"));
    assert!(got.iter().zip(&wanted).all(|(got, wanted)| close(got, &wanted.data)), "{name}: {got:?}");
    let verdict = |(mutation, line, mutant)| (mutation, line, caught(&setup, &wanted, mutant));
    kernels.iter().flat_map(mutants).map(verdict).collect()
}

#[test]
fn each_mistake_in_a_kernel_is_found() {
    // Side by side: one thread alone takes a minute.
    let verdicts: Vec<(&str, Vec<Verdict>)> = std::thread::scope(|scope| {
        let begin = |&(name, graph)| (name, scope.spawn(move || mistakes_in(name, graph)));
        let begun: Vec<_> = GRAPHS.iter().map(begin).collect();
        begun.into_iter().map(|(name, thread)| (name, thread.join().unwrap())).collect()
    });
    let (mut found, mut survivors) = (BTreeMap::new(), BTreeMap::new());
    for (name, (mutation, line, by)) in
        verdicts.into_iter().flat_map(|(name, all)| all.into_iter().map(move |v| (name, v)))
    {
        match by {
            Some(by) => *found.entry(by).or_insert(0) += 1,
            None => survivors.entry((name, mutation)).or_insert_with(Vec::new).push(line),
        }
    }
    println!("{found:?}");
    let total: i32 = found.values().sum();
    assert!(total >= 60, "{found:?}");
    let equal: BTreeMap<(&str, Mutation), usize> =
        EQUAL.iter().map(|&(name, mutation, count, _)| ((name, mutation), count)).collect();
    let counted: BTreeMap<(&str, Mutation), usize> = survivors.iter().map(|(&key, all)| (key, all.len())).collect();
    assert_eq!(counted, equal, "{survivors:#?}");
}
