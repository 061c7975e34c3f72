//! Same bytes out: tokens and logits of a request do not depend on threads, chunk size, batch, the order of arrival,
//! cached prefixes, preemption or guesses. Random schedules; every request is compared bit for bit with its run alone.
#![allow(clippy::print_stdout)] // says what it ran

use crate::golden_support::{engine_on, options};
use std::cell::Cell;
use std::collections::HashMap;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;
use yirage_engine::sampling::{PositionLogprobs, SamplerChain, SamplingParams};
use yirage_engine::scheduler::{LogitsWanted, SchedulerStats, SeqId};
use yirage_engine::{CacheSize, Engine, EngineOptions, Event, Request, Speculation, SpeculationControl};
use yirage_hal::reference::Reference;
use yirage_hal::{Backend, Device, OpenOptions};
use yirage_ir::interp::Eval;
use yirage_ir::{Format, Op, Tensor};
use yirage_plan::Precision;
use yirage_sim::{Settings, Sim};
use yirage_testkit::mtp::{self, MtpModel, MtpSight, MtpTables};
use yirage_testkit::rng::Rng;
use yirage_testkit::{absent, bedtime, tiny};

/// What a request gave: its tokens, the bits of its logits where it wanted them, its log-probabilities and those of its
/// prompt, and its end.
#[derive(Clone, PartialEq, Debug, Default)]
struct Output {
    tokens: Vec<u32>,
    logits: Vec<u32>,
    logprobs: Vec<PositionLogprobs>,
    prompt: Vec<(usize, PositionLogprobs)>,
    end: String,
}

/// How the tokens of request `i` are chosen: the largest logit, or drawn in several ways.
fn sampling(i: u64) -> SamplingParams {
    let drawn = SamplingParams { temperature: 0.7, top_k: 8, seed: i, ..SamplingParams::default() };
    match i % 8 {
        4 => host_sampling(i, |chain| {
            chain.dry.multiplier = 0.7;
            chain.xtc.probability = 0.5;
        }),
        5 => SamplingParams { logprobs: Some(2), ..host_sampling(i, |chain| chain.mirostat.version = 2) },
        6 => SamplingParams { frequency_penalty: 0.3, ..host_sampling(i, |chain| chain.typical_p = 0.8) },
        1 => SamplingParams { logprobs: Some(3), ..drawn },
        2 => SamplingParams { repetition_penalty: 1.3, frequency_penalty: 0.2, presence_penalty: 0.1, ..drawn },
        3 => SamplingParams { top_p: 0.8, min_p: 0.02, logit_bias: vec![(5, 2.0), (9, -3.0)], ..drawn },
        _ => SamplingParams::greedy(),
    }
}

/// A request whose tokens the host chooses.
fn host_sampling(seed: u64, ask: fn(&mut SamplerChain)) -> SamplingParams {
    let mut chain = SamplerChain::default();
    ask(&mut chain);
    SamplingParams { temperature: 0.8, seed, chain, ..SamplingParams::default() }
}

/// Requests that often begin alike, some greedy, some drawn, some wanting all logits, some restricted; urgent and not, of
/// two keys.
fn requests(rng: &mut Rng, vocabulary: u32) -> Vec<Request> {
    // A passage over and over, so that there is something to guess.
    let passage: Vec<u32> = (0..13).map(|_| rng.below(u64::from(vocabulary)) as u32).collect();
    let common: Vec<u32> = passage.iter().copied().cycle().take(70).collect();
    (0..6)
        .map(|i| {
            let mut prompt = common[..rng.below(45) as usize].to_vec();
            if prompt.len() < 2 || rng.below(2) == 0 {
                prompt.extend((0..1 + rng.below(20)).map(|_| rng.below(u64::from(vocabulary)) as u32));
            }
            let all = i % 3 == 2;
            let new = if all && rng.below(2) == 0 { 0 } else { 20 + rng.below(41) as u32 };
            let word = passage[rng.below(12) as usize..].iter().copied().take(2).collect();
            Request {
                prompt,
                max_new_tokens: Some(new),
                min_new_tokens: rng.below(1 + u64::from(new) / 2) as u32,
                bad_words: if rng.below(3) == 0 { vec![word, vec![passage[0]]] } else { Vec::new() },
                prompt_logprobs: (rng.below(5) == 0).then_some(2),
                priority: rng.below(3) as i32 - 1,
                key: rng.below(2),
                stop_ids: if rng.below(3) == 0 { vec![rng.below(u64::from(vocabulary)) as u32] } else { Vec::new() },
                sampling: sampling(rng.below(8)),
                logits: all.then_some(LogitsWanted::All),
                ..Request::greedy(Vec::new(), 0)
            }
        })
        .collect()
}

