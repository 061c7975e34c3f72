//! Every option of an engine does something: a test for each field. A field without one does not compile, or fails here.

use crate::golden_support::{all_logits, engine};
use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;
use yirage_engine::scheduler::{AdmissionError, ConfigError, LogitsWanted, SeqId, SequenceUsage};
use yirage_engine::{
    CacheSize, EmbeddedError, EmbeddedSpan, EmbeddingRows, Engine, EngineError, EngineOptions, Event, PackedOptions,
    Request, Speculation, SpeculationControl, Tuning, VariantOrigin,
};
use yirage_hal::{Backend, Length, OpenOptions, SelectionReason};
use yirage_ir::Format;
use yirage_model::Checkpoint;
use yirage_plan::ExecutorKind;
use yirage_plan::Precision;
use yirage_testkit::{bedtime, scratch::ScratchFolder, tiny};

/// The fields named, as text, if they are all that there are.
macro_rules! all_fields {
    ($($field:ident)+) => {{
        let EngineOptions { $($field: _),+ } = EngineOptions::default();
        [$(stringify!($field)),+]
    }};
}

/// A field, and a check of its effect.
const EFFECTS: &[(&str, fn())] = &[
    ("precision", precision),
    ("kv", kv),
    ("fuse", fuse),
    ("executor", executor),
    ("context", context),
    ("context_within", context_within),
    ("max_seqs", max_seqs),
    ("cache", cache),
    ("chunk", chunk),
    ("max_step", max_step),
    ("logit_rows", logit_rows),
    ("prefix_cache", prefix_cache),
    ("hidden", hidden),
    ("embedded", embedded),
    ("speculation", speculation),
    ("packed", packed),
    ("plans", plans),
    ("tuning", tuning),
    ("adapters", crate::adapters::requests_of_one_batch_get_what_each_gets_alone),
];

#[test]
fn every_field_has_an_effect_test() {
    let fields = all_fields!(precision kv fuse executor context context_within max_seqs cache chunk max_step logit_rows prefix_cache hidden
        embedded speculation packed plans tuning adapters);
    let tested: Vec<&str> = EFFECTS.iter().map(|(name, _)| *name).collect();
    assert_eq!(tested, fields);
}

#[test]
fn every_field_has_an_effect() {
    EFFECTS.iter().for_each(|(_, effect)| effect());
}

fn model() -> PathBuf {
    tiny::model("llama")
}

fn base() -> EngineOptions {
    EngineOptions { precision: Precision::Exact, context: Some(128), ..EngineOptions::default() }
}

fn load(options: EngineOptions) -> Engine {
    engine(&model(), &options)
}

fn prompt(length: u32) -> Vec<u32> {
    (0..length).map(|i| 3 + i * 37 % 200).collect()
}

/// Runs everything; events of each step.
fn steps(engine: &mut Engine) -> Vec<Vec<Event>> {
    let mut steps = Vec::new();
    while !engine.is_idle() {
        steps.push(engine.step().unwrap());
    }
    steps
}

/// Runs one request; what it used.
fn usage(engine: &mut Engine, request: Request) -> SequenceUsage {
    engine.add(request).unwrap();
    let finished = |event| if let Event::Finished { usage, .. } = event { Some(usage) } else { None };
    steps(engine).into_iter().flatten().find_map(finished).unwrap()
}

fn precision() {
    let rows = |precision| {
        let options = EngineOptions { precision, kv: Some(Format::F32), ..base() };
        all_logits(&mut engine(&bedtime::q8_0(), &options), &prompt(20))
    };
    assert_ne!(rows(Precision::Exact), rows(Precision::Fast));
}

fn kv() {
    let bytes = |kv| load(EngineOptions { kv: Some(kv), ..base() }).facts().bytes.cache;
    assert_eq!(bytes(Format::F32), 2 * bytes(Format::F16));
}

fn fuse() {
    let with = |fuse| EngineOptions { fuse, ..base() };
    let (device, _) = yirage_cpu::Cpu.open(0, &OpenOptions::default()).unwrap();
    let checkpoint = Checkpoint::open(model()).unwrap();
    let steps = |fuse| {
        let planned = yirage_engine::plan_step(&checkpoint, &*device, &with(fuse), 4, &mut Vec::new()).unwrap();
        planned.plan.graph.nodes.len()
    };
    assert!(steps(true) < steps(false));
    let bits = |fuse| {
        let logits = all_logits(&mut load(with(fuse)), &prompt(9));
        logits.into_iter().flatten().map(f32::to_bits).collect::<Vec<_>>()
    };
    assert_eq!(bits(true), bits(false));
}

