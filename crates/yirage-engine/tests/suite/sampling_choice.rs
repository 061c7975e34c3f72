//! What is chosen: exactness at temperature 0, distributions elsewhere, errors for unusable rows.

use yirage_cpu::Cpu;
use yirage_engine::sampling::{
    CheckedParams, RngKey, SampleError, Sampler, SamplerOutput, SamplingParams, TokenCounts, TokenMask,
};
use yirage_hal::{Backend, OpenOptions};
use yirage_testkit::rng;

/// A sampler on the processor's best instruction set.
fn new_sampler() -> Sampler {
    let (device, _) =
        Cpu.open(0, &OpenOptions { threads: Some(1), ..OpenOptions::default() }).expect("the CPU is always there");
    Sampler::new(device, 1)
}

fn checked(params: SamplingParams, vocabulary: usize) -> CheckedParams {
    params.checked(vocabulary).expect("valid parameters")
}

fn sample(row: &[f32], params: &SamplingParams, position: u32) -> Result<SamplerOutput, SampleError> {
    let params = checked(params.clone(), row.len());
    new_sampler().sample(row, &params, &TokenCounts::default(), None, position)
}

/// A pseudo-random number for building rows (not the generator under test).
fn noise(at: usize) -> f32 {
    (rng::at(0, at as u64) >> 40) as f32 / (1u64 << 24) as f32
}

#[test]
fn greedy_takes_the_first_of_equals_wherever_it_is() {
    for length in [1, 2, 17, 1023, 1024, 1025, 5000, 262_144] {
        for first in [0, length / 2, length - 1] {
            let mut row = vec![-3.5f32; length];
            row[first..].iter_mut().step_by(7).for_each(|logit| *logit = 2.25);
            assert_eq!(sample(&row, &SamplingParams::greedy(), 0).map(|sampled| sampled.token), Ok(first as u32));
            let tiny = SamplingParams { temperature: 1e-6, ..SamplingParams::default() };
            assert_eq!(sample(&row, &tiny, 0).map(|sampled| sampled.token), Ok(first as u32));
        }
    }
    assert_eq!(sample(&[-0.0, 0.0], &SamplingParams::greedy(), 0).map(|sampled| sampled.token), Ok(0));
    let one = SamplingParams { top_k: 1, ..SamplingParams::default() };
    assert_eq!(sample(&[-0.0, 0.0], &one, 5).map(|sampled| sampled.token), Ok(0));
}

#[test]
fn a_row_that_is_no_row_of_numbers_is_an_error_naming_the_token() {
    for params in [SamplingParams::greedy(), SamplingParams::default()] {
        for bad in [f32::NAN, -f32::NAN, f32::INFINITY] {
            for at in [0, 15, 16, 1024, 1999] {
                let mut row = vec![1.0; 2000];
                row[at] = bad;
                let error = sample(&row, &params, 0).expect_err("unusable row");
                assert!(matches!(error, SampleError::NotFinite { token, .. } if token == at), "{error}");
            }
        }
        let none = sample(&[f32::NEG_INFINITY; 9], &params, 0);
        assert_eq!(none, Err(SampleError::NoCandidate { vocabulary: 9 }));
        let some = sample(&[f32::NEG_INFINITY, -1e38, f32::NEG_INFINITY], &params, 0);
        assert_eq!(some.map(|sampled| sampled.token), Ok(1));
    }
    let params = checked(SamplingParams::default(), 10);
    let short = new_sampler().sample(&[0.0; 9], &params, &TokenCounts::default(), None, 0);
    assert_eq!(short, Err(SampleError::Vocabulary { expected: 10, got: 9 }));
}

#[test]
fn a_mask_hides_tokens_but_no_damage() {
    let greedy = checked(SamplingParams::greedy(), 70);
    let with = |row: &[f32], mask: &TokenMask| {
        let sampled = new_sampler().sample(row, &greedy, &TokenCounts::default(), Some(mask), 0);
        sampled.map(|sampled| sampled.token)
    };
    let mut row: Vec<f32> = (0..70).map(|at| at as f32).collect();
    let mut mask = TokenMask::none(70);
    assert_eq!(with(&row, &mask), Err(SampleError::NoCandidate { vocabulary: 70 }));
    mask.allow(33);
    mask.allow(2);
    assert_eq!(with(&row, &mask), Ok(33));
    assert_eq!(with(&row, &TokenMask::from_words(vec![1 << 5])), Ok(5));
    row[60] = f32::NAN;
    assert!(matches!(with(&row, &mask), Err(SampleError::NotFinite { token: 60, .. })));
}

#[test]
fn extreme_but_valid_values_give_a_token() {
    let row = [3e38, -3e38, 0.0, f32::MIN_POSITIVE];
    for temperature in [1e-5, 1.0, 100.0] {
        for repetition_penalty in [0.5, 100.0] {
            let params = SamplingParams { temperature, repetition_penalty, top_p: 1e-30, ..SamplingParams::default() };
            let params = checked(params, 4);
            let counts = TokenCounts::new(&[0, 1, 2, 3, 4_000_000]);
            let result = new_sampler().sample(&row, &params, &counts, None, u32::MAX);
            match result {
                Ok(sampled) => assert!(sampled.token < 4),
                Err(error) => assert!(matches!(error, SampleError::NotFinite { token: 0, .. }), "{error}"),
            }
        }
    }
}

