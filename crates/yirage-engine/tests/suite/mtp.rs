//! MTP heads as drafters: they change no byte and no distribution, are right where they must be, begin where states are
//! known, and are told of.
#![allow(clippy::print_stdout)] // says what it ran

use crate::golden_support::{all_logits, engine_with, options};
use std::path::Path;
use yirage_engine::sampling::SamplingParams;
use yirage_engine::scheduler::{FinishReason, SequenceUsage};
use yirage_engine::{
    CacheSize, Engine, EngineError, EngineOptions, Event, GraphModel, Request, Speculation, SpeculationControl,
};
use yirage_hal::{Backend, OpenOptions};
use yirage_model::Checkpoint;
use yirage_plan::Precision;
use yirage_testkit::distribution::{chi_square, critical, softmax};
use yirage_testkit::mtp::{MtpModel, MtpSight, MtpTables, NAMES};
use yirage_testkit::tiny;

/// The head guesses as much as it may, whatever that costs.
fn always(most: u32) -> Speculation {
    Speculation { most, control: SpeculationControl::Most, ..Speculation::mtp() }
}

fn with(speculation: Speculation) -> EngineOptions {
    EngineOptions { context: Some(256), speculation, ..options(Precision::Fast) }
}

fn engine(model: &Path, options: &EngineOptions) -> Engine {
    engine_with(model, options, &OpenOptions { threads: Some(1), ..OpenOptions::default() })
}

fn prompt(length: u32) -> Vec<u32> {
    (0..length).map(|i| (5 + i * i * 7) % 64).collect()
}

fn sampled(length: u32, new: u32, seed: u64) -> Request {
    let sampling = SamplingParams { temperature: 1.0, seed, ..SamplingParams::default() };
    Request { sampling, ..Request::greedy(prompt(length), new) }
}

/// Runs requests together; tokens and usage of each.
fn run(engine: &mut Engine, requests: Vec<Request>) -> Vec<(Vec<u32>, SequenceUsage)> {
    let seqs: Vec<_> = requests.into_iter().map(|request| engine.add(request).unwrap()).collect();
    let mut out = vec![(Vec::new(), None); seqs.len()];
    while !engine.is_idle() {
        for event in engine.step().unwrap() {
            let at = |seq| seqs.iter().position(|&own| own == seq).unwrap();
            match event {
                Event::Token { seq, token, .. } => out[at(seq)].0.push(token),
                Event::Finished { seq, usage, reason, .. } => {
                    assert!(!matches!(reason, FinishReason::Error(_)), "{reason:?}");
                    out[at(seq)].1 = Some(usage);
                }
                _ => {}
            }
        }
    }
    out.into_iter().map(|(tokens, usage)| (tokens, usage.unwrap())).collect()
}

fn one(engine: &mut Engine, request: Request) -> (Vec<u32>, SequenceUsage) {
    run(engine, vec![request]).remove(0)
}

/// A head that sees the next token in the hidden state alone would guess wrong by a state of another position, or none;
/// its own stands for the model's from the second guess on. One that sees it in the token draws with the model's random
/// numbers, and is right whatever is drawn.
#[test]
fn a_head_that_foresees_the_model_is_always_right() {
    let sights = [MtpSight::State, MtpSight::Token];
    for (name, sight) in NAMES.into_iter().flat_map(|name| sights.map(|sight| (name, sight))) {
        let model = MtpModel::foreseen(name, sight).folder();
        for most in [1, 2, 7] {
            let (mut plain, mut guessing) =
                (engine(&model, &with(Speculation::default())), engine(&model, &with(always(most))));
            // Shorter and longer than what is read along, than a chunk, and than a block of the cache.
            for length in [1, 2, 9, 33, 70, 150] {
                let all = [Request::greedy(prompt(length), 60), sampled(length, 60, u64::from(length))];
                for request in all.into_iter().take(if sight == MtpSight::Token { 2 } else { 1 }) {
                    let (expected, plain_usage) = one(&mut plain, request.clone());
                    let (got, usage) = one(&mut guessing, request);
                    let what = format!("{name}, {sight:?}, {most} guesses, prompt of {length}: {usage:?}");
                    assert_eq!((got, plain_usage.drafted), (expected, 0), "{what}");
                    assert!(usage.drafted > 0 && usage.accepted == usage.drafted, "{what}");
                    assert!(usage.verifications <= 60_usize.div_ceil(1 + most as usize) + 1, "{what}");
                }
            }
        }
    }
}

