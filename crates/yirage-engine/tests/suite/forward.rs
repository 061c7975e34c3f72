//! A forward pass that is called as its caller likes: against the golden tokens and the engine's own logits.

use crate::golden_support::{all_logits, engine, ids, options};
use std::sync::Arc;
use yirage_engine::sampling::SamplingParams;
use yirage_engine::scheduler::LogitsWanted;
use yirage_engine::{BesideLogits, EngineError, Forward, ForwardError, ForwardOptions, ForwardRow, Generate};
use yirage_hal::{Backend, Device, OpenOptions};
use yirage_ir::Format;
use yirage_model::{Checkpoint, ModelError, RawConfig, TensorOverride};
use yirage_plan::Precision;
use yirage_plancache::{CacheOptions, Mode};
use yirage_testkit::{bedtime, tiny};

fn cpu() -> Arc<dyn Device> {
    yirage_cpu::Cpu.open(0, &OpenOptions { threads: Some(2), ..OpenOptions::default() }).unwrap().0
}

fn opened(model: &std::path::Path, options: &ForwardOptions) -> Forward {
    let checkpoint = Checkpoint::open(model).unwrap();
    let mut forward = Forward::open(&checkpoint, cpu(), options).unwrap();
    forward.load_weights(&checkpoint, &mut |_, _| {}).unwrap();
    forward
}

fn small() -> ForwardOptions {
    ForwardOptions { context: Some(256), ..ForwardOptions::default() }
}

fn row(sequence: usize, start: u32, tokens: &[u32]) -> ForwardRow<'_> {
    ForwardRow { sequence, start, tokens }
}