/// The chi-square statistic of `draws` draws against `probability`, over the tokens that have any.
fn chi_square(row: &[f32], params: &SamplingParams, probability: &[f64], draws: u32) -> f64 {
    let params = checked(params.clone(), row.len());
    let mut sampler = new_sampler();
    let mut seen = vec![0f64; row.len()];
    for position in 0..draws {
        let sampled = sampler.sample(row, &params, &TokenCounts::default(), None, position).expect("samples");
        seen[sampled.token as usize] += 1.0;
    }
    let mut sum = 0.0;
    for (token, &probability) in probability.iter().enumerate() {
        let expected = probability * f64::from(draws);
        if probability == 0.0 {
            assert_eq!(seen[token], 0.0, "token {token} was filtered out");
        } else {
            sum += (seen[token] - expected).powi(2) / expected;
        }
    }
    sum
}

/// Tokens in the order in which they are kept: likeliest first, smaller ids first.
fn by_likelihood(row: &[f32]) -> Vec<usize> {
    let mut order: Vec<usize> = (0..row.len()).collect();
    order.sort_by(|&a, &b| row[b].total_cmp(&row[a]).then(a.cmp(&b)));
    order
}

/// The documented distribution in f64, by sorting everything.
fn distribution(row: &[f32], params: &SamplingParams) -> Vec<f64> {
    let order = by_likelihood(row);
    let top = f64::from(row[order[0]]);
    let weight = |token: usize| ((f64::from(row[token]) - top) / f64::from(params.temperature)).exp();
    let mut kept: Vec<usize> = order.into_iter().filter(|&token| weight(token) >= f64::from(params.min_p)).collect();
    if params.top_k > 0 {
        kept.truncate(params.top_k as usize);
    }
    let total: f64 = kept.iter().map(|&token| weight(token)).sum();
    let mut reached = 0.0;
    let enough = kept.iter().position(|&token| {
        reached += weight(token) / total;
        reached >= f64::from(params.top_p)
    });
    kept.truncate(enough.map_or(kept.len(), |at| at + 1));
    let total: f64 = kept.iter().map(|&token| weight(token)).sum();
    let mut result = vec![0.0; row.len()];
    kept.iter().for_each(|&token| result[token] = weight(token) / total);
    result
}

#[test]
fn draws_follow_the_documented_distribution() {
    let row: Vec<f32> = (0..24).map(|at| noise(at) * 4.0 - 2.0).collect();
    let base = SamplingParams { seed: 99, ..SamplingParams::default() };
    for params in [
        base.clone(),
        SamplingParams { temperature: 0.6, ..base.clone() },
        SamplingParams { temperature: 2.5, ..base.clone() },
        SamplingParams { top_k: 9, ..base.clone() },
        SamplingParams { top_p: 0.7, ..base.clone() },
        SamplingParams { min_p: 0.2, ..base.clone() },
        SamplingParams { temperature: 1.7, min_p: 0.1, top_k: 14, top_p: 0.85, ..base.clone() },
    ] {
        let expected = distribution(&row, &params);
        let freedom = expected.iter().filter(|&&probability| probability > 0.0).count() as f64 - 1.0;
        let statistic = chi_square(&row, &params, &expected, 60_000);
        // Mean and deviation of the distribution are `freedom` and sqrt(2 * freedom).
        let bound = freedom + 5.0 * (2.0 * freedom).sqrt();
        assert!(statistic < bound, "{statistic} with {freedom} degrees of freedom for {params:?}");
    }
}

/// A draw from a wrong distribution must fail the test above: 3 % more temperature is enough.
#[test]
fn the_chi_square_test_has_the_power_to_see_a_small_error() {
    let row: Vec<f32> = (0..24).map(|at| noise(at) * 4.0 - 2.0).collect();
    let params = SamplingParams { seed: 99, temperature: 1.03, ..SamplingParams::default() };
    let wrong = distribution(&row, &SamplingParams::default());
    assert!(chi_square(&row, &params, &wrong, 600_000) > 23.0 + 5.0 * 46f64.sqrt());
}

