//! Guesses change no byte of the output, are right where they must be, and leave nothing behind.
#![allow(clippy::print_stdout)] // says what it ran

use crate::golden_support::{all_logits, engine_with, options};
use std::path::Path;
use yirage_engine::sampling::SamplingParams;
use yirage_engine::scheduler::{FinishReason, SequenceUsage};
use yirage_engine::{
    Engine, EngineError, EngineOptions, Event, Request, Speculation, SpeculationControl, VocabularyError,
};
use yirage_hal::OpenOptions;
use yirage_model::Checkpoint;
use yirage_model::tokenizer::{GgufVocab, Tokenizer};
use yirage_plan::{ExpertDivision, Precision};
use yirage_testkit::distribution::{chi_square, critical, softmax};
use yirage_testkit::{bedtime, tiny};

const ONE_THREAD: OpenOptions =
    OpenOptions { threads: Some(1), isa: None, guarded: false, keep_stalled: false, experts: ExpertDivision::Rows };

/// Guesses whenever there is one.
fn always(most: u32, lookup: bool) -> Speculation {
    Speculation { most, lookup, control: SpeculationControl::Most, ..Speculation::default() }
}

fn engine(model: &Path, speculation: Speculation) -> Engine {
    let options = EngineOptions { context: Some(256), speculation, ..options(Precision::Fast) };
    engine_with(model, &options, &ONE_THREAD)
}

/// An engine in which `draft` guesses for `model`.
fn drafted(model: &Path, draft: &Path, most: u32) -> Engine {
    let mut engine = engine(model, always(most, false));
    engine.load_draft(&Checkpoint::open(draft).unwrap(), None, &mut |_, _| {}).unwrap();
    engine
}

/// A prompt that says the same thing several times, which the model goes on with for a while.
fn repetitive() -> Vec<u32> {
    repeated(&[341, 349, 316, 343, 268])
}

/// Another one, behind which guesses are right from the first tokens on.
fn guessed_at_once() -> Vec<u32> {
    repeated(&[364, 398, 341, 345])
}

fn repeated(passage: &[u32]) -> Vec<u32> {
    [1].into_iter().chain(passage.iter().copied().cycle().take(48)).collect()
}

fn run(engine: &mut Engine, request: Request) -> (Vec<u32>, SequenceUsage) {
    engine.add(request).unwrap();
    let mut tokens = Vec::new();
    loop {
        for event in engine.step().unwrap() {
            match event {
                Event::Token { token, .. } => tokens.push(token),
                Event::Finished { usage, reason, .. } => {
                    assert!(!matches!(reason, FinishReason::Error(_)), "{reason:?}");
                    return (tokens, usage);
                }
                _ => {}
            }
        }
    }
}

fn sampled(prompt: Vec<u32>, new: u32, seed: u64) -> Request {
    let sampling = SamplingParams { temperature: 0.3, top_k: 20, seed, ..SamplingParams::default() };
    Request { sampling, ..Request::greedy(prompt, new) }
}

#[test]
fn a_lookup_spares_steps_and_changes_nothing() {
    for model in [bedtime::f32(), bedtime::q8_0()] {
        let file = model.display();
        for make in [|seed| sampled(repetitive(), 120, seed), |_| Request::greedy(repetitive(), 120)] {
            for seed in 0..3 {
                let (plain, usage) = run(&mut engine(&model, Speculation::default()), make(seed));
                assert_eq!((usage.drafted, usage.verifications), (0, 0));
                for most in [1, 4, 15] {
                    let (guessed, usage) = run(&mut engine(&model, always(most, true)), make(seed));
                    assert_eq!(guessed, plain, "{file}, seed {seed}, {most} drafts");
                    println!("{file}: {usage:?}");
                    assert!(usage.accepted > 0 && usage.accepted <= usage.drafted);
                    assert!(usage.drafted <= usage.verifications * most as usize);
                }
                let (measured, _) = run(&mut engine(&model, Speculation::lookup()), make(seed));
                assert_eq!(measured, plain, "{file}, seed {seed}, under the controller");
            }
        }
    }
}

