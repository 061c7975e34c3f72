//! Attention by the kernel that is written by hand: its text against sums of f64, the bytes that it gives in batches and chunks, and
//! mistakes made in it.

use crate::conformance::holds;
use crate::fake::FakeCuda;
use crate::support::{LONG, buffer_of, device, driver, machine, run, words};
use std::collections::HashSet;
use yirage_compile::{CompileOptions, compile_explained, plan_weights};
use yirage_conformance::Suite;
use yirage_cuda::{CudaBackend, CudaDriver, CudaVendor, attention};
use yirage_hal::driver::{Binding, BindingAccess, Driver, KernelLaunch, Launch, LaunchConfig, Library};
use yirage_ir::op::Attention;
use yirage_ir::rng::Rng;
use yirage_ir::{Dim, Dims, F32, Format, Tensor, Type, text};
use yirage_kernels::{AttentionKernel, KernelLibrary, PagedAttentionShape, RowCount, target};
use yirage_plan::{DeviceLimits, Precision};

/// Positions of a block of the cache.
const BLOCK: u32 = 32;
/// Sequences of a batch.
const SEQS: u32 = 3;
/// Blocks of each.
const BLOCKS: u32 = 10;

/// A step with its operands and what it has to give.
#[derive(Clone)]
struct Step {
    shape: PagedAttentionShape,
    queries: Vec<f32>,
    cache: Vec<u8>,
    positions: Vec<i32>,
    seqs: Vec<i32>,
    sinks: Vec<f32>,
}

/// An op of so many query heads, key heads and elements of both.
fn op(heads: u32, kv_heads: u32, width: u32) -> Attention {
    Attention {
        heads,
        kv_heads,
        k_width: width,
        v_width: width,
        scale: F32(0.25),
        softcap: F32(0.0),
        window: 0,
        causal: true,
        cached: true,
        v_in_k: false,
    }
}

impl Step {
    /// A step of tokens, each with its position and sequence. What no sequence has in the cache is no number.
    fn new(op: &Attention, cache: Format, has_sinks: bool, tokens: &[(i32, i32)]) -> Step {
        let mut rng = Rng::new(u64::from(op.heads * 5 + op.k_width));
        let (elements, info) = ((op.k_width + op.v_width) * op.kv_heads, cache.info());
        let slots = SEQS * BLOCKS * BLOCK;
        let row_bytes = elements as usize / info.block * info.bytes;
        let mut bytes = vec![0xff; slots as usize * row_bytes];
        let most = |seq: u32| tokens.iter().filter(|token| token.1 == seq as i32).map(|token| token.0 + 1).max();
        for seq in 0..SEQS {
            for position in 0..most(seq).unwrap_or(0) as u32 {
                let slot = table()[(seq * BLOCKS + position / BLOCK) as usize] as u32 * BLOCK + position % BLOCK;
                let row = &mut bytes[slot as usize * row_bytes..][..row_bytes];
                row.chunks_mut(info.bytes).for_each(|block| fill(cache, block, &mut rng));
            }
        }
        let mut floats = |count: u32| (0..count).map(|_| rng.signed_f32()).collect::<Vec<f32>>();
        let (queries, sinks) = (floats(tokens.len() as u32 * op.heads * op.k_width), floats(op.heads));
        let [of_tokens, seqs, blocks] = [0, 1, 2].map(RowCount::Size);
        let most_tokens = tokens.len() as u32;
        let shape =
            PagedAttentionShape { op: op.clone(), cache, has_sinks, tokens: of_tokens, most_tokens, seqs, blocks };
        let (positions, seqs) = tokens.iter().copied().unzip();
        Step { shape, queries, cache: bytes, positions, seqs, sinks }
    }

    /// Some of its tokens, as a step of their own.
    fn part(&self, tokens: &[usize]) -> Step {
        let row = (self.shape.op.heads * self.shape.op.k_width) as usize;
        let of = |all: &[i32]| tokens.iter().map(|&token| all[token]).collect();
        Step {
            shape: PagedAttentionShape { most_tokens: tokens.len() as u32, ..self.shape.clone() },
            queries: tokens.iter().flat_map(|&token| self.queries[token * row..][..row].to_vec()).collect(),
            positions: of(&self.positions),
            seqs: of(&self.seqs),
            ..self.clone()
        }
    }

