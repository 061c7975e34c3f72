//! Samplers of the host: what they leave of rows of logits is what llama.cpp leaves, and what they choose depends on the
//! request alone.

use crate::golden_support::{engine_with, options};
use serde_json::Value;
use std::collections::BTreeMap;
use std::sync::Arc;
use yirage_engine::sampling::{
    ChainChoice, DrySettings, ParamError, SampleError, Sampler, SamplerChain, SamplerChainState, SamplerStage,
    SamplingParams, SequenceBreakers, StageName, TokenCounts, TokenMask, XtcSettings,
};
use yirage_engine::scheduler::{FinishReason, SequenceUsage};
use yirage_engine::{Engine, EngineOptions, Event, Request, Speculation, SpeculationControl};
use yirage_hal::reference::Reference;
use yirage_hal::{Backend, OpenOptions};
use yirage_plan::Precision;
use yirage_testkit::bedtime;

fn number(value: &Value) -> f32 {
    value.as_f64().unwrap() as f32
}

fn tokens(value: &Value) -> Vec<u32> {
    value.as_array().unwrap().iter().map(|token| token.as_u64().unwrap() as u32).collect()
}

/// Stages by their names.
fn named<T: AsRef<str>>(names: &[T]) -> Vec<StageName> {
    SamplerStage::list(names.iter().map(AsRef::as_ref)).unwrap()
}

/// The parameters of a case's stages.
fn params_of(stages: &Value) -> SamplingParams {
    let mut params = SamplingParams::default();
    let mut order = Vec::new();
    for stage in stages.as_array().unwrap() {
        let name = stage[0].as_str().unwrap();
        let at = |i: usize| number(&stage[i]);
        let chain = &mut params.chain;
        match name {
            "penalties" => {
                (params.repetition_penalty, params.frequency_penalty, params.presence_penalty) = (at(1), at(2), at(3));
            }
            "dry" => {
                let mut breakers = SequenceBreakers::default();
                for breaker in stage[5].as_array().unwrap() {
                    let breaker = tokens(breaker);
                    breakers.add(breaker[0], breaker[1..].to_vec());
                }
                chain.dry = DrySettings {
                    multiplier: at(1),
                    base: at(2),
                    allowed_length: at(3) as u32,
                    last_tokens: Some(at(4) as u32),
                    breakers: Arc::new(breakers),
                    ..DrySettings::default()
                };
            }
            "top_n_sigma" => chain.top_n_sigma = at(1),
            "top_k" => params.top_k = at(1) as u32,
            "typ_p" => chain.typical_p = at(1),
            "top_p" => params.top_p = at(1),
            "min_p" => params.min_p = at(1),
            "xtc" => chain.xtc = XtcSettings { probability: at(1), threshold: at(2) },
            "temperature" => {
                params.temperature = at(1);
                (chain.dynamic_temperature.range, chain.dynamic_temperature.exponent) = (at(2), at(3));
            }
            mirostat => {
                chain.mirostat.version = if mirostat == "mirostat" { 1 } else { 2 };
                (chain.mirostat.tau, chain.mirostat.eta) = (at(1), at(2));
            }
        }
        order.push(name.to_owned());
    }
    if params.chain.mirostat.version == 0 {
        params.chain.order = Some(named(&order));
    }
    params
}