fn executor() {
    let used = |kind| {
        let mut engine = load(EngineOptions { executor: Some(kind), ..base() });
        usage(&mut engine, Request::greedy(prompt(5), 3));
        engine.executors().into_iter().map(|(_, kind, why)| (kind, why)).collect::<Vec<_>>()
    };
    for kind in [ExecutorKind::Steps, ExecutorKind::Persistent] {
        let used = used(kind);
        assert!(!used.is_empty() && used.iter().all(|used| *used == (kind, SelectionReason::Forced)), "{used:?}");
    }
}

fn context() {
    let taken = |context| load(EngineOptions { context, ..base() }).add(Request::greedy(prompt(60), 10)).is_ok();
    assert_eq!((taken(Some(64)), taken(Some(128))), (false, true));
}

fn context_within() {
    let scratch = ScratchFolder::new("option-context-within");
    scratch.copy(&model().join("model.safetensors"));
    let config = std::fs::read_to_string(model().join("config.json")).unwrap();
    let (short, long) = (r#""max_position_embeddings":512"#, r#""max_position_embeddings":20000"#);
    assert!(config.contains(short));
    scratch.write("config.json", config.replace(short, long).as_bytes());
    let facts = |context, context_within| {
        engine(&scratch.0, &EngineOptions { context, context_within, ..base() }).facts().clone()
    };
    // Of two heads of 16 values in three layers, keys and values of a position take 768 bytes in f32.
    let position = 3 * 2 * 2 * 16 * 4;
    assert_eq!(facts(None, None).context, 4096);
    assert_eq!(facts(None, Some(1 << 30)).context, 20_000);
    let some = facts(None, Some(position * 10_000));
    assert!((9000..=10_000).contains(&some.context), "{}", some.context);
    // A block for each of sixteen sequences besides.
    assert!(some.bytes.cache <= position * 10_600, "{}", some.bytes.cache);
    // What is usual is never gone below, and what is asked for holds.
    assert_eq!(facts(None, Some(1)).context, 4096);
    assert_eq!(facts(Some(128), Some(1 << 30)).context, 128);
}

fn max_seqs() {
    let most = |max_seqs| {
        let mut engine = load(EngineOptions { max_seqs, cache: CacheSize::Sequences(3), ..base() });
        for _ in 0..3 {
            engine.add(Request::greedy(prompt(5), 8)).unwrap();
        }
        let seq = |event: &Event| if let Event::Token { seq, .. } = event { Some(*seq) } else { None };
        let of = |step: &Vec<Event>| step.iter().filter_map(seq).collect::<BTreeSet<SeqId>>().len();
        steps(&mut engine).iter().map(of).max().unwrap()
    };
    assert_eq!([most(1), most(2), most(3)], [1, 2, 3]);
}

fn cache() {
    let of = |cache| {
        let mut engine = load(EngineOptions { max_seqs: 2, cache, prefix_cache: false, ..base() });
        for first in [3, 4] {
            let own: Vec<u32> = [first].into_iter().chain(prompt(59)).collect();
            engine.add(Request::greedy(own, 60)).unwrap();
        }
        steps(&mut engine);
        (engine.facts().bytes.cache, engine.stats().preemptions)
    };
    let ((one, waited), (two, none)) = (of(CacheSize::Sequences(1)), of(CacheSize::Sequences(2)));
    assert!(waited > 0 && none == 0 && two > one, "{one} bytes, {waited} preemptions; {two} bytes, {none}");
    assert_eq!((of(CacheSize::Bytes(one)), of(CacheSize::Bytes(one + 1))), ((one, waited), (one, waited)));
    let (most, none) = of(CacheSize::Bytes(3 * one));
    assert_eq!((most, none), (3 * one, 0));
    cache_refusals(one);
}

/// A cache of less than a sequence is one, and refuses what it cannot hold; one of nothing is none.
fn cache_refusals(one: u64) {
    let mut half = load(EngineOptions { cache: CacheSize::Bytes(one / 2), ..base() });
    assert!(half.facts().bytes.cache <= one / 2);
    let refused = half.add(Request::greedy(prompt(100), 20));
    assert!(matches!(refused, Err(EngineError::Admission(AdmissionError::NeverFits { .. }))), "{refused:?}");
    assert_eq!(usage(&mut half, Request::greedy(prompt(20), 5)).new_tokens, 5);
    let checkpoint = Checkpoint::open(model()).unwrap();
    let refused = |cache| {
        let (device, _) = yirage_cpu::Cpu.open(0, &OpenOptions::default()).unwrap();
        Engine::load(&checkpoint, device, &EngineOptions { cache, ..base() }, &mut |_, _| {}).err().unwrap()
    };
    let error = refused(CacheSize::Bytes(1));
    assert!(matches!(error, EngineError::CacheTooSmall { bytes: 1, .. }), "{error}");
    assert!(matches!(refused(CacheSize::Bytes(u64::MAX)), EngineError::WouldNotFit { .. } | EngineError::Cache(_)));
    assert!(matches!(refused(CacheSize::Sequences(0)), EngineError::Config(ConfigError::OutOfRange { value: 0, .. })));
}

fn chunk() {
    let until_first_token = |chunk| {
        let mut engine = load(EngineOptions { chunk, ..base() });
        engine.add(Request::greedy(prompt(60), 1)).unwrap();
        steps(&mut engine).len()
    };
    assert_eq!([until_first_token(16), until_first_token(64)], [4, 1]);
}

/// Beside a stream a prompt takes what fits the time: all of it, or one token a step.
fn max_step() {
    let of = |max_step| {
        let mut engine = load(EngineOptions { max_step, cache: CacheSize::Sequences(2), ..base() });
        engine.add(Request::greedy(prompt(5), 100)).unwrap();
        engine.step().unwrap();
        let seq = engine.add(Request::greedy(prompt(60), 2)).unwrap();
        let of_seq = |event: &Event| match event {
            Event::Token { seq: of, token, .. } if *of == seq => Some(*token),
            _ => None,
        };
        let steps = steps(&mut engine);
        let first = steps.iter().position(|events| events.iter().any(|event| of_seq(event).is_some()));
        (first.unwrap() + 1, steps.iter().flatten().filter_map(of_seq).collect::<Vec<u32>>())
    };
    let (whole, long, short) = (of(None), of(Some(Duration::from_secs(3600))), of(Some(Duration::from_nanos(1))));
    assert_eq!((whole.0, long.0, short.0), (1, 1, 60));
    assert!(whole.1 == long.1 && long.1 == short.1, "the output is the same");
}

fn logit_rows() {
    let most = |logit_rows| {
        let mut engine = load(EngineOptions { logit_rows, max_seqs: 2, ..base() });
        engine.add(Request { logits: Some(LogitsWanted::All), ..Request::greedy(prompt(60), 0) }).unwrap();
        let rows = |step: &Vec<Event>| step.iter().filter(|event| matches!(event, Event::Logits { .. })).count();
        steps(&mut engine).iter().map(rows).max().unwrap()
    };
    assert_eq!([most(8), most(64)], [8, 60]);
}

fn prefix_cache() {
    let cached = |prefix_cache| {
        let mut engine = load(EngineOptions { prefix_cache, ..base() });
        usage(&mut engine, Request::greedy(prompt(70), 2));
        usage(&mut engine, Request::greedy(prompt(70), 2)).cached_tokens
    };
    assert_eq!([cached(false), cached(true)], [0, 64]);
}

fn hidden() {
    let states = |hidden| -> Result<usize, EngineError> {
        let mut engine = load(EngineOptions { hidden, ..base() });
        engine.add(Request { hidden: Some(LogitsWanted::All), ..Request::greedy(prompt(5), 0) })?;
        Ok(steps(&mut engine).iter().flatten().filter(|event| matches!(event, Event::Hidden { .. })).count())
    };
    assert!(matches!(states(false), Err(EngineError::NoHiddenStates)));
    assert!(matches!(states(true), Ok(5)));
}

fn embedded() {
    let rows = Arc::new(EmbeddingRows::new([1; 32], 64, vec![1.0; 64]).unwrap());
    let given = |embedded| -> Result<usize, EngineError> {
        let mut engine = load(EngineOptions { embedded, ..base() });
        let embedded = vec![EmbeddedSpan { at: 0, rows: rows.clone() }];
        engine.add(Request { embedded, ..Request::greedy(prompt(5), 2) })?;
        Ok(steps(&mut engine).iter().flatten().filter(|event| matches!(event, Event::Token { .. })).count())
    };
    assert!(matches!(given(false), Err(EngineError::Embedded(EmbeddedError::NoPlace))));
    assert!(matches!(given(true), Ok(2)));
}

/// The most guesses of a step are what `--draft-max` sets.
fn speculation() {
    let used = |speculation| {
        let again: Vec<u32> = prompt(9).into_iter().cycle().take(50).collect();
        usage(&mut load(EngineOptions { speculation, ..base() }), Request::greedy(again, 60))
    };
    let always = |most| Speculation { most, control: SpeculationControl::Most, ..Speculation::lookup() };
    let (off, one, many) = (used(Speculation::default()), used(always(1)), used(always(8)));
    assert_eq!((off.drafted, off.verifications), (0, 0));
    assert!(one.drafted > 0 && one.drafted <= one.verifications, "{one:?}");
    assert!(many.drafted > many.verifications && many.drafted <= 8 * many.verifications, "{many:?}");
}

fn packed() {
    let scratch = ScratchFolder::new("option-packed");
    let folder = scratch.0.join("packed");
    let mut engine =
        load(EngineOptions { packed: Some(PackedOptions { folder: folder.clone(), limit: 1 << 30 }), ..base() });
    engine.settle(&mut |_, _| {});
    assert!(engine.notices().is_empty() && std::fs::read_dir(folder).unwrap().count() > 0);
}

fn plans() {
    let scratch = ScratchFolder::new("option-plans");
    let plans = Some(yirage_plancache::PlanFolder::new(scratch.0.join("plans"), 1 << 24));
    let read = || load(EngineOptions { plans: plans.clone(), ..base() }).plan_counts().read;
    assert!(read() == 0 && read() > 0);
}

fn tuning() {
    let load = |tuning| load(EngineOptions { tuning, ..base() });
    let chosen = |tuning| load(tuning).facts().variant.clone().unwrap();
    let forced = chosen(Tuning::Forced("share=static,piece=32K".into()));
    assert!(forced.text.contains("piece=32K,share=static") && forced.origin == VariantOrigin::Forced, "{forced}");
    assert_ne!(chosen(Tuning::Unmeasured).text, forced.text);
    // Caches hold all of a tiny model, which is not measured.
    assert_eq!(chosen(Tuning::Measured { folder: None, anew: Some(Length::Short) }).origin, VariantOrigin::Device);
    let logits = |tuning| all_logits(&mut load(tuning), &prompt(70));
    assert_eq!(logits(Tuning::Unmeasured), logits(Tuning::Forced("share=static,fetch=0,piece=4K".into())));

    // What one model is forced to, the next on the same device is not.
    let (device, _) = yirage_cpu::Cpu.open(0, &OpenOptions::default()).unwrap();
    let beside = |tuning| {
        let options = EngineOptions { tuning, ..base() };
        Engine::load(&Checkpoint::open(model()).unwrap(), device.clone(), &options, &mut |_, _| {}).unwrap()
    };
    let first = beside(Tuning::Forced(forced.text.clone()));
    let second = beside(Tuning::Unmeasured);
    assert_eq!(first.facts().variant.as_ref().unwrap().text, forced.text);
    assert_ne!(second.facts().variant.as_ref().unwrap().text, forced.text);

    let options = EngineOptions { tuning: Tuning::Forced("share=even".into()), ..base() };
    let refused = Engine::load(
        &Checkpoint::open(model()).unwrap(),
        yirage_cpu::Cpu.open(0, &OpenOptions::default()).unwrap().0,
        &options,
        &mut |_, _| {},
    );
    let Err(EngineError::Device(refused)) = refused else { panic!("a value that does not exist was taken") };
    assert_eq!(refused.to_string(), "option `variant`: share=even: drained or static");
}