    fn kernel(&self) -> AttentionKernel {
        attention("sm_90").unwrap().kernel(&self.shape)
    }

    /// What the op gives by its definition.
    fn wanted(&self) -> Vec<f32> {
        let op = &self.shape.op;
        let state = [SEQS * BLOCKS, BLOCK, op.kv_heads, op.k_width + op.v_width].map(Dim::Const);
        let cache = Type::new(self.shape.cache.into(), state);
        // Nothing that is not seen takes part, not even where it is no number.
        let tokens = self.positions.len();
        let mut ins = vec![
            Tensor::f32([tokens, (op.heads * op.k_width) as usize], self.queries.clone()),
            Tensor::from_memory(&cache, &Dims::default(), &self.cache),
            Tensor::i32([tokens], self.positions.clone()),
            Tensor::i32([tokens], self.seqs.clone()),
            Tensor::i32([SEQS as usize, BLOCKS as usize], table()),
        ];
        if self.shape.has_sinks {
            ins.push(Tensor::f32([op.heads as usize], self.sinks.clone()));
        }
        let all: Vec<&Tensor> = ins.iter().collect();
        yirage_ir::op::OpDef::eval(op, &all).remove(0).floats().to_vec()
    }

    /// What a kernel gives, or what is said of it.
    fn run(&self, driver: &CudaDriver, kernel: &AttentionKernel) -> Result<Vec<f32>, String> {
        let bits = |floats: &[f32]| floats.iter().map(|x| x.to_bits()).collect::<Vec<u32>>();
        let ints = |all: &[i32]| all.iter().map(|&x| x as u32).collect::<Vec<u32>>();
        let tokens = self.positions.len() as u32;
        let mut words_of = vec![vec![tokens, SEQS, BLOCKS, 1], bits(&self.queries)];
        words_of
            .push(self.cache.chunks(4).map(|four| four.iter().rev().fold(0, |w, &b| w << 8 | u32::from(b))).collect());
        words_of.extend([ints(&self.positions), ints(&self.seqs), ints(&table())]);
        words_of.extend(self.shape.has_sinks.then(|| bits(&self.sinks)));
        words_of.push(vec![0xffff_ffff; (tokens * self.shape.op.heads * self.shape.op.v_width) as usize]);
        let AttentionKernel { name, source, threads, .. } = kernel;
        let text = format!("native {name} {threads} {} {}\n{source}\n", words_of.len(), source.len());
        let module = driver.module(text.as_bytes()).map_err(|error| error.to_string())?;
        let slices: Vec<_> = words_of.iter().map(|words| buffer_of(driver, words)).collect();
        let last = slices.len() - 1;
        let access = |at| if at == last { BindingAccess::Write } else { BindingAccess::Read };
        let bindings = slices.iter().enumerate().map(|(at, &slice)| Binding { slice, access: access(at) }).collect();
        let KernelLaunch { config, bindings, .. } = KernelLaunch::new(name.clone(), bindings, Vec::new());
        let config = LaunchConfig { block: [*threads, 1, 1], early_start: kernel.waits, ..config };
        let grid = [self.shape.most_tokens.div_ceil(kernel.tokens_of_group), kernel.groups_of_heads, 1];
        let ended = run(driver, Launch { module, config, grid, bindings }).and_then(|()| driver.signal());
        ended.and_then(|value| driver.wait(value, LONG)).map_err(|error| error.to_string())?;
        let got = words(driver, slices[last]).iter().map(|&bits| f32::from_bits(bits)).collect();
        slices.iter().for_each(|slice| driver.free(slice.buffer));
        Ok(got)
    }

    /// Whether results are the wanted ones, as far as the operator's own cases allow.
    fn is_right(&self, got: &[f32]) -> bool {
        got.iter().zip(self.wanted()).all(|(&got, wanted)| (got - wanted).abs() <= 1e-5 + 1e-5 * wanted.abs())
    }
}

/// Where sequences' blocks lie, scattered.
fn table() -> Vec<i32> {
    (0..SEQS * BLOCKS).map(|at| (at * 7 % (SEQS * BLOCKS)) as i32).collect()
}