#[test]
fn every_stage_leaves_what_llama_cpp_leaves() {
    let golden: Value = serde_json::from_str(include_str!("../golden/samplers.json")).unwrap();
    let cases = golden["cases"].as_array().unwrap();
    let mut seen = BTreeMap::<String, usize>::new();
    for case in cases {
        let params = params_of(&case["stages"]);
        let history = tokens(&case["history"]);
        let mut counts = TokenCounts::default();
        history.iter().for_each(|&token| counts.push(token));
        let mut state = SamplerChainState::new(params.for_chain(), &history);
        for (row, expected) in case["rows"].as_array().unwrap().iter().zip(case["expected"].as_array().unwrap()) {
            let row: Vec<f32> = row.as_array().unwrap().iter().map(number).collect();
            let left = state.candidates(&row, (params.for_chain(), &counts, None), 0).unwrap();
            let mut kept = left.kept().to_vec();
            kept.sort_by_key(|c| c.token);
            let ids: Vec<u32> = kept.iter().map(|c| c.token).collect();
            assert_eq!(ids, tokens(&expected["tokens"]), "{}", case["stages"]);
            for (ours, theirs) in kept.iter().zip(expected["logits"].as_array().unwrap()) {
                let theirs = theirs.as_f64().unwrap_or(f64::NEG_INFINITY);
                let (ours, close) = (f64::from(ours.logit), 1e-5 * theirs.abs().max(1.0));
                assert!(ours == theirs || (ours - theirs).abs() <= close, "{ours} {theirs}: {}", case["stages"]);
            }
            if let Some(token) = expected["selected"].as_u64() {
                let at = left.kept().iter().position(|c| u64::from(c.token) == token).unwrap();
                state.push(
                    params.for_chain(),
                    ChainChoice { token: token as u32, probability: left.probabilities()[at] },
                );
            }
        }
        for stage in case["stages"].as_array().unwrap() {
            *seen.entry(stage[0].as_str().unwrap().to_owned()).or_default() += 1;
        }
    }
    assert!(cases.len() >= 90 && seen.len() == 11 && seen.values().all(|&times| times >= 3), "{seen:?}");
}

/// The order that is not given is llama.cpp's.
#[test]
fn without_an_order_the_stages_are_in_that_of_llama_cpp() {
    let names = SamplerStage::ALL.map(SamplerStage::name);
    let theirs = ["penalties", "dry", "top_n_sigma", "top_k", "typ_p", "top_p", "min_p", "xtc", "temperature"];
    assert_eq!(names, theirs);
    let row: Vec<f32> = (0..40).map(|at| ((at * 37) % 41) as f32 * 0.2).collect();
    let named = SamplingParams {
        temperature: 2.5,
        top_p: 0.8,
        min_p: 0.05,
        chain: SamplerChain {
            xtc: XtcSettings { probability: 1.0, threshold: 0.1 },
            order: Some(named(&SamplerStage::ALL.map(SamplerStage::name))),
            ..SamplerChain::default()
        },
        ..SamplingParams::default()
    };
    let unnamed = SamplingParams { chain: SamplerChain { order: None, ..named.chain.clone() }, ..named.clone() };
    let mut reversed = named.clone();
    reversed.chain.order.as_mut().unwrap().reverse();
    let left = |params: &SamplingParams| {
        SamplerChainState::new(params.for_chain(), &[])
            .candidates(&row, (params.for_chain(), &TokenCounts::default(), None), 3)
            .unwrap()
    };
    assert_eq!(left(&named), left(&unnamed));
    assert_ne!(left(&named).kept().len(), left(&reversed).kept().len(), "the temperature came first");
}

#[test]
fn names_are_those_of_llama_cpp_with_its_aliases() {
    for name in ["top_k", "top-k", "topk", "TOP_K"] {
        assert_eq!(SamplerStage::of_name(name).map(SamplerStage::name), Some("top_k"), "{name}");
    }
    for (alias, name) in [("nucleus", "top_p"), ("temp", "temperature"), ("typ", "typ_p"), ("topnsigma", "top_n_sigma")]
    {
        assert_eq!(SamplerStage::of_name(alias).map(SamplerStage::name), Some(name));
    }
    let error = SamplerStage::list(["dry", "adaptive_p"]).unwrap_err();
    assert!(error.contains("\"adaptive_p\"") && error.contains("top_n_sigma"), "{error}");
}

