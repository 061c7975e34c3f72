//! Tokens that must never change: a request with a seed gives the same text in every release, on every machine.

use yirage_cpu::Cpu;
use yirage_engine::sampling::{Sampler, SamplingParams, TokenCounts, TokenMask};
use yirage_hal::{Backend, OpenOptions};

/// A sampler on the processor's best instruction set.
fn new_sampler() -> Sampler {
    let (device, _) =
        Cpu.open(0, &OpenOptions { threads: Some(1), ..OpenOptions::default() }).expect("the CPU is always there");
    Sampler::new(device, 1)
}

/// A number in [0, 1) for building rows (not the generator under test), as the first release made them.
fn noise(at: usize) -> f32 {
    let mut value = (at as u64 + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    value ^= value >> 29;
    value = value.wrapping_mul(0xbf58_476d_1ce4_e5b9);
    (value >> 40) as f32 / (1u64 << 24) as f32
}

/// FNV-1a over what was sampled.
struct Digest(u64);

impl Digest {
    fn add(&mut self, value: u32) {
        for byte in value.to_le_bytes() {
            self.0 = (self.0 ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
        }
    }
}

fn params(case: usize, length: usize) -> SamplingParams {
    SamplingParams {
        temperature: [0.0, 0.3, 1.0, 1.7, 40.0][case % 5],
        top_k: [0, 1, 20, 0, 300, 1 << 20][case % 6],
        top_p: [1.0, 0.95, 0.5, 0.999_999, 0.01, 0.999_999_94][case / 2 % 6],
        min_p: [0.0, 0.05, 0.0, 0.3][case / 3 % 4],
        presence_penalty: [0.0, 0.0, 1.5, -0.5][case / 5 % 4],
        frequency_penalty: [0.0, 0.2, 0.0][case / 7 % 3],
        repetition_penalty: [1.0, 1.0, 1.3, 0.7][case / 4 % 4],
        logit_bias: if case % 4 == 3 { vec![(length as u32 - 1, 3.0), (0, -2.5)] } else { Vec::new() },
        seed: case as u64 * 0x1_0000_0001,
        choice: case as u32 % 3,
        logprobs: [None, Some(0), Some(5)][case % 3],
        ..SamplingParams::default()
    }
}

#[test]
fn tokens_and_log_probabilities_are_those_of_the_first_release() {
    let mut digest = Digest(0xcbf2_9ce4_8422_2325);
    let mut sampler = new_sampler();
    for case in 0..600 {
        let length = [2, 33, 100, 1024, 3001, 20_000][case % 6];
        let spread = [0.5, 8.0, 30.0][case / 6 % 3];
        // Every eighth logit is rounded, so that there are equal ones.
        let value = |at: usize| {
            let x = (noise(case * 10_007 + at) - 0.5) * spread;
            if at % 8 == 3 { x.round() } else { x }
        };
        let row: Vec<f32> = (0..length).map(value).collect();
        let params = params(case, length).checked(length).expect("valid");
        let mut counts = TokenCounts::new(&[0, 1, 5, 77, 90_000]);
        let mask = (case % 11 == 0).then(|| {
            let mut mask = TokenMask::none(length);
            (0..length as u32).filter(|token| token % 3 != 1).for_each(|token| mask.allow(token));
            mask
        });
        for position in 0..6 {
            let sampled = sampler.sample(&row, &params, &counts, mask.as_ref(), position).expect("ok");
            digest.add(sampled.token);
            if let Some(logprobs) = sampled.logprobs {
                digest.add(logprobs.chosen.logprob.to_bits());
                logprobs.top.iter().for_each(|entry| digest.add(entry.token));
                logprobs.top.iter().for_each(|entry| digest.add(entry.logprob.to_bits()));
            }
            counts.push(sampled.token);
        }
    }
    assert_eq!(digest.0, 0xaecf_9408_b6da_5440, "{:#x}", digest.0);
}