/// Runs requests, each added before a step of its own choosing.
fn run(engine: &mut Engine, requests: &[Request], rng: &mut Rng) -> Vec<Output> {
    let mut of: HashMap<SeqId, usize> = HashMap::new();
    let mut out = vec![Output::default(); requests.len()];
    let (mut next, mut step) = (0, 0);
    while next < requests.len() || !engine.is_idle() {
        while next < requests.len() && (engine.is_idle() || rng.below(3) == 0) {
            of.insert(engine.add(requests[next].clone()).unwrap(), next);
            next += 1;
        }
        step += 1;
        assert!(step < 5000, "no end in sight");
        for event in engine.step().unwrap() {
            match event {
                Event::Token { seq, token, logprobs, .. } => {
                    out[of[&seq]].tokens.push(token);
                    out[of[&seq]].logprobs.extend(logprobs);
                }
                Event::Logits { seq, logits, .. } => out[of[&seq]].logits.extend(logits.iter().map(|x| x.to_bits())),
                Event::PromptLogprobs { seq, position, logprobs } => out[of[&seq]].prompt.push((position, logprobs)),
                Event::Hidden { .. } => unreachable!("no hidden states were asked for"),
                Event::RopeScaled { .. } => {}
                Event::Finished { seq, reason, .. } => {
                    out[of[&seq]].end = format!("{reason:?}");
                    assert!(!out[of[&seq]].end.contains("Error"), "{reason:?}");
                }
            }
        }
    }
    out
}

/// As [`run`], the requests arriving in a random order; what they gave is in the order of `requests`.
fn run_shuffled(engine: &mut Engine, requests: &[Request], rng: &mut Rng) -> Vec<Output> {
    let mut order: Vec<usize> = (0..requests.len()).collect();
    rng.shuffle(&mut order);
    let arriving: Vec<Request> = order.iter().map(|&i| requests[i].clone()).collect();
    let mut out = vec![Output::default(); requests.len()];
    for (i, output) in order.into_iter().zip(run(engine, &arriving, rng)) {
        out[i] = output;
    }
    out
}

/// Guesses whenever there is one, right or wrong.
fn guessing(most: u32) -> Speculation {
    Speculation { most, control: SpeculationControl::Most, ..Speculation::lookup() }
}

/// Requests run alone and mixed by one random schedule.
struct Compared {
    alone: Vec<Output>,
    mixed: Vec<Output>,
    stats: SchedulerStats,
    how: String,
}

/// Runs the schedule of `seed` on devices that `open` gives for a number of threads.
fn compare(model: &Path, base: EngineOptions, seed: u64, open: &dyn Fn(usize) -> Arc<dyn Device>) -> Compared {
    let base = EngineOptions { context: Some(128), ..base };
    let speculation = Speculation::default();
    let solo = EngineOptions { max_seqs: 1, prefix_cache: false, chunk: 128, speculation, ..base.clone() };
    let mut rng = Rng::new(seed * 7 + 1);
    let mut engine = engine_on(model, &solo, open(1));
    let requests = requests(&mut rng, engine.facts().vocabulary);
    let alone = requests.iter().flat_map(|r| run(&mut engine, std::slice::from_ref(r), &mut Rng::new(0))).collect();
    let options = EngineOptions {
        max_seqs: [3, 4, 5, 6, 7, 1][rng.below(6) as usize],
        chunk: [7, 16, 33, 64][rng.below(4) as usize],
        logit_rows: 8 + rng.below(60) as u32,
        cache: CacheSize::Sequences(1),
        max_step: [None, Some(Duration::from_nanos(1)), Some(Duration::from_micros(300))][rng.below(3) as usize],
        prefix_cache: rng.below(4) > 0,
        speculation: if base.speculation.mtp {
            let most = [1 + rng.below(15) as u32, Speculation::MOST][rng.below(2) as usize];
            Speculation { most, ..base.speculation }
        } else {
            [Speculation::default(), guessing(1 + rng.below(15) as u32), Speculation::lookup()][rng.below(3) as usize]
        },
        ..base
    };
    let workers = 1 + rng.below(8) as usize;
    let mut engine = engine_on(model, &options, open(workers));
    let mixed = run_shuffled(&mut engine, &requests, &mut rng);
    let how = format!("{} seed {seed}, {workers} threads, {options:?}", model.display());
    Compared { alone, mixed, stats: engine.stats(), how }
}

fn check(model: &Path, precision: Precision, seeds: u64) -> SchedulerStats {
    check_with(model, &options(precision), seeds)
}

