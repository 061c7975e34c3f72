//! What replay saves, as a table for people. No test looks at a time.
#![allow(clippy::unwrap_used, clippy::print_stdout)] // a test may stop at anything unexpected, and prints its table

mod support;

use std::time::Instant;
use support::{block, bound, cpu, inputs, tokens};
use yirage_call::Array;
use yirage_hal::{Limit, Roofline};
use yirage_plancache::{BoundGraph, CacheOptions, Mode, PlanCache, PlanFolder};

const ROUNDS: usize = 200;

/// The median of the times of `rounds` calls, in microseconds, after a few that are not counted.
fn median(rounds: usize, mut call: impl FnMut()) -> f64 {
    (0..rounds / 10).for_each(|_| call());
    let mut times: Vec<f64> = (0..rounds)
        .map(|_| {
            let began = Instant::now();
            call();
            began.elapsed().as_secs_f64() * 1e6
        })
        .collect();
    times.sort_by(f64::total_cmp);
    times[times.len() / 2]
}

fn once(call: impl FnOnce()) -> f64 {
    let began = Instant::now();
    call();
    began.elapsed().as_secs_f64() * 1e6
}

/// Bytes that a call touches at least: weights, inputs and outputs once.
fn bytes(graph: &BoundGraph, ins: &[Array], outs: &[Array]) -> u64 {
    let weights = support::weights(graph.graph(), 77);
    let all = weights.iter().map(|(_, array)| array).chain(ins).chain(outs);
    all.map(|array| array.bytes().len() as u64).sum()
}

#[test]
#[ignore = "measures: run it by itself with --nocapture, on a quiet machine"]
fn replay_beside_native() {
    let device = cpu();
    let graph = bound(block());
    let folder = tempfile::tempdir().unwrap();
    let with_folder =
        || CacheOptions { folder: Some(PlanFolder::new(folder.path().into(), 1 << 24)), ..CacheOptions::default() };
    let mut roofline = Roofline::new(&*device, vec![Limit::MemoryRead]).unwrap();
    println!(
        "| tokens | mode | first µs | first, plan from a file µs | later µs | share of native | least µs by bandwidth |"
    );
    println!("|---|---|---|---|---|---|---|");
    for n in [1, 16] {
        let ins = inputs(graph.graph(), &tokens(n), 1);
        let cache = PlanCache::new(device.clone(), with_folder());
        let call = |cache: &PlanCache, mode| cache.call(&graph, &ins, mode).unwrap();
        let native = median(ROUNDS, || drop(call(&cache, Mode::Native)));
        let outs = call(&cache, Mode::Native).outputs;
        let least = bytes(&graph, &ins, &outs) as f64 / roofline.read().unwrap().get(Limit::MemoryRead).unwrap() * 1e6;
        println!("| {n} | native | | | {native:.0} | 1.00 | {least:.1} |");
        for mode in [Mode::GraphReplay, Mode::Fusion] {
            let first = once(|| drop(call(&cache, mode)));
            let other = PlanCache::new(device.clone(), with_folder());
            let read = once(|| drop(call(&other, mode)));
            assert_eq!(other.stats().read, 1);
            let later = median(ROUNDS, || drop(call(&cache, mode)));
            let share = later / native;
            println!("| {n} | {mode} | {first:.0} | {read:.0} | {later:.0} | {share:.3} | {least:.1} |");
        }
    }
}
