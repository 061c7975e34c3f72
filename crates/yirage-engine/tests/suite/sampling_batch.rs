//! A sequence's token does not depend on what else is in its batch, nor on the device or its instruction set.

use std::sync::Arc;
use yirage_cpu::Cpu;
use yirage_cpu_kernels::isa::Isa;
use yirage_engine::sampling::{
    CheckedParams, Logits, SampleError, Sampler, SamplerInput, SamplerOutput, SamplingParams, TokenCounts, TokenMask,
};
use yirage_hal::reference::Reference;
use yirage_hal::{Backend, Device, OpenOptions};
use yirage_testkit::rng::Rng;
use yirage_testkit::skipped;

const VOCABULARY: usize = 1500;
const ROWS: usize = 7;

fn logits() -> Vec<f32> {
    let mut rng = Rng::new(0);
    let mut all: Vec<f32> = (0..ROWS * VOCABULARY).map(|_| 7.0 * rng.signed_f32()).collect();
    all[3 * VOCABULARY + 70] = f32::NAN;
    all[5 * VOCABULARY..6 * VOCABULARY].fill(f32::NEG_INFINITY);
    all
}

/// What each of the sequences wants: nothing, everything, and one thing each.
fn wishes() -> Vec<CheckedParams> {
    let base = SamplingParams { seed: 11, ..SamplingParams::default() };
    let list = [
        SamplingParams::greedy(),
        base.clone(),
        SamplingParams { top_k: 5, ..base.clone() },
        SamplingParams { top_p: 0.6, min_p: 0.01, ..base.clone() },
        SamplingParams { repetition_penalty: 1.4, frequency_penalty: 0.3, ..SamplingParams::greedy() },
        SamplingParams { logit_bias: vec![(9, 30.0), (1499, -3.0)], ..base.clone() },
        SamplingParams { logprobs: Some(0), ..SamplingParams::greedy() },
        SamplingParams { logprobs: Some(9), temperature: 1.6, presence_penalty: 1.0, top_k: 80, ..base },
    ];
    list.into_iter().map(|params| params.checked(VOCABULARY).unwrap()).collect()
}

type Outcomes = Vec<Result<SamplerOutput, String>>;

fn outcomes(sampled: Vec<Result<SamplerOutput, SampleError>>) -> Outcomes {
    sampled.into_iter().map(|s| s.map_err(|e| e.to_string())).collect()
}

/// All sequences in one batch, and each in one of its own.
fn both(device: Arc<dyn Device>) -> (Outcomes, Outcomes) {
    let (rows, params) = (logits(), wishes());
    let mut counts = TokenCounts::new(&[1, 2, 3, 900]);
    [7, 7, 7, 900, 12].into_iter().for_each(|token| counts.push(token));
    let mut mask = TokenMask::none(VOCABULARY);
    (0..VOCABULARY as u32).step_by(3).for_each(|token| mask.allow(token));
    let pick = |i: usize| SamplerInput {
        row: i % ROWS,
        params: &params[i % params.len()],
        counts: &counts,
        allowed: (i % 5 == 2).then_some(&mask),
        position: 40 + i as u32,
    };
    let picks: Vec<SamplerInput<'_>> = (0..56).map(pick).collect();
    let mut sampler = Sampler::new(device, 56);
    let together = outcomes(sampler.sample_all(Logits::Host(&rows), VOCABULARY, &picks).unwrap());
    let one =
        |pick: &SamplerInput<'_>| sampler.sample_all(Logits::Host(&rows), VOCABULARY, &[*pick]).unwrap().pop().unwrap();
    let alone = outcomes(picks.iter().map(one).collect());
    (together, alone)
}

#[test]
fn neither_the_batch_nor_the_device_matters() {
    let (reference, _) = Reference::new().open(0, &OpenOptions::default()).unwrap();
    let (want, alone) = both(reference);
    assert_eq!(want, alone);
    assert_eq!(want.iter().filter(|s| s.is_err()).count(), 16, "two rows of seven cannot be used");
    let (here, lacking): (Vec<Isa>, Vec<Isa>) = Isa::ALL.iter().partition(|isa| isa.available());
    lacking.iter().for_each(|isa| skipped::note(&format!("level {isa}"), "this processor lacks it"));
    for isa in here {
        for threads in [1, 3] {
            let options =
                OpenOptions { threads: Some(threads), isa: Some(isa.name().into()), ..OpenOptions::default() };
            let (together, alone) = both(Cpu.open(0, &options).unwrap().0);
            assert_eq!(together, want, "{isa}, {threads} threads");
            assert_eq!(alone, want, "{isa}, {threads} threads, alone");
        }
    }
}

#[test]
fn a_row_that_is_not_there_is_an_error() {
    let (device, _) = Cpu.open(0, &OpenOptions { threads: Some(1), ..OpenOptions::default() }).unwrap();
    let params = SamplingParams::greedy().checked(4).unwrap();
    let counts = TokenCounts::default();
    let pick = SamplerInput { row: 2, params: &params, counts: &counts, allowed: None, position: 0 };
    let mut sampler = Sampler::new(device, 1);
    let sampled = sampler.sample_all(Logits::Host(&[0.0; 8]), 4, &[pick]).unwrap();
    assert_eq!(sampled, [Err(SampleError::NoCandidate { vocabulary: 4 })]);
    let many = sampler.sample_all(Logits::Host(&[0.0; 8]), 4, &[pick, pick]);
    assert!(matches!(many, Err(SampleError::Device(_))), "more sequences than the plan was made for");
}
