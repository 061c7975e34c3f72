//! Random graphs: each op is within its tolerance of its reference.

use crate::support::{device, machine};
use yirage_conformance::random::{RandomGraph, RandomGraphVerdict};
use yirage_npu::NpuVendor;

for_every_maker! {
    random_graphs_hold,
}

/// Graphs by default; `YIRAGE_KERNEL_GRAPHS` says another number.
const GRAPHS: u64 = 200;

fn random_graphs_hold(vendor: NpuVendor) {
    let graphs = std::env::var("YIRAGE_KERNEL_GRAPHS").map_or(GRAPHS, |n| n.parse().unwrap());
    let (machine, backend) = machine(vendor, &[]);
    let device = device(&backend);
    for seed in 0..graphs {
        let drawn = RandomGraph::of_seed(seed);
        match drawn.check(&*device) {
            RandomGraphVerdict::Holds => {}
            RandomGraphVerdict::Refused(why) => panic!("seed {seed}: refused: {why}\n{drawn}"),
            RandomGraphVerdict::Wrong(failure) => panic!("seed {seed}: `{}`: {}\n{drawn}", failure.value, failure.why),
        }
    }
    println!("{graphs} graphs hold, {:?}", backend.counts());
    drop(device);
    assert!(machine.stats().is_clean(), "{:?}", machine.stats());
}