/// For rows of every size the token is the one that inverting the documented distribution at the same random number
/// gives.
#[test]
fn each_token_is_the_inverse_of_the_distribution_at_its_random_number() {
    let mut compared = 0;
    for case in 0..400 {
        let length = [2, 40, 700, 1024, 3000][case % 5];
        let spread = [0.5, 8.0, 30.0][case % 3];
        let row: Vec<f32> = (0..length).map(|at| noise(case * 10_007 + at) * spread).collect();
        let params = SamplingParams {
            temperature: 0.3 + noise(case) * 2.0,
            top_k: [0, 0, 1, 50, 5000][case % 5],
            top_p: [1.0, 0.9, 0.3, 0.999][case % 4],
            min_p: [0.0, 0.02][case % 2],
            seed: case as u64,
            choice: 3,
            ..SamplingParams::default()
        };
        let expected = distribution(&row, &params);
        let params = checked(params, length);
        let mut sampler = new_sampler();
        for position in 0..20 {
            let token = sampler.sample(&row, &params, &TokenCounts::default(), None, position).expect("ok").token;
            let uniform = RngKey { seed: case as u64, choice: 3, position }.uniform();
            let mut reached = 0.0;
            let mut steps = (0..length).map(|at| {
                reached += expected[at];
                (at, reached)
            });
            let (at, end) = steps.find(|&(_, reached)| reached > uniform).expect("the shares reach 1");
            let start = end - expected[at];
            if uniform - start > 1e-5 && end - uniform > 1e-5 {
                assert_eq!(token as usize, at, "case {case}, position {position}: {uniform} in {start}..{end}");
                compared += 1;
            }
        }
    }
    assert!(compared > 6000, "{compared}");
}

#[test]
fn the_result_depends_on_nothing_but_its_arguments() {
    let params = checked(SamplingParams { top_p: 0.9, seed: 5, ..SamplingParams::default() }, 3000);
    let row = |at: usize| -> Vec<f32> { (0..3000).map(|token| noise(at * 3000 + token) * 5.0).collect() };
    let counts = TokenCounts::default();
    let mut sampler = new_sampler();
    let forward: Vec<_> =
        (0..50).map(|at| sampler.sample(&row(at), &params, &counts, None, at as u32).expect("ok")).collect();
    for at in (0..50).rev() {
        let alone = new_sampler().sample(&row(at), &params, &counts, None, at as u32).expect("ok");
        assert_eq!(alone, forward[at]);
        assert_eq!(sampler.sample(&row(at), &params, &counts, None, at as u32).expect("ok"), alone);
    }
}

#[test]
fn penalties_have_the_documented_size() {
    let winner = |params: SamplingParams, row: &[f32], prompt: &[u32], output: &[u32]| {
        let params = checked(SamplingParams { temperature: 0.0, ..params }, row.len());
        let mut counts = TokenCounts::new(prompt);
        output.iter().for_each(|&token| counts.push(token));
        new_sampler().sample(row, &params, &counts, None, 0).expect("ok").token
    };
    let base = SamplingParams::default;
    let presence = || SamplingParams { presence_penalty: 1.0, ..base() };
    assert_eq!(winner(presence(), &[2.0, 1.001], &[], &[0, 0, 0]), 1);
    assert_eq!(winner(presence(), &[2.0, 0.999], &[], &[0, 0, 0]), 0);
    assert_eq!(winner(presence(), &[2.0, 1.001], &[0], &[]), 0, "only the output counts");
    let frequency = || SamplingParams { frequency_penalty: 0.5, ..base() };
    assert_eq!(winner(frequency(), &[2.0, 0.501], &[], &[0, 0, 0]), 1);
    assert_eq!(winner(frequency(), &[2.0, 0.499], &[], &[0, 0, 0]), 0);
    let repetition = || SamplingParams { repetition_penalty: 2.0, ..base() };
    assert_eq!(winner(repetition(), &[2.0, 1.001], &[0], &[0, 0]), 1, "once, however often it occurred");
    assert_eq!(winner(repetition(), &[2.0, 0.999], &[0], &[]), 0);
    assert_eq!(winner(repetition(), &[-1.0, -1.999], &[0], &[]), 1);
    let bias = SamplingParams { logit_bias: vec![(1, 0.5)], ..base() };
    assert_eq!(winner(bias, &[1.0, 0.501], &[], &[]), 1);
}

#[test]
fn log_probabilities_are_those_of_the_raw_row() {
    let row: Vec<f32> = (0..5000).map(|at| noise(at) * 12.0 - 6.0).collect();
    let total: f64 = row.iter().map(|&logit| f64::from(logit).exp()).sum();
    let params = SamplingParams {
        temperature: 0.5,
        top_k: 3,
        logit_bias: vec![(17, 50.0)],
        logprobs: Some(5),
        ..SamplingParams::default()
    };
    let sampled = sample(&row, &params, 0).expect("samples");
    assert_eq!(sampled.token, 17);
    let logprobs = sampled.logprobs.expect("asked for");
    let real = |token: u32| f64::from(row[token as usize]) - total.ln();
    assert!((f64::from(logprobs.chosen.logprob) - real(17)).abs() < 1e-5);
    let top: Vec<u32> = logprobs.top.iter().map(|entry| entry.token).collect();
    let expected: Vec<u32> = by_likelihood(&row)[..5].iter().map(|&token| token as u32).collect();
    assert_eq!(top, expected);
    for entry in logprobs.top {
        assert!((f64::from(entry.logprob) - real(entry.token)).abs() < 1e-5);
    }
    let only_chosen = sample(&row, &SamplingParams { logprobs: Some(0), ..params }, 0).expect("samples");
    assert_eq!(only_chosen.logprobs.expect("asked for").top, []);
}
