//! Random graphs in the interpreter: unfused, each op is within its tolerance of its reference; fused, every output has the
//! same bytes.
#![allow(clippy::print_stdout)] // says what it ran

use yirage_conformance::random::{RandomGraph, RandomGraphVerdict};
use yirage_hal::{Backend, OpenOptions};
use yirage_sim::{Settings, Sim};

/// Graphs by default; `YIRAGE_KERNEL_GRAPHS` says another number.
const GRAPHS: u64 = 200;

fn graphs() -> u64 {
    std::env::var("YIRAGE_KERNEL_GRAPHS").map_or(GRAPHS, |n| n.parse().unwrap())
}

/// The first seed; `YIRAGE_KERNEL_FIRST` says another one, so that a long run can be cut into several.
fn first() -> u64 {
    std::env::var("YIRAGE_KERNEL_FIRST").map_or(0, |n| n.parse().unwrap())
}

#[test]
fn random_graphs_hold() {
    let sim = Sim::with(Settings { seed: 3, memory: 256 << 20, ..Settings::with_interpreter() });
    let (device, _) = sim.open(0, &OpenOptions::default()).unwrap();
    for seed in first()..first() + graphs() {
        let drawn = RandomGraph::of_seed(seed);
        match drawn.check(&*device) {
            RandomGraphVerdict::Holds => {}
            RandomGraphVerdict::Refused(why) => panic!("seed {seed}: refused: {why}\n{drawn}"),
            RandomGraphVerdict::Wrong(failure) => {
                let smallest = drawn.smallest(&*device);
                let again = smallest.check(&*device);
                panic!("seed {seed}: `{}`: {}\n{drawn}\nsmallest: {again:?}\n{smallest}", failure.value, failure.why);
            }
        }
    }
    println!("{} graphs hold", graphs());
}