/// Elements of a block of a format.
fn fill(cache: Format, block: &mut [u8], rng: &mut Rng) {
    let value = rng.signed_f32();
    match cache {
        Format::F32 => block.copy_from_slice(&value.to_le_bytes()),
        Format::BF16 => block.copy_from_slice(&value.to_le_bytes()[2..]),
        // Of magnitudes below 2, with any sign and bits.
        Format::F16 => {
            block.copy_from_slice(&[rng.below(256) as u8, 0x30 + rng.below(12) as u8 + 128 * rng.below(2) as u8])
        }
        _ => {
            block.iter_mut().for_each(|byte| *byte = rng.below(256) as u8);
            (block[0], block[1]) = (rng.below(256) as u8, 0x20 + rng.below(2) as u8);
        }
    }
}

/// Tokens of a sequence at neighbouring positions.
fn span(first: i32, count: i32, seq: i32) -> impl Iterator<Item = (i32, i32)> {
    (first..first + count).map(move |position| (position, seq))
}

/// One sequence that decodes at a great depth, a piece of a prompt with one of its first tokens behind it, and a first token.
fn batch() -> Vec<(i32, i32)> {
    span(300, 1, 0).chain(span(27, 9, 1)).chain(span(5, 1, 1)).chain(span(0, 1, 2)).collect()
}

#[test]
#[ignore = "needs a compiler of C++"]
fn every_case_of_attention_holds() {
    let device = device();
    assert!(device.target().kernels.iter().any(|facts| facts.kernel.name == "cuda/attention@1"));
    holds(&device, &Suite::quick_of(&["attention"]));
    assert_eq!(machine().stats().overruns, 0);
}

#[test]
#[ignore = "needs a compiler of C++"]
fn a_token_has_the_same_bytes_in_every_batch_and_every_chunk() {
    let driver = driver();
    for (cache, width, window) in [(Format::BF16, 64, 0), (Format::F32, 16, 45), (Format::Q8_0, 32, 0)] {
        // A prompt of 40 tokens behind 250 others, and tokens of other sequences.
        let op = Attention { window, ..op(4, 2, width) };
        let tokens: Vec<(i32, i32)> = span(9, 1, 1).chain(span(250, 40, 0)).chain(span(70, 2, 2)).collect();
        let whole = Step::new(&op, cache, false, &tokens);
        let all = whole.run(&driver, &whole.kernel()).unwrap();
        assert!(whole.is_right(&all), "{cache:?}");
        let row = (op.heads * op.v_width) as usize;
        let parts: [Vec<usize>; 6] =
            [vec![1], vec![40], (1..6).collect(), (3..24).collect(), vec![42, 0, 30, 7, 8], (0..43).rev().collect()];
        for tokens in parts {
            let part = whole.part(&tokens);
            let got = part.run(&driver, &part.kernel()).unwrap();
            for (at, &token) in tokens.iter().enumerate() {
                let bits = |floats: &[f32]| floats.iter().map(|x| x.to_bits()).collect::<Vec<u32>>();
                let (alone, together) = (bits(&got[at * row..][..row]), bits(&all[token * row..][..row]));
                assert!(alone == together, "{cache:?}: token {token} of {tokens:?}");
            }
        }
    }
}

/// What is changed of an op, for a mistake to show.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Variant {
    Plain,
    Window,
    Softcap,
    Sinks,
    /// Values of two slices.
    Wide,
}

fn step_of(variant: Variant, cache: Format) -> Step {
    let width = if cache == Format::Q8_0 { 32 } else { 16 };
    let op = match variant {
        Variant::Plain | Variant::Sinks => op(4, 2, width),
        Variant::Window => Attention { window: 40, ..op(4, 2, width) },
        Variant::Softcap => Attention { softcap: F32(1.5), ..op(4, 2, width) },
        Variant::Wide => op(2, 1, 64),
    };
    Step::new(&op, cache, variant == Variant::Sinks, &batch())
}

