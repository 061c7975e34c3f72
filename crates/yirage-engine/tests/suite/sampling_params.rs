//! Ranges of the sampling parameters, and that each of them does something.

use yirage_cpu::Cpu;
use yirage_engine::limits::{MAX_LOGIT_BIAS, MAX_LOGPROBS};
use yirage_engine::sampling::{ParamError, Sampler, SamplingParams, TokenCounts, TokenMask};
use yirage_hal::{Backend, OpenOptions};

/// A sampler on the processor's best instruction set.
fn new_sampler() -> Sampler {
    let (device, _) =
        Cpu.open(0, &OpenOptions { threads: Some(1), ..OpenOptions::default() }).expect("the CPU is always there");
    Sampler::new(device, 1)
}

const VOCABULARY: usize = 100;

fn error(change: impl FnOnce(&mut SamplingParams)) -> ParamError {
    let mut params = SamplingParams::default();
    change(&mut params);
    params.checked(VOCABULARY).expect_err("the parameter is out of range")
}

#[test]
fn every_range_is_checked_by_name() {
    type Set = fn(&mut SamplingParams, f32);
    let fields: [(&str, Set, &[f32]); 6] = [
        ("temperature", |params, value| params.temperature = value, &[-0.1, 100.5]),
        ("top_p", |params, value| params.top_p = value, &[0.0, -1.0, 1.1]),
        ("min_p", |params, value| params.min_p = value, &[-0.1, 1.1]),
        ("presence_penalty", |params, value| params.presence_penalty = value, &[-2.1, 2.1]),
        ("frequency_penalty", |params, value| params.frequency_penalty = value, &[-2.1, 2.1]),
        ("repetition_penalty", |params, value| params.repetition_penalty = value, &[0.0, -1.0, 101.0]),
    ];
    for (name, set, bad) in fields {
        for &value in bad.iter().chain(&[f32::NAN, f32::INFINITY, f32::NEG_INFINITY]) {
            let error = error(|params| set(params, value));
            assert!(matches!(error, ParamError::OutOfRange { field, .. } if field == name), "{error}");
            assert!(error.to_string().contains(name), "{error}");
        }
    }
}

#[test]
fn biases_and_logprobs_are_checked() {
    let bias = |bias: Vec<(u32, f32)>| error(|params| params.logit_bias = bias);
    assert_eq!(
        bias(vec![(100, 1.0)]),
        ParamError::UnknownToken { field: "logit_bias", token: 100, vocabulary: VOCABULARY }
    );
    assert_eq!(bias(vec![(3, 1.0), (4, 0.0), (3, 2.0)]), ParamError::DuplicateToken { token: 3 });
    assert!(matches!(bias(vec![(3, f32::NAN)]), ParamError::OutOfRange { field: "logit_bias", .. }));
    let count = MAX_LOGIT_BIAS + 1;
    assert_eq!(bias(vec![(0, 0.0); count]), ParamError::TooManyBiases { count });
    let value = MAX_LOGPROBS + 1;
    assert_eq!(error(|params| params.logprobs = Some(value)), ParamError::TooManyLogprobs { field: "logprobs", value });
    assert_eq!(SamplingParams::default().checked(0), Err(ParamError::EmptyVocabulary));
    assert_eq!(
        ParamError::UnknownToken { field: "logit_bias", token: 100, vocabulary: 100 }.to_string(),
        "logit_bias names token 100, but the vocabulary has 100 tokens (0 to 99)"
    );
}

/// A few hundred tokens drawn with one set of parameters.
fn outputs(params: SamplingParams, allowed: Option<&TokenMask>) -> Vec<u32> {
    let params = params.checked(VOCABULARY).expect("valid");
    let row: Vec<f32> = (0..VOCABULARY).map(|at| ((at * 31) % 17) as f32 * 0.4 - 3.0).collect();
    let mut counts = TokenCounts::new(&[3, 4, 5, 6, 7]);
    let mut sampler = new_sampler();
    let mut next = |position| {
        let token = sampler.sample(&row, &params, &counts, allowed, position).expect("samples").token;
        counts.push(token);
        token
    };
    (0..300).map(&mut next).collect()
}

#[test]
fn each_parameter_changes_the_output() {
    let base = SamplingParams::default;
    let plain = outputs(base(), None);
    let mut seen = vec![plain.clone()];
    let changes: [(&str, SamplingParams); 11] = [
        ("temperature 0", SamplingParams::greedy()),
        ("temperature", SamplingParams { temperature: 0.7, ..base() }),
        ("top_k", SamplingParams { top_k: 30, ..base() }),
        ("top_p", SamplingParams { top_p: 0.8, ..base() }),
        ("min_p", SamplingParams { min_p: 0.05, ..base() }),
        ("presence_penalty", SamplingParams { presence_penalty: 1.0, ..base() }),
        ("frequency_penalty", SamplingParams { frequency_penalty: 1.0, ..base() }),
        ("repetition_penalty", SamplingParams { repetition_penalty: 1.5, ..base() }),
        ("logit_bias", SamplingParams { logit_bias: vec![(50, 8.0)], ..base() }),
        ("seed", SamplingParams { seed: 1, ..base() }),
        ("choice", SamplingParams { choice: 1, ..base() }),
    ];
    for (name, params) in changes {
        let output = outputs(params, None);
        assert!(!seen.contains(&output), "{name} changes nothing");
        seen.push(output);
    }
    let mut mask = TokenMask::none(VOCABULARY);
    [10, 20, 99].into_iter().for_each(|token| mask.allow(token));
    let masked = outputs(base(), Some(&mask));
    assert!(masked.iter().all(|&token| mask.allows(token)) && masked.contains(&99));
    assert_eq!(outputs(SamplingParams { logprobs: Some(3), ..base() }, None), plain, "logprobs only report");
}
