//! Random graphs on every backend that is here; on the CPU at every instruction-set level. Unfused, each op is within its
//! tolerance of its reference; fused, every output has the same bytes.
#![allow(clippy::print_stdout)] // says what it ran

use std::sync::Arc;
use yirage_conformance::random::{RandomGraph, RandomGraphVerdict};
use yirage_cpu_kernels::isa::Isa;
use yirage_hal::reference::Reference;
use yirage_hal::{Backend, Device, OpenOptions};
use yirage_ir::tensor::Data;
use yirage_ir::{Op, Tensor};
use yirage_testkit::skipped;

/// Graphs a level by default; `YIRAGE_RANDOM_GRAPHS` says another number.
const GRAPHS: u64 = 2_000;

fn graphs() -> u64 {
    std::env::var("YIRAGE_RANDOM_GRAPHS").map_or(GRAPHS, |n| n.parse().unwrap())
}

fn check(name: &str, device: &dyn Device) {
    for seed in 0..graphs() {
        let drawn = RandomGraph::of_seed(seed);
        match drawn.check(device) {
            RandomGraphVerdict::Holds => {}
            RandomGraphVerdict::Refused(why) => panic!("{name}, seed {seed}: refused: {why}\n{drawn}"),
            RandomGraphVerdict::Wrong(failure) => {
                let smallest = drawn.smallest(device);
                let again = smallest.check(device);
                panic!(
                    "{name}, seed {seed}: `{}`: {}\n{drawn}\nsmallest: {again:?}\n{smallest}",
                    failure.value, failure.why
                );
            }
        }
    }
    println!("{name}: {} graphs hold", graphs());
}

fn open(backend: &dyn Backend, options: &OpenOptions) -> Arc<dyn Device> {
    backend.open(0, options).unwrap().0
}

/// Every other element of a product is a little off.
fn faulty(op: &Op, ins: &[&Tensor]) -> Vec<Tensor> {
    let mut outs = op.eval(ins);
    if let (Op::Contract(_), Data::F32(values)) = (op, &mut outs[0].data) {
        values.iter_mut().skip(1).step_by(2).for_each(|x| *x *= 1.01);
    }
    outs
}

#[test]
fn a_planted_fault_is_found_and_made_small() {
    let device = open(&Reference::with(faulty), &OpenOptions::default());
    let wrong = |seed: &u64| matches!(RandomGraph::of_seed(*seed).check(&*device), RandomGraphVerdict::Wrong(_));
    let found: Vec<u64> = (0..300).filter(wrong).take(3).collect();
    assert_eq!(found.len(), 3, "found by {found:?}");
    for seed in found {
        let smallest = RandomGraph::of_seed(seed).smallest(&*device);
        assert!(matches!(smallest.check(&*device), RandomGraphVerdict::Wrong(_)), "seed {seed}");
        let nodes = &smallest.setup.graph.nodes;
        assert!(nodes.len() <= 3 && nodes.iter().any(|n| n.name() == "contract"), "seed {seed}: {smallest}");
    }
}

#[test]
fn reference() {
    check("reference", &*open(&Reference::new(), &OpenOptions::default()));
}

#[test]
fn cpu_at_every_level() {
    let (here, lacking): (Vec<Isa>, Vec<Isa>) = Isa::ALL.iter().partition(|isa| isa.available());
    lacking.iter().for_each(|isa| skipped::note(&format!("level {isa}"), "this processor lacks it"));
    let check_one = |isa: &Isa| {
        let options =
            OpenOptions { threads: Some(2), isa: Some(isa.name().into()), guarded: true, ..OpenOptions::default() };
        check(&format!("cpu {isa}"), &*open(&yirage_cpu::Cpu, &options));
    };
    // Most graphs are too small for two workers: two levels at a time keep two cores busy.
    std::thread::scope(|scope| {
        for half in 0..2 {
            let levels = here.iter().skip(half).step_by(2);
            scope.spawn(move || levels.for_each(check_one));
        }
    });
}
