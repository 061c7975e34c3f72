//! Any bytes as a graph: what must hold of every graph holds of it on the CPU, in guarded memory. Shared by the fuzz target
//! and the test that replays its corpus.

use std::sync::{Arc, LazyLock};
use yirage_conformance::random::{RandomGraph, RandomGraphVerdict};
use yirage_hal::{Backend, Device, OpenOptions};

static CPU: LazyLock<Arc<dyn Device>> = LazyLock::new(|| {
    let options = OpenOptions { threads: Some(1), guarded: true, ..OpenOptions::default() };
    yirage_cpu::Cpu.open(0, &options).map(|(device, _)| device).unwrap_or_else(|e| panic!("no CPU: {e}"))
});

/// Draws a graph and checks it.
pub(crate) fn run(data: &[u8]) {
    let drawn = RandomGraph::of_bytes(data);
    if let RandomGraphVerdict::Wrong(failure) = drawn.check(&**CPU) {
        panic!("`{}`: {}\n{drawn}", failure.value, failure.why);
    }
}