/// Beginnings that the model finds in its cache have no states. The head has them in its own, or, of those that end with a
/// block, lacks the last token's and begins behind. It is right in each case.
#[test]
fn a_head_begins_where_states_are_known() {
    let model = MtpModel::foreseen("deepseek-v3", MtpSight::State).folder();
    for prefix_cache in [true, false] {
        let options = EngineOptions { prefix_cache, ..with(always(3)) };
        let mut engine = engine(&model, &options);
        let first: Vec<u32> = prompt(100);
        let behind = |n: usize, last: u32| [&first[..n], &[last, 1, 2]].concat();
        let mut cached = Vec::new();
        for tokens in [first.clone(), first.clone(), behind(90, 60), behind(96, 61), behind(64, 62)] {
            let (_, usage) = one(&mut engine, Request::greedy(tokens, 20));
            assert!(usage.drafted > 0 && usage.accepted == usage.drafted, "{usage:?}");
            cached.push(usage.cached_tokens);
        }
        assert_eq!(cached.iter().any(|&cached| cached >= 64), prefix_cache, "{cached:?}");
    }
}

/// More sequences than the caches hold at once: some lose their place, are computed again, and go on guessing.
#[test]
fn sequences_that_lose_their_place_and_such_without_room_are_guessed_or_not_and_the_same() {
    let model = MtpModel::foreseen("glm4moe", MtpSight::Token).folder();
    let base = EngineOptions { max_seqs: 6, chunk: 32, cache: CacheSize::Sequences(1), ..with(Speculation::default()) };
    let requests = || (0..9).map(|at| sampled(20 + 9 * at, 70, u64::from(at))).collect::<Vec<_>>();
    let expected = run(&mut engine(&model, &base), requests());
    let mut guessing = engine(&model, &EngineOptions { speculation: always(3), ..base });
    let got = run(&mut guessing, requests());
    let stats = guessing.stats();
    println!("{stats:?}");
    assert!(stats.preemptions > 0 && stats.drafted > 0 && stats.accepted > 0, "{stats:?}");
    let tokens = |all: &[(Vec<u32>, SequenceUsage)]| all.iter().map(|(tokens, _)| tokens.clone()).collect::<Vec<_>>();
    assert_eq!(tokens(&got), tokens(&expected));
}

/// Tokens at verified places follow the model's own distribution, whoever guessed: a head that draws as the model does,
/// and one whose guesses are of another distribution. A guess is accepted where it is the token.
#[test]
fn tokens_that_a_head_guessed_keep_the_distribution() {
    const RUNS: u64 = 4000;
    const OTHER: f64 = 1.5;
    for (sight, right) in [(MtpSight::Token, true), (MtpSight::State, false)] {
        let model = MtpModel::foreseen("deepseek-v3", sight).folder();
        let (mut guessing, mut exact) =
            (engine(&model, &with(always(4))), engine(&model, &with(Speculation::default())));
        let (mut drafted, mut accepted) = (0, 0);
        let runs: Vec<Vec<u32>> = (0..RUNS)
            .map(|seed| {
                let (tokens, usage) = one(&mut guessing, sampled(5, 4, seed));
                (drafted, accepted) = (drafted + usage.drafted, accepted + usage.accepted);
                assert!(usage.drafted > 0, "nothing was guessed");
                if seed < 50 {
                    assert_eq!(one(&mut exact, sampled(5, 4, seed)).0, tokens, "seed {seed}");
                }
                tokens
            })
            .collect();
        println!("{accepted} of {drafted} accepted");
        assert!(
            if right { accepted == drafted } else { accepted > 0 && accepted < drafted },
            "{accepted} of {drafted}"
        );
        let mut history = prompt(5);
        for place in 0..3 {
            let logits = all_logits(&mut exact, &history).pop().unwrap();
            let mut counts = vec![0; logits.len()];
            let same = runs.iter().filter(|run| run[..place] == history[5..]);
            same.for_each(|run| counts[run[place] as usize] += 1);
            let all = counts.iter().sum::<usize>();
            let (statistic, freedom) = chi_square(&counts, &softmax(&logits, 1.0));
            println!("place {place}: {all} runs, {statistic:.1} at {freedom} degrees");
            assert!(all > 300 && freedom > 3.0, "too few to tell");
            assert!(statistic < critical(freedom), "place {place}: {statistic} at {freedom} degrees");
            let (wrong, freedom) = chi_square(&counts, &softmax(&logits, OTHER));
            assert!(wrong > critical(freedom), "the test could not tell another temperature");
            let likeliest = counts.iter().enumerate().max_by_key(|(_, count)| **count).map(|(token, _)| token as u32);
            history.push(likeliest.unwrap());
        }
    }
}

