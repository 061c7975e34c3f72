//! Random tiled regions: each is what it is without tiles, by the reference and on the CPU, with any number of workers.
#![allow(clippy::print_stdout)] // says what it ran

use std::sync::Arc;
use yirage_compile::{CompileOptions, compile, plan_weights};
use yirage_conformance::random::{
    RandomTiledGraph, TiledDemonstration, apart, numbers, plain_attention, with_random_inputs,
};
use yirage_conformance::{GraphSetup, Trouble};
use yirage_cpu::Cpu;
use yirage_hal::reference::Reference;
use yirage_hal::{Backend, Device, OpenOptions};
use yirage_ir::tensor::Data;
use yirage_ir::{Graph, Node, NodeKind, Tensor, text, verify};

/// Regions by default; `YIRAGE_RANDOM_TILES` says another number.
const REGIONS: u64 = 2_000;

fn regions() -> u64 {
    std::env::var("YIRAGE_RANDOM_TILES").map_or(REGIONS, |n| n.parse().unwrap())
}

fn graph_text(drawn: &RandomTiledGraph) -> String {
    text::print(&drawn.tiled.graph)
}

#[test]
fn regions_are_sound_and_round_trip() {
    let (mut own, mut kept) = (0, 0);
    for seed in 0..regions() {
        let drawn = RandomTiledGraph::of_seed(seed).unwrap_or_else(|e| panic!("seed {seed}: {e}"));
        for graph in [&drawn.tiled.graph, &drawn.plain.graph] {
            verify(graph).unwrap_or_else(|e| panic!("seed {seed}: {e}\n{}", graph_text(&drawn)));
        }
        let again: Graph =
            text::parse(&graph_text(&drawn)).unwrap_or_else(|e| panic!("seed {seed}: {e}\n{}", graph_text(&drawn)));
        assert_eq!(text::print(&again), graph_text(&drawn), "seed {seed}");
        *(if drawn.keeps_order { &mut kept } else { &mut own }) += 1;
    }
    println!("{kept} regions keep the order of additions, {own} have one of their own");
    assert!(kept * 10 > regions() && own * 10 > regions());
}

#[test]
fn the_reference_means_what_is_without_tiles() {
    for seed in 0..regions() {
        let drawn = RandomTiledGraph::of_seed(seed).unwrap();
        let (tiled, plain) = (drawn.tiled.reference().unwrap(), drawn.plain.reference().unwrap());
        for (t, p) in tiled.iter().zip(&plain) {
            let all = |t: &Tensor| t.scalars().into_iter().map(|x| x.as_f64()).collect::<Vec<_>>();
            let far = apart(&all(t), &all(p));
            let bound = if drawn.keeps_order { 0.0 } else { drawn.tolerance() };
            assert!(far <= bound, "seed {seed}: {far:e} apart, {bound:e} allowed\n{}", graph_text(&drawn));
        }
    }
}

fn open(backend: &dyn Backend, threads: usize) -> Arc<dyn Device> {
    backend.open(0, &OpenOptions { threads: Some(threads), ..OpenOptions::default() }).unwrap().0
}

/// What a device gives, by all its executors, which [`GraphSetup::run_in`] compares; none where a block has no room in its
/// caches.
fn run(setup: &GraphSetup, device: &dyn Device, fuse: bool, what: &str) -> Option<Vec<Data>> {
    let options = CompileOptions::new(setup.precision);
    let options = if fuse { options } else { options.unfused() };
    match setup.run_in(device, setup.dims, &options) {
        Ok(made) => Some(made),
        Err(Trouble::Refused(why)) if why.contains("smaller tiles are wanted") => None,
        Err(Trouble::Refused(why) | Trouble::Failed(why)) => panic!("{what}: {why}\n{}", text::print(&setup.graph)),
    }
}

fn bits(data: &Data) -> Vec<u32> {
    match data {
        Data::F32(x) => x.iter().map(|x| if x.is_nan() { f32::NAN.to_bits() } else { x.to_bits() }).collect(),
        Data::I32(x) => x.iter().map(|&x| x as u32).collect(),
        other => panic!("{other:?}"),
    }
}

#[test]
fn the_reference_device_runs_them() {
    let device = open(&Reference::new(), 1);
    for seed in 0..regions() / 10 {
        let drawn = RandomTiledGraph::of_seed(seed).unwrap();
        let made = run(&drawn.tiled, &*device, seed % 2 == 0, &format!("seed {seed}")).unwrap();
        for (made, wanted) in made.iter().zip(drawn.tiled.reference().unwrap()) {
            assert_eq!(bits(made), bits(&wanted.data), "seed {seed}\n{}", graph_text(&drawn));
        }
    }
}