/// Mistakes in the text, with what shows them.
const MISTAKES: &[(&str, &str, Variant, Format)] = &[
    // Barriers that are dropped: behind queries, before and behind factors, before sums are replaced.
    ("  __syncthreads();\n  RowSums rows;", "  RowSums rows;", Variant::Plain, Format::BF16),
    ("  __syncthreads();\n  find_factors", "  find_factors", Variant::Plain, Format::BF16),
    ("      __syncthreads();\n      for (Word at", "      for (Word at", Variant::Plain, Format::BF16),
    ("      }\n      __syncthreads();\n    }\n}", "      }\n    }\n}", Variant::Wide, Format::BF16),
    // Which blocks a warp has, and where they lie.
    ("number += WARPS", "number += WARPS - 1", Variant::Plain, Format::BF16),
    ("(slot * KV_HEADS + kv_head)", "(slot * KV_HEADS)", Variant::Plain, Format::BF16),
    ("KV_HEADS * (K_WIDTH + V_WIDTH));", "(K_WIDTH + V_WIDTH));", Variant::Plain, Format::F32),
    ("in.table[run.table_row + number]", "in.table[number]", Variant::Plain, Format::BF16),
    // What is seen.
    ("position < end", "position <= end", Variant::Plain, Format::BF16),
    (
        "position >= first && position < end ? exponential",
        "position < end ? exponential",
        Variant::Window,
        Format::BF16,
    ),
    ("position - (WINDOW - 1)", "position - WINDOW", Variant::Window, Format::BF16),
    ("position < most ? position + 1 : most", "position < most ? position : most", Variant::Plain, Format::BF16),
    ("memory.table_row[run.to] == run.table_row", "true", Variant::Plain, Format::BF16),
    ("token >= run.from && token < run.to", "true", Variant::Plain, Format::BF16),
    ("if (block.is_there(place)) CACHE::read<READ>", "CACHE::read<READ>", Variant::Plain, Format::F32),
    ("if (end > run.end) run.end = end;", "run.end = end;", Variant::Plain, Format::BF16),
    // Softmax over blocks: sums that stay as they are, a largest score that not all lanes have.
    ("rows.weights[tile][half] *= factor;", "", Variant::Plain, Format::BF16),
    ("rows.values[tile][column][half * 2 + at] *= factor", "(void)factor", Variant::Plain, Format::BF16),
    ("mask < 4; mask *= 2) {", "mask < 2; mask *= 2) {", Variant::Plain, Format::BF16),
    ("mask < 4; mask *= 2) weights", "mask < 2; mask *= 2) weights", Variant::Plain, Format::BF16),
    ("if (SINKS) total", "if (!SINKS) total", Variant::Sinks, Format::BF16),
    ("in.sinks[kv_head * RATIO + head_of(row)]", "in.sinks[head_of(row)]", Variant::Sinks, Format::BF16),
    (
        "hyperbolic_tangent(score / SOFTCAP) * SOFTCAP",
        "hyperbolic_tangent(score) * SOFTCAP",
        Variant::Softcap,
        Format::BF16,
    ),
    ("exponential(size * -2.0f)", "exponential(-size)", Variant::Softcap, Format::BF16),
    // Elements in another order, or of another head.
    ("own % 2 + own / 2 * 8", "own", Variant::Plain, Format::BF16),
    ("K_WIDTH + group * RUN", "group * RUN", Variant::Plain, Format::BF16),
    ("place % 8 * RUN + slice", "place % 8 * 8 + slice", Variant::Plain, Format::BF16),
    ("(at / 2 * 8 + at % 2)", "(at / 2 * 4 + at % 2)", Variant::Plain, Format::BF16),
    (
        "head = kv_head * RATIO + head_of(row);\n      const float* from",
        "head = head_of(row);\n      const float* from",
        Variant::Plain,
        Format::BF16,
    ),
    ("RUN % 8 == 0 ? 8 :", "RUN % 4 == 0 ? 8 :", Variant::Plain, Format::Q8_0),
    ("at % 32 + pair * 2", "at % 16 + pair * 2", Variant::Plain, Format::Q8_0),
    ("at / 32 * 34", "at / 32 * 32", Variant::Plain, Format::Q8_0),
    // Too few terms.
    ("TERMS_OF_CACHE = 2", "TERMS_OF_CACHE = 1", Variant::Plain, Format::F16),
    ("const Word TERMS = 3", "const Word TERMS = 1", Variant::Plain, Format::BF16),
];

/// Whether a kernel is told from the right one by some of the orders in which its threads may run.
fn is_caught(driver: &CudaDriver, step: &Step, kernel: &AttentionKernel) -> bool {
    (0..6).any(|_| step.run(driver, kernel).map_or(true, |got| !step.is_right(&got)))
}