/// Each number out of its range is named, and the device refuses what it has not.
#[test]
fn what_makes_no_sense_is_refused_by_name() {
    type Spoil = (&'static str, fn(&mut SamplerChain));
    let spoils: [Spoil; 8] = [
        ("dry_multiplier", |c| c.dry.multiplier = -1.0),
        ("dry_base", |c| c.dry.base = 0.5),
        ("xtc_probability", |c| c.xtc.probability = 1.5),
        ("typical_p", |c| c.typical_p = 0.0),
        ("top_n_sigma", |c| c.top_n_sigma = f32::NAN),
        ("dynatemp_range", |c| c.dynamic_temperature.range = f32::INFINITY),
        ("mirostat", |c| c.mirostat.version = 3),
        ("mirostat_eta", |c| c.mirostat.eta = 2.0),
    ];
    for (name, spoil) in spoils {
        let mut params = SamplingParams::default();
        spoil(&mut params.chain);
        let error = params.checked(10).unwrap_err();
        assert!(matches!(error, ParamError::OutOfRange { field, .. } if field == name), "{name}: {error}");
    }
    let params = typical(0).checked(4).unwrap();
    let (device, _) = Reference::new().open(0, &OpenOptions::default()).unwrap();
    let refused = Sampler::new(device, 1).sample(&[0.0; 4], &params, &TokenCounts::default(), None, 0).unwrap_err();
    assert!(matches!(&refused, SampleError::OnHost(asked) if asked == &["typical_p"]), "{refused}");
}

#[test]
fn logits_that_are_no_numbers_give_no_token() {
    let params = typical(0);
    let choose = |row: &[f32], mask: Option<&TokenMask>| {
        SamplerChainState::new(params.for_chain(), &[]).choose(
            row,
            (params.for_chain(), &TokenCounts::default(), mask),
            0,
        )
    };
    let error = choose(&[0.0, f32::NAN], None).unwrap_err();
    assert!(matches!(error, SampleError::NotFinite { token: 1, .. }), "{error}");
    let none = TokenMask::none(2);
    assert!(matches!(choose(&[0.0, 1.0], Some(&none)), Err(SampleError::NoCandidate { vocabulary: 2 })));
    let mut one = TokenMask::none(2);
    one.allow(0);
    assert_eq!(choose(&[0.0, 9.0], Some(&one)).unwrap().token, 0);
}

/// What mirostat and a given order leave without effect is told.
#[test]
fn parameters_that_nothing_reads_are_told() {
    let given = SamplingParams { top_k: 5, temperature: 0.7, ..SamplingParams::default() };
    assert!(given.unused().is_empty(), "the device reads them");
    let mut mirostat = given.clone();
    mirostat.chain.mirostat.version = 2;
    assert_eq!(mirostat.unused(), ["top_k"]);
    let mut ordered = given;
    ordered.chain.order = Some(named(&["top_p"]));
    ordered.chain.typical_p = 0.5;
    assert_eq!(ordered.unused(), ["temperature", "top_k", "typical_p"]);
}

fn typical(seed: u64) -> SamplingParams {
    let chain = SamplerChain { typical_p: 0.9, ..SamplerChain::default() };
    SamplingParams { seed, chain, ..SamplingParams::default() }
}

/// A draw takes each token as often as its probability says.
#[test]
fn draws_follow_the_probabilities() {
    let row = [2.0f32, 1.0, 0.5, 0.0, -0.5, -1.0];
    let params =
        SamplingParams { chain: SamplerChain { order: Some(vec![]), ..SamplerChain::default() }, ..typical(0) };
    let state = SamplerChainState::new(params.for_chain(), &[]);
    let probabilities =
        state.candidates(&row, (params.for_chain(), &TokenCounts::default(), None), 0).unwrap().probabilities();
    let draws = 20_000;
    let mut counts = [0u32; 6];
    for position in 0..draws {
        counts[state.choose(&row, (params.for_chain(), &TokenCounts::default(), None), position).unwrap().token
            as usize] += 1;
    }
    let squares = counts.iter().zip(&probabilities).map(|(&seen, p)| {
        let expected = p * f64::from(draws);
        (f64::from(seen) - expected).powi(2) / expected
    });
    let chi: f64 = squares.sum();
    assert!(chi < 20.5, "chi square {chi} of 5 degrees of freedom: {counts:?}"); // 0.1 per cent
}

/// The surprise of what mirostat chooses comes to its target.
#[test]
fn mirostat_holds_the_surprise_at_its_target() {
    for version in [1, 2] {
        let mut params = SamplingParams { seed: 3, ..SamplingParams::default() };
        params.chain.mirostat.version = version;
        params.chain.mirostat.tau = 3.0;
        let row: Vec<f32> = (0..2000).map(|at| -1.1 * (1.0 + at as f32).ln()).collect();
        let mut state = SamplerChainState::new(params.for_chain(), &[]);
        let mut surprise = Vec::new();
        for position in 0..600 {
            let choice = state.choose(&row, (params.for_chain(), &TokenCounts::default(), None), position).unwrap();
            state.push(params.for_chain(), choice);
            surprise.push(-choice.probability.log2());
        }
        let mean = surprise[100..].iter().sum::<f64>() / 500.0;
        assert!((mean - 3.0).abs() < 0.1, "version {version}: {mean} bits");
    }
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

/// The engine counts what the host chose, and guesses change no token.
#[test]
fn the_host_chooses_in_the_engine_with_and_without_guesses() {
    let model = bedtime::q8_0();
    let guessing = Speculation { most: 5, lookup: true, control: SpeculationControl::Most, ..Speculation::default() };
    let engine = |speculation| {
        let options = EngineOptions { context: Some(256), speculation, ..options(Precision::Fast) };
        engine_with(&model, &options, &OpenOptions { threads: Some(1), ..OpenOptions::default() })
    };
    let prompt: Vec<u32> = [1].into_iter().chain([341, 349, 316, 343, 268].into_iter().cycle().take(48)).collect();
    let mut accepted = 0;
    for (at, chain) in chains().into_iter().enumerate() {
        let sampling = SamplingParams { temperature: 0.4, seed: at as u64, chain, ..SamplingParams::default() };
        let request = Request { sampling, ..Request::greedy(prompt.clone(), 60) };
        let (plain, usage) = run(&mut engine(Speculation::default()), request.clone());
        assert_eq!(usage.host_sampled, plain.len(), "chain {at}");
        let (guessed, usage) = run(&mut engine(guessing), request);
        assert_eq!(guessed, plain, "chain {at}");
        accepted += usage.accepted;
    }
    assert!(accepted > 0, "no guess came true");
    let (tokens, usage) = run(&mut engine(Speculation::default()), Request::greedy(prompt, 5));
    assert_eq!((tokens.len(), usage.host_sampled), (5, 0), "the device chooses what asks for nothing");
}

/// One of each sampler.
fn chains() -> Vec<SamplerChain> {
    let mut chains = vec![SamplerChain::default(); 7];
    chains[0].dry.multiplier = 0.8;
    chains[1].xtc.probability = 0.5;
    chains[2].typical_p = 0.7;
    chains[3].top_n_sigma = 1.0;
    chains[4].dynamic_temperature.range = 0.3;
    (chains[5].mirostat.version, chains[6].mirostat.version) = (1, 2);
    chains
}

/// A greedy request goes round in circles, and `dry` ends it.
#[test]
fn dry_ends_a_repetition() {
    let model = bedtime::q8_0();
    let options = EngineOptions { context: Some(256), ..options(Precision::Fast) };
    let mut engine = engine_with(&model, &options, &OpenOptions { threads: Some(1), ..OpenOptions::default() });
    let prompt: Vec<u32> = [1].into_iter().chain([341, 349, 316, 343, 268].into_iter().cycle().take(48)).collect();
    let repeats = |tokens: &[u32]| {
        let all: Vec<u32> = prompt.iter().chain(tokens).copied().collect();
        (5..all.len()).filter(|&end| all[..end - 1].windows(5).any(|w| w == &all[end - 5..end])).count()
    };
    let greedy = Request::greedy(prompt.clone(), 60);
    let mut sampling = greedy.sampling.clone();
    sampling.chain.dry = DrySettings { multiplier: 2.0, last_tokens: None, ..DrySettings::default() };
    let (plain, _) = run(&mut engine, greedy.clone());
    let (dry, _) = run(&mut engine, Request { sampling, ..greedy });
    assert!(repeats(&dry) < repeats(&plain), "{} {}", repeats(&dry), repeats(&plain));
}