/// A draft model with the same distribution draws the same tokens, since it has the same random numbers; another one is
/// mostly right.
#[test]
fn a_draft_model_draws_with_the_same_random_numbers() {
    let (model, quantised) = (bedtime::f32(), bedtime::q8_0());
    let prompt: Vec<u32> = vec![1, 496, 493, 373, 406, 319, 339, 417, 356, 341, 459, 360, 346, 495];
    for seed in 0..4 {
        let request =
            || if seed == 0 { Request::greedy(prompt.clone(), 100) } else { sampled(prompt.clone(), 100, seed) };
        let (plain, _) = run(&mut engine(&model, Speculation::default()), request());
        let (same, usage) = run(&mut drafted(&model, &model, 5), request());
        assert_eq!((same, usage.accepted), (plain.clone(), usage.drafted), "all of {usage:?} are right");
        assert!(usage.verifications <= 20, "{usage:?}");
        let (other, usage) = run(&mut drafted(&model, &quantised, 5), request());
        assert_eq!(other, plain, "seed {seed}");
        println!("seed {seed}, quantised draft model: {usage:?}");
        assert!(usage.accepted * 3 > usage.drafted * 2, "{usage:?}");
    }
}

/// Draft models with sliding windows and latent caches, penalties included, and several sequences in turn that share
/// beginnings.
#[test]
fn draft_models_of_every_cache() {
    for name in ["mistral-swa", "gemma3", "gptoss", "deepseek-v3"] {
        let model = tiny::model(name);
        let (mut plain, mut guessing) = (engine(&model, Speculation::default()), drafted(&model, &model, 7));
        for turn in 0..4u32 {
            let prompt: Vec<u32> = (0..60 + 30 * turn).map(|i| 5 + i * i % 90).collect();
            let penalised = SamplingParams { frequency_penalty: 0.3, ..sampled(vec![1], 1, 9).sampling };
            let request = Request { sampling: penalised, ..Request::greedy(prompt, 70) };
            let (expected, (got, usage)) = (run(&mut plain, request.clone()).0, run(&mut guessing, request));
            assert_eq!((got, usage.accepted), (expected, usage.drafted), "{name}, turn {turn}: {usage:?}");
            assert!(usage.verifications < 14, "{usage:?}");
        }
    }
}

#[test]
fn a_draft_model_of_another_vocabulary_is_refused() {
    let model = bedtime::f32();
    let tiny = Path::new(env!("CARGO_MANIFEST_DIR")).join("../yirage-model/tests/golden/tiny/safetensors");
    let mut engine = engine(&model, always(4, false));
    let other = Checkpoint::open(tiny.join("llama-yarn")).unwrap();
    let error = engine.load_draft(&other, None, &mut |_, _| {}).unwrap_err();
    assert!(matches!(error, EngineError::Vocabulary(VocabularyError::Width { model: 512, draft: 96 })), "{error}");
    let tokenizer = |path: &Path| {
        let checkpoint = Checkpoint::open(path).unwrap();
        Tokenizer::from_gguf(GgufVocab::from_header(checkpoint.gguf().unwrap()).unwrap()).unwrap()
    };
    let ours = tokenizer(&model);
    let tokens = vec!["<other>", "<s>", "</s>", "\u{2581}", "a", "\u{2581}a"];
    let theirs = GgufVocab { name: "theirs", model: "llama", tokens, ..GgufVocab::default() };
    let theirs = Tokenizer::from_gguf(theirs).unwrap();
    let error = engine.load_draft(&other, Some((&ours, &theirs)), &mut |_, _| {}).unwrap_err();
    assert!(matches!(error, EngineError::Vocabulary(VocabularyError::Token { id: 0, .. })), "{error}");
    println!("{error}");
}

/// Ends a sequence after its `n`-th token; what a second request finds in the cache must be what plain decoding left.
fn stopped(engine: &mut Engine, n: usize) -> (Vec<u32>, SequenceUsage, SequenceUsage) {
    let seq = engine.add(Request::greedy(guessed_at_once(), 100)).unwrap();
    let mut tokens = Vec::new();
    let mut end = None;
    while end.is_none() {
        for event in engine.step().unwrap() {
            assert!(end.is_none(), "nothing comes after the end");
            if let Event::Token { token, .. } = event {
                tokens.push(token);
                end = if tokens.len() == n { engine.finish(seq, FinishReason::StopText) } else { None };
            }
        }
    }
    let Some(Event::Finished { usage, .. }) = end else { panic!("{end:?}") };
    let whole: Vec<u32> = guessed_at_once().into_iter().chain(tokens.iter().copied()).chain([7; 40]).collect();
    let (_, second) = run(engine, Request::greedy(whole, 1));
    (tokens, usage, second)
}