fn check_with(model: &Path, base: &EngineOptions, seeds: u64) -> SchedulerStats {
    let cpu =
        |threads| yirage_cpu::Cpu.open(0, &OpenOptions { threads: Some(threads), ..OpenOptions::default() }).unwrap().0;
    let mut sum = SchedulerStats::default();
    for seed in 0..seeds {
        let compared = compare(model, base.clone(), seed, &cpu);
        assert_eq!(compared.mixed, compared.alone, "{}", compared.how);
        sum = add(sum, compared.stats);
    }
    println!("{}: {seeds} schedules, {sum:?}", model.display());
    sum
}

/// On two simulated accelerators: requests alone on the first, mixed on the second, whose commands are held up.
fn check_on_sim(model: &Path, base: &EngineOptions, seed: u64) -> SchedulerStats {
    let delay = Duration::from_micros(20);
    let sim = Sim::with(Settings { devices: 2, seed, delay, captures_graphs: seed != 2, ..Settings::default() });
    let opened = Cell::new(0);
    let open = |_| sim.open(opened.replace(1), &OpenOptions::default()).unwrap().0;
    let compared = compare(model, base.clone(), seed, &open);
    assert_eq!(compared.mixed, compared.alone, "{}", compared.how);
    compared.stats
}

fn add(a: SchedulerStats, b: SchedulerStats) -> SchedulerStats {
    SchedulerStats {
        preemptions: a.preemptions + b.preemptions,
        prefix_hit: a.prefix_hit + b.prefix_hit,
        drafted: a.drafted + b.drafted,
        accepted: a.accepted + b.accepted,
        ..a
    }
}

#[test]
fn f32_and_q8_0() {
    let mut sum = SchedulerStats::default();
    for precision in [Precision::Exact, Precision::Fast] {
        sum = add(sum, check(&bedtime::f32(), precision, 6));
        sum = add(sum, check(&bedtime::q8_0(), precision, 6));
    }
    assert!(sum.preemptions > 0, "no schedule was tight enough to preempt");
    assert!(sum.prefix_hit > 0, "nothing was shared");
    assert!(sum.accepted > 0 && sum.drafted > sum.accepted, "guesses were not right and wrong: {sum:?}");
}

#[test]
fn simulated_accelerators_that_delay() {
    let mut sum = SchedulerStats::default();
    for seed in 1..=3 {
        for precision in [Precision::Exact, Precision::Fast] {
            sum = add(sum, check_on_sim(&tiny::model("qwen3"), &options(precision), seed));
            sum = add(sum, check_on_sim(&tiny::model("gemma3"), &options(precision), seed));
        }
    }
    assert!(sum.preemptions > 0 && sum.prefix_hit > 0 && sum.drafted > 0, "{sum:?}");
}

#[test]
fn windows_experts_and_latent_caches() {
    for model in ["mistral-swa", "gemma3", "gptoss", "qwen3moe", "deepseek-v3"] {
        check(&tiny::model(model), Precision::Fast, 3);
    }
}

/// MTP heads guess beside prompts in chunks, behind beginnings that the cache has, and after preemption. Random ones are
/// wrong, and such as foresee the model are right.
#[test]
fn mtp_heads() {
    let always = Speculation { control: SpeculationControl::Most, ..Speculation::mtp() };
    let mut sum = SchedulerStats::default();
    for name in mtp::NAMES {
        for model in [MtpModel::random(name, MtpTables::Missing), MtpModel::foreseen(name, MtpSight::Token)] {
            for (precision, speculation) in [(Precision::Exact, always), (Precision::Fast, Speculation::mtp())] {
                let base = EngineOptions { speculation, ..options(precision) };
                sum = add(sum, check_with(&model.folder(), &base, 4));
            }
        }
    }
    let base = EngineOptions { speculation: always, ..options(Precision::Fast) };
    sum = add(sum, check_on_sim(&MtpModel::foreseen("deepseek-v3", MtpSight::State).folder(), &base, 1));
    assert!(sum.preemptions > 0 && sum.prefix_hit > 0, "{sum:?}");
    assert!(sum.accepted > 0 && sum.drafted > sum.accepted, "guesses were not right and wrong: {sum:?}");
}

/// Recurrent states begin anew with each sequence, go on from chunk to chunk, are computed again after preemption, and begin
/// where sequences that began alike have left theirs. No token is guessed, as no state goes back.
#[test]
fn recurrent_states() {
    let mut sum = SchedulerStats::default();
    for (model, seeds) in [
        ("lfm2", 6),
        ("lfm2-moe", 2),
        ("granite-h", 3),
        ("mamba2", 3),
        ("qwen3next", 3),
        ("qwen35", 2),
        ("nemotron-h-moe", 2),
    ] {
        sum = add(sum, check(&tiny::model(model), Precision::Fast, seeds));
        sum = add(sum, check_on_sim(&tiny::model(model), &options(Precision::Exact), 1));
    }
    assert!(sum.preemptions > 0 && sum.prefix_hit > 0, "{sum:?}");
    assert_eq!(sum.drafted, 0);
}