#[test]
#[ignore = "needs a compiler of C++"]
fn each_mistake_in_the_text_of_attention_is_found() {
    let (mut survivors, mut tried) = (Vec::new(), HashSet::new());
    for &(right, wrong, variant, cache) in MISTAKES {
        // A fault ends a context: each has a device of its own.
        let machine = FakeCuda::new(&[]);
        let driver = CudaBackend::new(CudaVendor::Nvidia, machine.surroundings()).driver(0).unwrap();
        let step = step_of(variant, cache);
        let kernel = step.kernel();
        assert!(kernel.source.contains(right), "the text has no `{right}`");
        if tried.insert((variant, cache.info().name)) {
            assert!(!is_caught(&driver, &step, &kernel), "the right text of {variant:?} and {cache:?}");
        }
        let mutant = AttentionKernel { source: kernel.source.replace(right, wrong), ..kernel };
        if !is_caught(&driver, &step, &mutant) && machine.stats().overruns == 0 {
            survivors.push(format!("`{right}` as `{wrong}`"));
        }
    }
    assert!(survivors.is_empty(), "{} of {}: {survivors:#?}", survivors.len(), MISTAKES.len());
}

/// The kernel that a plan of attention has, and what is said of the choice.
fn chosen(cache: &str, k: u32, v: u32) -> (String, String) {
    let library = KernelLibrary::new(target("cuda", "sm_90", DeviceLimits::aligned(256)));
    let library = library.and_attention(attention("sm_90").unwrap());
    let both = k + v;
    let graph = format!(
        "graph g {{ input %q: f32[Tokens, {}] kv_cache %c: {cache}[32, 2, {both}] input %p: i32[Tokens] input %s: i32[Tokens]
         input %t: i32[Seqs, Blocks]
         %y = attention{{heads=4, kv_heads=2, k_width={k}, v_width={v}, scale=0.25, softcap=0, window=0, causal=true, cached=true, v_in_k=false}}(%q, %c, %p, %s, %t): f32[Tokens, {}]
         output %y }}",
        4 * k,
        4 * v
    );
    let (graph, target) = (text::parse(&graph).unwrap(), library.target());
    let (mut told, bucket) = (Vec::new(), Dims { tokens: 4, seqs: 1, blocks: 1, rows: 1 });
    let weights = plan_weights(&graph, &target).unwrap();
    let options = CompileOptions::new(Precision::Exact);
    let plan = compile_explained(&graph, bucket, &target, &weights, &options, &mut told).unwrap();
    let why = told.iter().flat_map(|pass| &pass.decisions).map(|decision| decision.why.as_str());
    (plan.kernels[0].name.clone(), why.collect::<Vec<_>>().join("; "))
}

#[test]
fn a_plan_names_the_kernel_of_attention_or_says_what_it_does_not_take() {
    for cache in ["f32", "f16", "bf16", "q8_0"] {
        assert_eq!(chosen(cache, 64, 64).0, "cuda/attention@1", "{cache}");
    }
    for (k, v, wanted) in [(13, 16, "k_width = 13"), (64, 160, "v_width = 160"), (64, 24, "v_width = 24")] {
        let (kernel, why) = chosen("bf16", k, v);
        assert!(
            kernel == "kir/kernels@1" && why.contains(wanted) && why.contains("cuda/attention@1"),
            "{kernel}: {why}"
        );
    }
}

#[test]
fn tiles_follow_from_the_op_and_the_number_of_tokens() {
    let of = |heads, kv_heads, width, cache, tokens: i32| {
        let made =
            Step::new(&op(heads, kv_heads, width), cache, false, &span(0, tokens, 0).collect::<Vec<_>>()).kernel();
        (made.tokens_of_group, made.groups_of_heads)
    };
    assert_eq!(of(8, 2, 64, Format::BF16, 1), (4, 2));
    assert_eq!(of(8, 2, 64, Format::BF16, 9), (8, 2), "two tiles");
    assert_eq!(of(8, 2, 64, Format::Q8_0, 9), (4, 2), "what is decoded with more takes more registers");
    assert_eq!(of(7, 1, 64, Format::BF16, 1), (2, 1));
    assert_eq!(of(40, 2, 16, Format::F32, 3), (1, 4), "more heads of a key than rows of a tile");
}
