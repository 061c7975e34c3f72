//! Tiled regions in the interpreter: a race, a read of what nobody wrote and the like fail the step.
#![allow(clippy::print_stdout)] // says what it ran

use std::sync::Arc;
use yirage_conformance::Trouble;
use yirage_conformance::random::{
    RandomGraphVerdict, RandomTiledGraph, TiledComparison, TiledDemonstration, apart, numbers, with_random_inputs,
};
use yirage_hal::{Backend, Device, OpenOptions};
use yirage_ir::text;
use yirage_plan::DeviceLimits;
use yirage_sim::{Settings, Sim};

/// Regions by default; `YIRAGE_KERNEL_TILES` says another number.
const REGIONS: u64 = 300;

fn regions() -> u64 {
    std::env::var("YIRAGE_KERNEL_TILES").map_or(REGIONS, |n| n.parse().unwrap())
}

/// The first seed; `YIRAGE_KERNEL_FIRST` says another one, so that a long run can be cut into several.
fn first() -> u64 {
    std::env::var("YIRAGE_KERNEL_FIRST").map_or(0, |n| n.parse().unwrap())
}

/// An accelerator whose groups share so many bytes.
fn device(shared_bytes: u64) -> Arc<dyn Device> {
    let settings = Settings { seed: 5, memory: 256 << 20, ..Settings::with_interpreter() };
    let limits = DeviceLimits { block_bytes: Some(shared_bytes), ..settings.limits.clone() };
    Sim::with(Settings { limits, ..settings }).open(0, &OpenOptions::default()).unwrap().0
}

#[test]
fn random_regions_are_what_the_reference_says() {
    let device = device(32 << 10);
    let mut refused = 0;
    for seed in first()..first() + regions() {
        let drawn = RandomTiledGraph::of_seed(seed).unwrap();
        // Without tiles there are hundreds of kernels.
        let beside = if seed % 10 == 0 { TiledComparison::OpByOp } else { TiledComparison::Reference };
        match drawn.check(&*device, beside) {
            RandomGraphVerdict::Holds => {}
            RandomGraphVerdict::Refused(why) if why.contains("smaller tiles are wanted") => refused += 1,
            other => panic!("seed {seed}: {other:?}\n{}", text::print(&drawn.tiled.graph)),
        }
    }
    println!("{} regions hold, {refused} are too large", regions() - refused);
    assert!(refused * 20 < regions());
}

#[test]
fn demonstrations_are_their_plain_ops() {
    let device = device(32 << 10);
    for TiledDemonstration { name, tiled, plain, has_same_bytes } in TiledDemonstration::all().unwrap() {
        let wanted = plain.reference().unwrap();
        let made = tiled.run(&*device).unwrap_or_else(|why| panic!("{name}: {why:?}"));
        let far = apart(&numbers(&made[0]), &numbers(&wanted[0].data));
        assert!(far < 1e-5, "{name}: {far:e} from the reference of its plain ops");
        let alone = plain.run(&*device).unwrap_or_else(|why| panic!("{name}: {why:?}"));
        assert!(!has_same_bytes || made == alone, "{name}: other bytes than its plain ops");
    }
}

#[test]
fn outputs_of_16_bits_whose_blocks_share_words_are_packed_behind_them() {
    for (dtype, expr) in [("bf16", "cast.bf16(x0)"), ("f16", "cast.f16(x0)"), ("bool", "lt(x0, 0.25)")] {
        let graph = format!(
            "graph g {{ input %x: f32[5, 9] %y = region tiled{{grid=\"[3, 5, 1]\", loops=1, ins=\"[1 0 -]\",
             outs=\"[1 0 -]\", accumulate=\"[]\", running=\"[]\", reads=\"[0]\"}}(%x): {dtype}[5, 9]
             graph body {{ input %x: f32[1, 3] }} graph block {{ input %x: f32[1, 3]
             %y = map{{expr=\"{expr}\"}}(%x): {dtype}[1, 3] output %y }}
             %z = map{{expr=\"cast.f32(x0)\"}}(%y): f32[5, 9] output %z }}"
        );
        let setup = with_random_inputs(text::parse(&graph).unwrap(), 3);
        let made = setup.run(&*device(32 << 10)).unwrap_or_else(|why| panic!("{dtype}: {why:?}"));
        assert_eq!(made[0], setup.reference().unwrap()[0].data, "{dtype}");
    }
}

#[test]
fn a_block_that_is_too_large_is_refused_with_the_numbers() {
    let graph = "graph g { input %x: f32[128, 128] %y = region tiled{grid=\"[1, 1, 1]\", loops=1, ins=\"[- - -]\",
         outs=\"[- - -]\", accumulate=\"[]\", running=\"[]\", reads=\"[0]\"}(%x): f32[128, 128]
         graph body { input %x: f32[128, 128] } graph block { input %x: f32[128, 128]
         %y = map{expr=\"exp(x0)\"}(%x): f32[128, 128] output %y } output %y }";
    let setup = with_random_inputs(text::parse(graph).unwrap(), 1);
    let refused = setup.run(&*device(16 << 10)).unwrap_err();
    let Trouble::Refused(why) = refused else { panic!("{refused:?}") };
    assert!(why.contains("a block of [1, 1, 1] takes 131072 bytes, kir/kernels@1 has 16384"), "{why}");
}