/// The logits of a call as rows.
fn logits(forward: &mut Forward, rows: &[ForwardRow<'_>], wanted: LogitsWanted) -> Vec<Vec<f32>> {
    let width = forward.vocabulary() as usize;
    let step = forward.forward(rows, wanted).unwrap();
    let values: Vec<f32> =
        step.logits.bytes().chunks_exact(4).map(|b| f32::from_ne_bytes(b.try_into().unwrap())).collect();
    values.chunks_exact(width).map(<[f32]>::to_vec).collect()
}

const TOKENS: [u32; 12] = [1, 377, 321, 300, 44, 17, 260, 301, 9, 377, 100, 5];

#[test]
fn greedy_tokens_are_the_golden_ones() {
    let golden = bedtime::golden();
    let mut forward = opened(&bedtime::f32(), &ForwardOptions::default());
    let cases = golden["cases"].as_array().unwrap();
    let how = Generate { max_new_tokens: 16, sampling: SamplingParams::greedy(), ends: Vec::new() };
    let prompts: Vec<Vec<u32>> = cases.iter().map(|case| ids(&case["prompt_ids"])).collect();
    let wanted: Vec<Vec<u32>> = cases.iter().map(|case| ids(&case["greedy_ids"])).collect();
    assert_eq!(forward.generate(&prompts, &how, &mut |_| true).unwrap(), wanted, "all together");
    for (prompt, wanted) in prompts.iter().zip(&wanted) {
        assert_eq!(forward.generate(std::slice::from_ref(prompt), &how, &mut |_| true).unwrap()[0], *wanted);
    }
    let ends = Generate { ends: vec![wanted[0][3]], ..how.clone() };
    let at = wanted[0].iter().position(|&token| token == wanted[0][3]).unwrap();
    assert_eq!(forward.generate(&prompts[..1], &ends, &mut |_| true).unwrap(), [wanted[0][..=at].to_vec()]);
    let mut left = 5;
    let stopped = forward.generate(&prompts[..1], &how, &mut |_| {
        left -= 1;
        left > 0
    });
    assert_eq!(stopped.unwrap()[0].len(), 5);
    let drawn = |seed| Generate { sampling: SamplingParams { seed, ..SamplingParams::default() }, ..how.clone() };
    let mut draw = |seed| forward.generate(&prompts[..1], &drawn(seed), &mut |_| true).unwrap();
    assert_eq!(draw(1), draw(1));
    assert_ne!(draw(1), draw(2));
}

#[test]
fn every_architecture_gives_the_logits_of_the_engine() {
    for name in tiny::NAMES {
        let model = tiny::model(name);
        let ids: Vec<u32> = (0..40).map(|i| (i * 7 + 3) % 64).collect();
        let mut engine = engine(&model, &options(Precision::Exact));
        let wanted = all_logits(&mut engine, &ids);
        let mut forward = opened(&model, &ForwardOptions { context: Some(64), ..ForwardOptions::default() });
        assert_eq!(logits(&mut forward, &[row(0, 0, &ids)], LogitsWanted::All), wanted, "{name} at once");
        let mut pieces = logits(&mut forward, &[row(0, 0, &ids[..17])], LogitsWanted::All);
        for at in 17..ids.len() as u32 {
            pieces.extend(logits(&mut forward, &[row(0, at, &ids[at as usize..=at as usize])], LogitsWanted::All));
        }
        assert_eq!(pieces, wanted, "{name} in pieces");
    }
}

#[test]
fn the_first_call_a_replay_and_all_modes_give_the_same() {
    let mut fused = opened(&bedtime::f32(), &small());
    let first = logits(&mut fused, &[row(0, 0, &TOKENS)], LogitsWanted::All);
    for _ in 0..3 {
        assert_eq!(logits(&mut fused, &[row(0, 0, &TOKENS)], LogitsWanted::All), first);
    }
    let stats = fused.plans().stats();
    assert_eq!((stats.cache_hits, stats.cache_misses, stats.fusion_successes), (3, 1, 1));
    assert_eq!(stats.plans[0].mode, Mode::Fusion);
    fused.plans().set_fusion_enabled(false);
    assert_eq!(logits(&mut fused, &[row(0, 0, &TOKENS)], LogitsWanted::All), first, "native");
    assert_eq!(fused.plans().stats().cache_hits, 3);
    let plain =
        ForwardOptions { plans: CacheOptions { max_graph_size: Some(1), ..CacheOptions::default() }, ..small() };
    let mut unfused = opened(&bedtime::f32(), &plain);
    assert_eq!(logits(&mut unfused, &[row(0, 0, &TOKENS)], LogitsWanted::All), first);
    let (plain, fusion) = (unfused.plans().stats(), stats);
    assert_eq!(plain.plans[0].mode, Mode::GraphReplay);
    assert!(fusion.plans[0].steps < plain.plans[0].steps, "fewer kernels");
    assert_ne!(fusion.plans[0].id, plain.plans[0].id);
}

#[test]
fn a_replay_follows_positions_cached_lengths_blocks_and_tokens() {
    let mut forward = opened(&bedtime::f32(), &small());
    let last = |rows: Vec<Vec<f32>>| rows.last().unwrap().clone();
    let whole = |forward: &mut Forward, tokens: &[u32]| last(logits(forward, &[row(5, 0, tokens)], LogitsWanted::All));
    let (a, b): (Vec<u32>, Vec<u32>) = (TOKENS.to_vec(), TOKENS.iter().rev().copied().collect());
    let (wanted_a, wanted_b) = (whole(&mut forward, &a), whole(&mut forward, &b));
    // Two sequences in turn, by the same plan of one token: other blocks, other lengths, other positions.
    logits(&mut forward, &[row(0, 0, &a[..11])], LogitsWanted::Last);
    logits(&mut forward, &[row(3, 0, &b[..4])], LogitsWanted::Last);
    let misses = |forward: &Forward| forward.plans().stats().cache_misses;
    for at in 4..11 {
        logits(&mut forward, &[row(3, at, &b[at as usize..=at as usize])], LogitsWanted::Last);
    }
    let before = misses(&forward);
    assert_eq!(logits(&mut forward, &[row(0, 11, &a[11..])], LogitsWanted::Last)[0], wanted_a);
    assert_eq!(logits(&mut forward, &[row(3, 11, &b[11..])], LogitsWanted::Last)[0], wanted_b);
    assert_eq!(misses(&forward), before, "all of them replays");
    // Both in one call, and what was cached behind the position is forgotten.
    let both = [row(3, 11, &b[11..]), row(0, 11, &a[11..])];
    assert_eq!(logits(&mut forward, &both, LogitsWanted::Last), [wanted_b, wanted_a]);
    assert_eq!(forward.cached()[..4], [12, 0, 0, 12]);
    logits(&mut forward, &[row(0, 4, &b[..1])], LogitsWanted::Last);
    assert_eq!(forward.cached()[0], 5);
    forward.reset_cache(None, None).unwrap();
    assert!(forward.cached().iter().all(|&length| length == 0));
}

#[test]
fn what_cannot_be_computed_is_told_and_changes_nothing() {
    let checkpoint = Checkpoint::open(bedtime::f32()).unwrap();
    let mut forward = Forward::open(&checkpoint, cpu(), &small()).unwrap();
    let error = |forward: &mut Forward, rows: &[ForwardRow<'_>]| match forward.forward(rows, LogitsWanted::Last) {
        Err(EngineError::Forward(error)) => error,
        other => panic!("{other:?}"),
    };
    assert_eq!(error(&mut forward, &[row(0, 0, &[1])]), ForwardError::NoWeights);
    forward.load_weights(&checkpoint, &mut |_, _| {}).unwrap();
    logits(&mut forward, &[row(0, 0, &[1, 2])], LogitsWanted::Last);
    for (rows, wanted) in [
        (vec![], "0 rows"),
        (vec![row(0, 0, &[])], "has 0 tokens"),
        (vec![row(0, 3, &[1])], "begins at position 3, and 2 positions"),
        (vec![row(1, 1, &[1])], "begins at position 1, and 0 positions"),
        (vec![row(0, 2, &[1]), row(1, 0, &[1]), row(0, 2, &[1])], "row 2 is of sequence 0"),
        (vec![row(0, 2, &[1]), row(1, 0, &[1])], "begins at position 2, and 0 positions"),
        (vec![row(0, 0, &[1; 257])], "ends at position 257, and a sequence has 256"),
        (vec![row(0, 0, &[1, 512])], "token id 512 at place 1"),
        (vec![row(usize::MAX, 0, &[1])], "rows are given"),
    ] {
        let told = error(&mut forward, &rows).to_string();
        assert!(told.contains(wanted), "{told}");
    }
    assert_eq!(forward.cached(), [2]);
    assert!(matches!(
        forward.reset_cache(None, Some(257)),
        Err(EngineError::Forward(ForwardError::Context { wanted: 257, context: 256 }))
    ));
    forward.reset_cache(Some(3), Some(64)).unwrap();
    assert_eq!((forward.cached(), forward.context()), (&[0; 3][..], 64));
    assert!(error(&mut forward, &[row(0, 0, &[1; 65])]).to_string().contains("a sequence has 64"));
    assert!(matches!(forward.reset_cache(Some(0), None), Err(EngineError::Forward(ForwardError::Rows { .. }))));
}

#[test]
fn room_for_more_sequences_forgets_what_was_cached_and_says_so() {
    let mut forward = opened(&bedtime::f32(), &small());
    let step =
        |forward: &mut Forward, rows: &[ForwardRow<'_>]| forward.forward(rows, LogitsWanted::Last).unwrap().forgot;
    assert!(!step(&mut forward, &[row(0, 0, &[1, 2])]));
    assert!(step(&mut forward, &[row(1, 0, &[1, 2])]));
    assert_eq!(forward.cached(), [0, 2]);
    assert!(!step(&mut forward, &[row(0, 0, &[5]), row(1, 0, &[7])]));
}

#[test]
fn tensors_that_are_given_stand_for_those_of_the_file() {
    let folder = bedtime::safetensors();
    let checkpoint = Checkpoint::open(&folder).unwrap();
    let mut forward = opened(&folder, &small());
    let before = logits(&mut forward, &[row(0, 0, &TOKENS)], LogitsWanted::All);
    let names: Vec<String> = forward.tensors().into_iter().map(str::to_owned).collect();
    assert!(forward.compare(names.iter().map(String::as_str)).is_empty());
    let differs = forward.compare(names[1..].iter().map(String::as_str).chain(["model.extra"]));
    assert_eq!((differs.missing, differs.unexpected), (names[..1].to_vec(), vec!["model.extra".to_owned()]));
    let given = |change: &dyn Fn(&str, f32) -> f32, format: Format| {
        let mut own = Checkpoint::open(&folder).unwrap();
        for name in &names {
            let tensor = checkpoint.tensor(name).unwrap();
            let stored = checkpoint.format(tensor).unwrap();
            let mut values = vec![0.0; tensor.elements()];
            (stored.info().decode)(checkpoint.bytes(tensor), &mut values);
            let bytes: Vec<u8> = values.iter().flat_map(|&v| change(name, v).to_ne_bytes()).collect();
            let tensor =
                TensorOverride { name: name.clone(), format, shape: tensor.shape.clone(), values: Arc::new(bytes) };
            own.override_tensor(tensor).unwrap();
        }
        own
    };
    forward.load_weights(&given(&|_, v| v, Format::F32), &mut |_, _| {}).unwrap();
    assert_eq!(logits(&mut forward, &[row(0, 0, &TOKENS)], LogitsWanted::All), before, "the same values");
    let other = given(&|name, v| if name.contains("norm") { v * 2.0 } else { v }, Format::F32);
    forward.load_weights(&other, &mut |_, _| {}).unwrap();
    let after = logits(&mut forward, &[row(0, 0, &TOKENS)], LogitsWanted::All);
    assert_ne!(after, before);
    let mut own = Checkpoint::open(&folder).unwrap();
    let values = Arc::new(vec![0u8; 4]);
    let wrong = |name: &str, shape: Vec<usize>, format| TensorOverride {
        name: name.into(),
        format,
        shape,
        values: values.clone(),
    };
    assert!(matches!(
        own.override_tensor(wrong("model.extra", vec![1], Format::F32)),
        Err(ModelError::MissingTensor { .. })
    ));
    assert!(matches!(own.override_tensor(wrong(&names[0], vec![1], Format::F32)), Err(ModelError::Config { .. })));
    assert!(matches!(
        own.override_tensor(wrong(&names[0], vec![1], Format::Q8_0)),
        Err(ModelError::UnsupportedFormat { .. })
    ));
    let foreign = Checkpoint::open(tiny::model("llama")).unwrap();
    let refused = forward.load_weights(&foreign, &mut |_, _| {});
    assert!(matches!(refused, Err(EngineError::Forward(ForwardError::OtherModel { .. }))), "{refused:?}");
    assert_eq!(logits(&mut forward, &[row(0, 0, &TOKENS)], LogitsWanted::All), after, "the weights of before stay");
}

#[test]
fn kept_plans_count_their_own_memory_and_go_when_they_are_too_many() {
    let bytes = |bytes| ForwardOptions { plans: CacheOptions { bytes, ..CacheOptions::default() }, ..small() };
    let mut none = opened(&bedtime::f32(), &bytes(0));
    let one = logits(&mut none, &[row(0, 0, &TOKENS)], LogitsWanted::All);
    assert_eq!(logits(&mut none, &[row(0, 0, &TOKENS)], LogitsWanted::All), one);
    let stats = none.plans().stats();
    assert_eq!((stats.cache_misses, stats.cache_hits, stats.plans.len(), stats.bytes), (2, 0, 0, 0));
    let mut some = opened(&bedtime::f32(), &bytes(1 << 30));
    logits(&mut some, &[row(0, 0, &TOKENS)], LogitsWanted::All);
    let stats = some.plans().stats();
    assert!(stats.bytes > 0 && stats.bytes < 1 << 22, "weights are not the cache's: {}", stats.bytes);
    some.plans().clear();
    assert_eq!(some.plans().stats().bytes, 0);
    assert_eq!(logits(&mut some, &[row(0, 0, &TOKENS)], LogitsWanted::All), one);
}

#[test]
fn an_encoder_has_no_forward_pass_of_this_kind() {
    let checkpoint = Checkpoint::open(yirage_testkit::encoders::model("embed")).unwrap();
    let refused = Forward::open(&checkpoint, cpu(), &small()).err();
    assert!(matches!(refused, Some(EngineError::Model(ModelError::Unsupported { .. }))), "{refused:?}");
}

/// Values that leave the device forbid fusions, which change no byte of the exact precision.
#[test]
fn the_hidden_state_behind_each_layer_is_given_and_changes_no_logits() {
    for name in tiny::NAMES {
        let model = tiny::model(name);
        let layers = ForwardOptions { context: Some(64), beside: BesideLogits::Layers, ..ForwardOptions::default() };
        let (mut with, mut without) = (
            opened(&model, &layers),
            opened(&model, &ForwardOptions { beside: BesideLogits::Nothing, ..layers.clone() }),
        );
        let ids: Vec<u32> = (0..9).map(|i| (i * 7 + 3) % 64).collect();
        let step = with.forward(&[row(0, 0, &ids)], LogitsWanted::All).unwrap();
        let plain = without.forward(&[row(0, 0, &ids)], LogitsWanted::All).unwrap();
        assert_eq!((step.logits.bytes(), plain.beside.len()), (plain.logits.bytes(), 0), "{name}");
        let config = RawConfig::load(&Checkpoint::open(&model).unwrap()).unwrap();
        assert_eq!(step.beside.len(), config.layers().unwrap() as usize, "{name}");
        for (layer, state) in step.beside.iter().enumerate() {
            let shape: Vec<Option<usize>> = state.ty().shape.iter().map(|dim| dim.as_const()).collect();
            assert_eq!(shape[0], Some(ids.len()), "{name}, layer {layer}");
            let other = &step.beside[(layer + 1) % step.beside.len()];
            assert!(step.beside.len() == 1 || state.bytes() != other.bytes(), "{name}, layer {layer}");
        }
    }
}

/// A recurrent state does not go back: a sequence goes on at its end, or anew from the end of a block.
#[test]
fn recurrent_states_go_on_where_they_are() {
    let model = tiny::model("lfm2");
    let ids: Vec<u32> = (0..50).map(|i| (i * 7 + 3) % 64).collect();
    let mut forward = opened(&model, &ForwardOptions { context: Some(64), ..ForwardOptions::default() });
    let whole = logits(&mut forward, &[row(0, 0, &ids)], LogitsWanted::All);
    let again = logits(&mut forward, &[row(0, 32, &ids[32..])], LogitsWanted::All);
    assert_eq!(again, whole[32..], "from the end of a block");
    let refused = forward.forward(&[row(0, 40, &ids[40..])], LogitsWanted::All).unwrap_err();
    assert!(
        matches!(refused, EngineError::Forward(ForwardError::NoState { row: 0, start: 40, cached: 50, block: 32 })),
        "{refused}"
    );
    assert_eq!(logits(&mut forward, &[row(0, 0, &ids)], LogitsWanted::All), whole, "from the beginning");
}
