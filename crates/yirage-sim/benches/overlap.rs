//! What the host costs beside a device that takes two milliseconds a step: one step at a time, and the next one submitted
//! before the tokens of the last are known.
//!
//! The share is the part of the time in which the device had nothing to do: `cargo bench -p yirage-sim --bench overlap`.
#![allow(clippy::unwrap_used, clippy::print_stdout)]

use std::time::{Duration, Instant};
use yirage_engine::{Engine, EngineOptions, Request};
use yirage_hal::{Backend, OpenOptions};
use yirage_model::Checkpoint;
use yirage_sim::{Settings, Sim};
use yirage_testkit::tiny;

const ROUNDS: usize = 5;
const TOKENS: u32 = 96;

/// Share of the time in which the device waited for the host, and steps that were submitted ahead, of all.
fn run(in_flight: usize, seqs: u32) -> (f64, u64, u64) {
    let sim = Sim::with(Settings { step: Duration::from_millis(2), in_flight, ..Settings::default() });
    let (device, _) = sim.open(0, &OpenOptions::default()).unwrap();
    let options = EngineOptions { context: Some(128), max_seqs: seqs, ..EngineOptions::default() };
    let checkpoint = Checkpoint::open(tiny::model(tiny::NAMES[0])).unwrap();
    let mut engine = Engine::load(&checkpoint, device, &options, &mut |_, _| {}).unwrap();
    for i in 0..seqs {
        engine.add(Request::greedy(vec![1 + i, 2, 3], TOKENS)).unwrap();
    }
    engine.step().unwrap();
    let (began, busy) = (Instant::now(), sim.busy()[0]);
    while !engine.is_idle() {
        engine.step().unwrap();
    }
    let (wall, busy) = (began.elapsed().as_secs_f64(), (sim.busy()[0] - busy).as_secs_f64());
    (1.0 - busy / wall, engine.stats().ahead, engine.stats().steps)
}

fn main() {
    println!("| sequences | steps in flight | device waits, median of {ROUNDS} (lowest to highest) | steps ahead |");
    println!("|---|---|---|---|");
    for seqs in [1, 8] {
        for in_flight in [1, 2, 3] {
            let mut shares: Vec<f64> = Vec::new();
            let (mut ahead, mut steps) = (0, 0);
            for _ in 0..ROUNDS {
                let share;
                (share, ahead, steps) = run(in_flight, seqs);
                shares.push(100.0 * share);
            }
            shares.sort_by(f64::total_cmp);
            let (low, mid, high) = (shares[0], shares[ROUNDS / 2], shares[ROUNDS - 1]);
            println!("| {seqs} | {in_flight} | {mid:.1} % ({low:.1} to {high:.1}) | {ahead} of {steps} |");
        }
    }
}