#[test]
fn a_text_that_stops_within_a_run_leaves_nothing_behind() {
    let model = bedtime::f32();
    let (plain_all, _) = run(&mut engine(&model, Speculation::default()), Request::greedy(guessed_at_once(), 100));
    let mut within = 0;
    for n in 1..40 {
        let (tokens, usage, second) = stopped(&mut engine(&model, always(15, true)), n);
        let (plain, plain_usage, plain_second) = stopped(&mut engine(&model, Speculation::default()), n);
        assert_eq!((&tokens, usage.new_tokens), (&plain, plain_usage.new_tokens));
        assert_eq!(second.cached_tokens, plain_second.cached_tokens, "after {n} tokens");
        within += usize::from(usage.accepted > 0);
    }
    assert!(within > 20, "{within}");
    // A stop id within a run.
    let stop_ids = vec![plain_all[30]];
    let request = || Request { stop_ids: stop_ids.clone(), ..Request::greedy(guessed_at_once(), 100) };
    let (plain, plain_usage) = run(&mut engine(&model, Speculation::default()), request());
    let (guessed, usage) = run(&mut engine(&model, always(15, true)), request());
    assert_eq!((guessed, usage.new_tokens), (plain, plain_usage.new_tokens));
}

/// Tokens at verified places follow the model's own distribution: of many seeds, those whose first token is the likeliest
/// give the second, and those of them whose second is the likeliest give the third, from a drafted row.
#[test]
fn sampled_tokens_keep_the_distribution() {
    const TEMPERATURE: f64 = 1.0;
    const OTHER: f64 = 1.3;
    let model = bedtime::f32();
    let mut guessing = engine(&model, always(4, true));
    let mut exact = engine(&model, Speculation::default());
    let greedy = run(&mut exact, Request::greedy(repetitive(), 2)).0;
    let mut history = repetitive();
    let draw = SamplingParams { temperature: TEMPERATURE as f32, ..SamplingParams::default() };
    let runs: Vec<Vec<u32>> = (0..12_000)
        .map(|seed| {
            let sampling = SamplingParams { seed, ..draw.clone() };
            let (tokens, usage) = run(&mut guessing, Request { sampling, ..Request::greedy(repetitive(), 4) });
            assert!(usage.drafted > 0 || tokens[0] != greedy[0], "the place is not guessed");
            tokens
        })
        .collect();
    for place in 0..3 {
        let logits = all_logits(&mut exact, &history).pop().unwrap();
        let mut counts = vec![0; logits.len()];
        let same = runs.iter().filter(|run| run[..place] == history[repetitive().len()..]);
        same.for_each(|run| counts[run[place] as usize] += 1);
        let (statistic, freedom) = chi_square(&counts, &softmax(&logits, TEMPERATURE));
        println!("place {place}: {} runs, {statistic:.1} at {freedom} degrees", counts.iter().sum::<usize>());
        assert!(counts.iter().sum::<usize>() > 300 && freedom > 3.0, "too few to tell");
        assert!(statistic < critical(freedom), "place {place}: {statistic} at {freedom} degrees");
        let (wrong, freedom) = chi_square(&counts, &softmax(&logits, OTHER));
        assert!(wrong > critical(freedom), "the test could not tell another temperature");
        history
            .push(counts.iter().enumerate().max_by_key(|(_, count)| **count).map(|(token, _)| token as u32).unwrap());
    }
}

/// A recurrent state does not go back to a position before a wrong guess: that is said, and neither side guesses.
#[test]
fn models_with_recurrent_layers_are_not_guessed_and_say_so() {
    let (recurrent, other) = (tiny::model("lfm2"), tiny::model("qwen3"));
    let asked = EngineOptions { speculation: Speculation::lookup(), ..options(Precision::Exact) };
    let mut engine = engine_with(&recurrent, &asked, &ONE_THREAD);
    assert!(engine.facts().recurrent);
    let told: Vec<String> = engine.notices().iter().map(ToString::to_string).collect();
    assert!(told.iter().any(|told| told.contains("tokens are not guessed") && told.contains("recurrent")), "{told:?}");
    let refused = |engine: &mut Engine, draft: &Path| {
        let error = engine.load_draft(&Checkpoint::open(draft).unwrap(), None, &mut |_, _| {}).unwrap_err();
        assert!(error.is_unsupported() && error.to_string().contains("recurrent"), "{error}");
    };
    refused(&mut engine, &other);
    refused(&mut engine_with(&other, &options(Precision::Exact), &ONE_THREAD), &recurrent);
    let quiet = engine_with(&recurrent, &options(Precision::Exact), &ONE_THREAD).notices();
    assert!(quiet.iter().all(|told| !told.to_string().contains("guessed")), "{quiet:?}");
}