/// Every region has the bytes of its graph without tiles: one worker and another number of them, fused and not.
#[test]
fn the_cpu_gives_the_bytes_of_what_is_without_tiles() {
    let devices: Vec<Arc<dyn Device>> = (1..=8).map(|threads| open(&Cpu, threads)).collect();
    let mut without_room = 0;
    for seed in 0..regions() {
        let drawn = RandomTiledGraph::of_seed(seed).unwrap();
        let plain = run(&drawn.plain, &*devices[0], false, &format!("seed {seed}, plain")).unwrap();
        let reference = drawn.plain.reference().unwrap();
        for (p, r) in plain.iter().zip(&reference) {
            let far = apart(&numbers(p), &numbers(&r.data));
            assert!(far <= drawn.tolerance(), "seed {seed}: {far:e} from the reference\n{}", graph_text(&drawn));
        }
        for (workers, fuse) in [(1, true), (1, false), (2 + seed as usize % 7, true)] {
            let what = format!("seed {seed}, {workers} workers, fused {fuse}");
            let Some(made) = run(&drawn.tiled, &*devices[workers - 1], fuse, &what) else {
                without_room += 1;
                continue;
            };
            for (made, plain) in made.iter().zip(&plain) {
                let differs = bits(made).iter().zip(&bits(plain)).position(|(a, b)| a != b);
                if let Some(at) = differs {
                    let (a, b) = (numbers(made)[at], numbers(plain)[at]);
                    panic!("{what}: element {at} is {a}, {b} without tiles\n{}", graph_text(&drawn));
                }
            }
        }
    }
    println!("{without_room} runs of {} had no room in the caches", 3 * regions());
    assert!(without_room * 20 < 3 * regions());
}

/// Attention in plain ops is one region without its scores, and has the bytes of its ops one by one: by the reference, with
/// any number of workers and by all executors.
#[test]
fn plain_attention_has_the_bytes_of_its_ops() {
    let devices: Vec<Arc<dyn Device>> = (1..=8).map(|threads| open(&Cpu, threads)).collect();
    let (mut regions, all) = (0, regions() / 5);
    for seed in 0..all {
        let setup = plain_attention(seed).unwrap_or_else(|e| panic!("seed {seed}: {e}"));
        let plain = run(&setup, &*devices[0], false, &format!("seed {seed}, plain")).unwrap();
        let narrow = text::print(&setup.graph).contains("f16");
        for (p, r) in plain.iter().zip(&setup.reference().unwrap()) {
            let (far, bound) = (apart(&numbers(p), &numbers(&r.data)), if narrow { 0.05 } else { 2e-5 });
            assert!(far <= bound, "seed {seed}: {far:e} from the reference\n{}", text::print(&setup.graph));
        }
        let target = devices[1].target();
        let weights = plan_weights(&setup.graph, &target).unwrap();
        let plan = compile(&setup.graph, setup.dims, &target, &weights, &CompileOptions::new(setup.precision)).unwrap();
        let tiled = |node: &Node| matches!(&node.kind, NodeKind::Region(region) if region.tiled.is_some());
        regions += u64::from(plan.graph.nodes.iter().any(tiled));
        for workers in [1, 2 + seed as usize % 7] {
            let what = format!("seed {seed}, {workers} workers");
            let made = run(&setup, &*devices[workers - 1], true, &what).unwrap();
            for (made, plain) in made.iter().zip(&plain) {
                assert_eq!(bits(made), bits(plain), "{what}\n{}", text::print(&setup.graph));
            }
        }
    }
    println!("{regions} of {all} are one region");
    assert!(regions * 10 > all * 9);
}

#[test]
fn demonstrations_are_their_plain_ops() {
    let devices: Vec<Arc<dyn Device>> = (1..=8).map(|threads| open(&Cpu, threads)).collect();
    for TiledDemonstration { name, tiled, plain, has_same_bytes } in TiledDemonstration::all().unwrap() {
        let wanted = plain.reference().unwrap();
        let alone = run(&plain, &*devices[0], true, name).unwrap();
        let mut first: Option<Vec<u32>> = None;
        for device in &devices {
            for fuse in [true, false] {
                let made = run(&tiled, &**device, fuse, name).unwrap();
                let far = apart(&numbers(&made[0]), &numbers(&wanted[0].data));
                assert!(far < 1e-5, "{name}: {far:e} from the reference of its plain ops");
                assert!(!has_same_bytes || bits(&made[0]) == bits(&alone[0]), "{name}: other bytes");
                let bits = bits(&made[0]);
                assert_eq!(*first.get_or_insert(bits.clone()), bits, "{name}: bytes depend on workers or fusion");
            }
        }
    }
}

#[test]
fn a_block_that_is_too_large_is_refused_with_the_numbers() {
    let graph = "graph g { input %x: f32[1024, 1024] %y = region tiled{grid=\"[1, 1, 1]\", loops=1, ins=\"[- - -]\",
         outs=\"[- - -]\", accumulate=\"[]\", running=\"[]\", reads=\"[0]\"}(%x): f32[1024, 1024]
         graph body { input %x: f32[1024, 1024] } graph block { input %x: f32[1024, 1024]
         %y = map{expr=\"exp(x0)\"}(%x): f32[1024, 1024] output %y } output %y }";
    let setup = with_random_inputs(text::parse(graph).unwrap(), 1);
    let device = open(&Cpu, 1);
    let refused = setup.run(&*device).unwrap_err();
    let Trouble::Refused(why) = refused else { panic!("{refused:?}") };
    assert!(why.contains("a block of [1, 1, 1] takes 8388608 bytes, cpu/tiled@1 has "), "{why}");
    assert!(setup.run(&*open(&Reference::new(), 1)).is_ok());
}
