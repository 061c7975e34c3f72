//! 64 callers at once for as long as is asked: cancels, deadlines, priorities, keys, grammars and guesses. Every answer is
//! that of its request alone, memory stays flat, and nothing is left behind.
//!
//! `YIRAGE_SOAK_SECONDS` says how long on each device; a few seconds by default. A program of its own: what is looked
//! at is the memory of all of it.
#![allow(clippy::unwrap_used, clippy::print_stdout)] // a test may stop at anything unexpected, and says what it ran

#[path = "suite/support/mod.rs"]
mod support;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};
use support::{Heard, Recipe, hear, loaded, on_cpu, on_sim, recipes};
use yirage_engine::scheduler::FinishReason;
use yirage_engine::{CacheSize, EngineOptions};
use yirage_hal::Device;
use yirage_session::{Job, ModelHandle};
use yirage_testkit::rng::Rng;

const CALLERS: u64 = 64;
/// Parts of the time, after each of which memory is looked at.
const PARTS: u64 = 12;

fn seconds() -> u64 {
    std::env::var("YIRAGE_SOAK_SECONDS").map_or(3, |n| n.parse().unwrap())
}

/// Bytes of memory that the process has in use; none where the system does not say.
fn resident() -> Option<u64> {
    let pages = std::fs::read_to_string("/proc/self/statm").ok()?;
    Some(4096 * pages.split(' ').nth(1)?.parse::<u64>().ok()?)
}

/// How many answers there were.
#[derive(Default)]
struct Counts {
    whole: AtomicU64,
    cut: AtomicU64,
    left: AtomicU64,
}

/// One caller, until the time is over.
fn call(model: &ModelHandle, all: &[(Recipe, Heard)], mut rng: Rng, end: Instant, counts: &Counts) {
    while Instant::now() < end {
        let (recipe, wanted) = &all[rng.below(all.len() as u64) as usize];
        let in_time = Instant::now() + Duration::from_millis(rng.below(40));
        let job = Job { deadline: (rng.below(6) == 0).then_some(in_time), ..recipe.job() };
        let mut answer = model.submit(job).unwrap();
        match rng.below(8) {
            0 => {
                // The caller goes away.
                let _ = answer.next_within(Duration::from_millis(rng.below(20)));
                counts.left.fetch_add(1, Ordering::Relaxed);
                continue;
            }
            1 => answer.cancel(),
            _ => {}
        }
        let heard = hear(answer);
        let ends = [FinishReason::Cancelled, FinishReason::Deadline].map(|end| format!("{end:?}"));
        if ends.contains(&heard.end) {
            assert!(wanted.tokens.starts_with(&heard.tokens), "{:?}: {heard:?}, alone {wanted:?}", recipe.request);
            counts.cut.fetch_add(1, Ordering::Relaxed);
        } else {
            assert_eq!(heard, *wanted, "{:?}", recipe.request);
            counts.whole.fetch_add(1, Ordering::Relaxed);
        }
    }
}

fn soak(name: &str, device: Arc<dyn Device>, alone: Arc<dyn Device>) {
    let solo =
        loaded(alone, &EngineOptions { max_seqs: 1, prefix_cache: false, ..support::options() }).start().unwrap();
    let recipes = recipes(&mut Rng::new(64), 48);
    let with_alone = |recipe: Recipe| {
        let heard = hear(solo.submit(recipe.job()).unwrap());
        (recipe, heard)
    };
    let all: Vec<(Recipe, Heard)> = recipes.into_iter().map(with_alone).collect();
    drop(solo);
    // A dozen sequences take far more than the cache holds, so that they make way for one another all the time.
    let options = EngineOptions {
        context: Some(128),
        max_seqs: 12,
        chunk: 24,
        cache: CacheSize::Sequences(1),
        speculation: support::guessing(),
        ..support::options()
    };
    let model = loaded(device.clone(), &options).start().unwrap();
    let counts = Counts::default();
    let run = |seed: u64, time: Duration| {
        let end = Instant::now() + time;
        std::thread::scope(|scope| {
            for caller in 0..CALLERS {
                let (model, all, counts) = (&model, &all, &counts);
                scope.spawn(move || call(model, all, Rng::new(seed * 1000 + caller), end, counts));
            }
        });
    };
    let mut held = Vec::new();
    for part in 0..PARTS {
        run(part, Duration::from_secs(seconds()) / PARTS as u32);
        held.push(resident());
    }
    let stats = model.between_steps(|engine| engine.stats()).unwrap();
    let Counts { whole, cut, left } = &counts;
    println!("{name}: {whole:?} whole, {cut:?} cut, {left:?} left alone; {stats:?}; bytes {held:?}");
    // In a few seconds allocators are still growing.
    let (before, after) = (held[held.len() / 3], held[held.len() - 1]);
    if let (Some(before), Some(after)) = (before.filter(|_| seconds() >= 60), after) {
        assert!(after <= before + before / 50, "memory grew from {before} to {after} bytes");
    }
    assert_eq!(model.open_jobs(), 0);
    let engine = model.stop().unwrap().engine;
    assert!(stats.preemptions > 0 && stats.drafted > 0 && stats.prefix_hit > 0, "{stats:?}");
    drop(engine);
    let after = device.memory();
    assert_eq!((after.weights.used, after.cache.used, after.arena.used), (0, 0, 0), "{after:?}");
}

#[test]
fn on_the_processor() {
    soak("cpu", on_cpu()(), on_cpu()());
}

#[test]
fn on_a_simulated_accelerator() {
    let open = on_sim();
    soak("sim", open(), open());
}
