//! Frequencies of the rotary embedding: what the definitions say of their borders. Whole models with each scaling are
//! compared with the reference elsewhere.

use yirage_model::rope::{Dynamic, Frequencies, LongerSequences, score_factor};
use yirage_model::{FrequencyDivisors, RopeConfig, RopeScaling};

fn config(scaling: RopeScaling) -> RopeConfig {
    RopeConfig { theta: 10_000.0, scaling, partial_rotary_factor: 1.0 }
}

fn plain() -> Vec<f64> {
    Frequencies::new(&config(RopeScaling::Default), 64, None).per_position
}

fn yarn(factor: f64) -> RopeScaling {
    RopeScaling::Yarn {
        factor,
        original: 256,
        beta_fast: 32.0,
        beta_slow: 1.0,
        attention_factor: None,
        mscale: None,
        mscale_all_dim: None,
        truncate: true,
    }
}

#[test]
fn frequencies_fall_from_one_by_powers_of_the_base() {
    let f = plain();
    assert_eq!((f.len(), f[0]), (32, 1.0));
    assert!((f[16] - 0.01).abs() < 1e-15, "the middle pair turns by the root of the base");
}

#[test]
fn dynamic_scaling_begins_beyond_the_original_context() {
    let longer = LongerSequences::Ntk { theta: 10_000.0, factor: 4.0, rotary: 64 };
    let dynamic = Dynamic { original: 512, longer };
    let at = |length| dynamic.frequencies(length).per_position;
    assert_eq!(at(1), plain());
    assert_eq!(at(512), plain());
    // At twice the context the base grows by (4 * 2 - 3)^(64 / 62).
    let base: f64 = 10_000.0 * 5f64.powf(64.0 / 62.0);
    assert!((at(1024)[31] / base.powf(-62.0 / 64.0) - 1.0).abs() < 1e-12);
    assert_eq!(at(1024)[0], 1.0);
    assert_eq!([3, 512, 513].map(|positions| dynamic.rotated_for(positions)), [None, None, Some(513)]);
}

#[test]
fn longrope_has_two_sets_of_frequencies() {
    let stated = |values: &[f64]| FrequencyDivisors::Stated { key: "k".into(), values: values.to_vec() };
    let scaling = RopeScaling::LongRope {
        short: stated(&[1.0, 2.0]),
        long: stated(&[4.0, 8.0]),
        original: 16,
        attention_factor: 1.25,
    };
    let of = |divisors: &[f64]| Frequencies::new(&config(scaling.clone()), 4, Some(divisors));
    let (short, long) = (of(&[1.0, 2.0]), of(&[4.0, 8.0]));
    assert_eq!((&short.per_position[..], short.factor), (&[1.0, 0.005][..], 1.25));
    let longer = LongerSequences::LongRope { short: short.clone(), long: long.clone() };
    let dynamic = Dynamic { original: 16, longer };
    assert_eq!([1, 16, 17, 400].map(|n| dynamic.frequencies(n) == long), [false, false, true, true]);
    assert_eq!(dynamic.frequencies(16), short);
    assert_eq!([16, 17, 400].map(|n| dynamic.rotated_for(n)), [None, Some(17), Some(17)], "all longer ones are alike");
}

#[test]
fn llama3_scaling_keeps_fast_pairs_and_divides_slow_ones() {
    let scaling = RopeScaling::Llama3 { factor: 8.0, low_freq_factor: 1.0, high_freq_factor: 4.0, original: 8192 };
    let f = Frequencies::new(&config(scaling), 64, None).per_position;
    let turns = |f: f64| 8192.0 * f / std::f64::consts::TAU;
    for (scaled, plain) in f.iter().zip(plain()) {
        match turns(plain) {
            t if t >= 4.0 => assert_eq!(*scaled, plain),
            t if t <= 1.0 => assert!((scaled * 8.0 / plain - 1.0).abs() < 1e-12),
            _ => assert!(*scaled < plain && *scaled > plain / 8.0),
        }
    }
}

#[test]
fn yarn_divides_only_slow_pairs_and_scales_the_tables() {
    let f = Frequencies::new(&config(yarn(4.0)), 64, None);
    assert!((f.factor - (1.0 + 0.1 * 4f64.ln())).abs() < 1e-15);
    assert_eq!(f.per_position[0], 1.0);
    assert!((f.per_position[31] * 4.0 / plain()[31] - 1.0).abs() < 1e-12);
    let (cos, sin) = f.tables(0..2);
    assert_eq!((cos.len(), sin[0]), (64, 0.0));
    assert_eq!(cos[0], f.factor as f32);
    let none = Frequencies::new(&config(yarn(1.0)), 64, None);
    assert_eq!(none.factor, 1.0);
    assert!(none.per_position.iter().zip(plain()).all(|(a, b)| (a / b - 1.0).abs() < 1e-12));
}

#[test]
fn score_factors_belong_to_yarn_with_a_weight_for_all_dimensions() {
    assert_eq!(score_factor(&RopeScaling::Default), 1.0);
    assert_eq!(score_factor(&yarn(4.0)), 1.0);
    let RopeScaling::Yarn { factor, original, beta_fast, beta_slow, .. } = yarn(40.0) else { unreachable!() };
    let deepseek = RopeScaling::Yarn {
        factor,
        original,
        beta_fast,
        beta_slow,
        attention_factor: None,
        mscale: Some(1.0),
        mscale_all_dim: Some(1.0),
        truncate: true,
    };
    // The published value for a factor of 40.
    assert!((score_factor(&deepseek) - 1.368_887_945_411_393_6_f64.powi(2)).abs() < 1e-12);
    assert_eq!(Frequencies::new(&config(deepseek), 64, None).factor, 1.0);
}

#[test]
fn odd_configurations_give_no_panic() {
    for theta in [1e-300, 1.0, 1e300] {
        for rotary in [0, 2, 4] {
            let config = RopeConfig { theta, scaling: yarn(1e300), partial_rotary_factor: 1.0 };
            let dynamic = Dynamic { original: 1, longer: LongerSequences::Ntk { theta, factor: 1e300, rotary } };
            for frequencies in [Frequencies::new(&config, rotary, None), dynamic.frequencies(100)] {
                let (cos, sin) = frequencies.tables(0..3);
                assert_eq!((cos.len(), sin.len()), (3 * rotary as usize / 2, 3 * rotary as usize / 2));
            }
        }
    }
}