/// A head takes embedding and head from the model, if they are the same: what it takes of memory, and was predicted to.
#[test]
fn a_head_shares_what_is_the_models() {
    for name in NAMES {
        let bytes = |tables| {
            let model = MtpModel::random(name, tables).folder();
            let engine_of = |model: &Path, speculation| engine(model, &with(speculation));
            let held = |speculation| engine_of(&model, speculation).memory().weights.used;
            let (own, more) = (engine_of(&model, always(3)).draft_bytes().unwrap().weights, held(always(3)));
            let more = more - held(Speculation::default());
            println!("{name}, {tables:?}: {own} bytes predicted, {more} held");
            (own, more)
        };
        let [own, copied, missing] = [MtpTables::Own, MtpTables::Copied, MtpTables::Missing].map(bytes);
        assert_eq!(copied, missing, "{name}");
        let both = 2 * 256 * 64 * 4;
        assert!(own.0 >= missing.0 + both && own.1 >= missing.1 + both, "{name}: {own:?} {missing:?}");
    }
}

#[test]
fn what_is_wrong_is_told_with_what_to_do() {
    let (cpu, _) = yirage_cpu::Cpu.open(0, &OpenOptions::default()).unwrap();
    let load = |model: &Path, speculation| {
        let checkpoint = Checkpoint::open(model).unwrap();
        Engine::load(&checkpoint, cpu.clone(), &with(speculation), &mut |_, _| {})
    };
    let refused = |model: &str| load(&tiny::model(model), Speculation::mtp()).err().unwrap();
    for without in ["qwen3", "deepseek-v3"] {
        let error = refused(without);
        assert!(matches!(error, EngineError::NoMtpHead { .. }) && error.to_string().contains("--speculate lookup"));
    }
    let error = refused("qwen3next");
    assert!(error.is_unsupported() && error.to_string().contains("recurrent"), "{error}");
    let model = MtpModel::random("glm4moe", MtpTables::Missing).folder();
    let mut engine = load(&model, Speculation::mtp()).unwrap();
    let error = engine.load_draft(&Checkpoint::open(&model).unwrap(), None, &mut |_, _| {}).unwrap_err();
    assert!(matches!(error, EngineError::TwoDrafters) && error.to_string().contains("--speculate draft"), "{error}");
    // A head that is there and not asked is told of where something is guessed.
    let told = |speculation| {
        let told: Vec<String> = load(&model, speculation).unwrap().notices().iter().map(ToString::to_string).collect();
        told.iter().any(|told| told.contains("layer 3") && told.contains("--speculate mtp"))
    };
    let asked = [Speculation::lookup(), Speculation::mtp(), Speculation::default()];
    assert_eq!(asked.map(told), [true, false, false]);
    let checkpoint = Checkpoint::open(&model).unwrap();
    let config = yirage_model::RawConfig::load(&checkpoint).unwrap();
    let build = yirage_model::arch::BuildOptions::plain(64);
    let given = GraphModel {
        model: yirage_model::arch::build(&checkpoint, &config, build).unwrap(),
        weights: std::collections::HashMap::new(),
    };
    let error = Engine::load_graph_model(&given, cpu.clone(), &with(Speculation::mtp()), &mut |_, _| {}).err().unwrap();
    assert!(matches!(&error, EngineError::GraphModel(what) if what.contains("MTP")), "{error}");
}