#[test]
fn int8_cache() {
    for precision in [Precision::Exact, Precision::Fast] {
        check_with(&tiny::model("qwen3"), &EngineOptions { kv: Some(Format::Q8_0), ..options(precision) }, 4);
    }
}

#[test]
fn bf16_weights() {
    let tiny = Path::new(env!("CARGO_MANIFEST_DIR")).join("../yirage-model/tests/golden/tiny/safetensors");
    for model in ["llama-llama3", "qwen3-biased-tied", "gemma3-pattern"] {
        check(&tiny.join(model), Precision::Fast, 3);
    }
}

#[test]
fn rotations_that_depend_on_the_length_of_a_sequence() {
    let tiny = Path::new(env!("CARGO_MANIFEST_DIR")).join("../yirage-model/tests/golden/tiny/safetensors");
    check(&tiny.join("llama-dynamic"), Precision::Fast, 3);
}

/// A product in f32, ascending; with `split` by two workers that meet in the middle.
fn product(op: &Op, ins: &[&Tensor], split: impl Fn(usize) -> bool) -> Vec<Tensor> {
    let Op::Linear(linear) = op else { return op.eval(ins) };
    assert_eq!(linear.groups, 1);
    let (rows, n, k) = (ins[0].rows(), ins[1].rows(), ins[1].width());
    // One input of all outputs after the other: these additions are side by side, those of an output are in order.
    let mut weights = vec![0f32; k * n];
    for i in 0..n {
        ins[1].row(i).into_iter().enumerate().for_each(|(at, w)| weights[at * n + i] = w);
    }
    let sums = |x: &[f32], from: usize| {
        let mut sums = vec![0f32; n];
        for (x, weights) in x.iter().zip(weights[from * n..].chunks_exact(n)) {
            sums.iter_mut().zip(weights).for_each(|(sum, w)| *sum += x * w);
        }
        sums
    };
    let mut out = Vec::with_capacity(rows * n);
    for x in (0..rows).map(|t| ins[0].row(t)) {
        let at = if split(rows) { k / 2 } else { 0 };
        out.extend(sums(&x[..at], 0).iter().zip(sums(&x[at..], at)).map(|(a, b)| a + b));
    }
    vec![Tensor::f32([rows, n], out)]
}

/// These tests are worth something: they pass a kernel with one order, and find one that splits the sums of large
/// batches, as a library does that chooses its kernel by the shape.
#[test]
fn a_kernel_whose_order_depends_on_the_batch_is_found() {
    let model = bedtime::f32();
    let differs = |eval: Eval| {
        let open = |_| Reference::with(eval).open(0, &OpenOptions::default()).unwrap().0;
        (0..3).any(|seed| {
            let compared = compare(&model, options(Precision::Exact), seed, &open);
            compared.alone != compared.mixed
        })
    };
    assert!(!differs(|op, ins| product(op, ins, |_| false)), "one order differs from itself");
    assert!(!differs(|op, ins| product(op, ins, |_| true)), "one order differs from itself");
    assert!(differs(|op, ins| product(op, ins, |rows| rows > 24)), "the misordered kernel was not found");
}

#[test]
#[ignore = "needs smollm2-135m-instruct-q4_1.gguf in YIRAGE_MODELS"]
fn a_real_model() {
    let model = absent::model("smollm2-135m-instruct-q4_1.gguf");
    check(&model, Precision::Fast, 1);
    check_with(&model, &EngineOptions { kv: Some(Format::Q8_0), ..options(Precision::Fast) }, 1);
}

/// A request that is sent once more draws the same tokens; its other choices draw others.
#[test]
fn the_same_request_draws_the_same_tokens_again() {
    let tiny = Path::new(env!("CARGO_MANIFEST_DIR")).join("../yirage-model/tests/golden/tiny/safetensors");
    let (device, _) = yirage_cpu::Cpu.open(0, &OpenOptions { threads: Some(1), ..OpenOptions::default() }).unwrap();
    let base = EngineOptions { context: Some(64), max_seqs: 4, ..options(Precision::Exact) };
    let mut engine = engine_on(&tiny.join("llama-llama3"), &base, device);
    let choice = |choice| Request {
        sampling: SamplingParams { temperature: 1.5, seed: 7, choice, ..SamplingParams::default() },
        ..Request::greedy(vec![1, 5, 9], 24)
    };
    let requests = [choice(0), choice(1), choice(0), choice(1)];
    let out = run(&mut engine, &requests, &mut Rng::new(3));
    assert_eq!((&out[0], &out[1]), (&out[2], &out[3]));
    assert_ne!(out[0].tokens, out[1].tokens);
}
