//! What holds in every simulation. The mistakes in `mutants/` show that these tests notice what they are for.

use super::{Coverage, SchedSimDriver};

fn simulate(seed: u64, steps: u64) -> Coverage {
    judged(seed, steps, false)
}

fn judged(seed: u64, steps: u64, blind: bool) -> Coverage {
    let mut driver = SchedSimDriver::new(seed, blind);
    if let Err(what) = driver.run(steps) {
        panic!("seed {seed}: {what}");
    }
    driver.coverage
}

#[test]
fn hundreds_of_small_engines_keep_every_promise() {
    let mut sum = Coverage::default();
    for seed in 0..600 {
        let met = simulate(seed, 300);
        sum.steps += met.steps;
        sum.finished += met.finished;
        sum.preemptions += met.preemptions;
        sum.hit_tokens += met.hit_tokens;
        sum.resumed_with_hit += met.resumed_with_hit;
        sum.window_blocks_dropped += met.window_blocks_dropped;
        sum.cancelled_in_flight += met.cancelled_in_flight;
        sum.cancelled_waiting += met.cancelled_waiting;
        sum.rejected += met.rejected;
        sum.mixed_steps += met.mixed_steps;
        sum.all_rows += met.all_rows;
        sum.drafted += met.drafted;
        sum.accepted += met.accepted;
        sum.cancelled_in_run += met.cancelled_in_run;
        sum.outranked += met.outranked;
        sum.limited += met.limited;
    }
    eprintln!("{sum:?}");
    for (what, count, least) in [
        ("steps", sum.steps, 50_000),
        ("finished requests", sum.finished, 5_000),
        ("preemptions", sum.preemptions, 1_000),
        ("tokens served by prefix hits", sum.hit_tokens, 50_000),
        ("resumptions with a prefix hit", sum.resumed_with_hit, 100),
        ("dropped window blocks in tables", sum.window_blocks_dropped, 1_000),
        ("cancellations in flight", sum.cancelled_in_flight, 300),
        ("cancellations while waiting", sum.cancelled_waiting, 300),
        ("rejections", sum.rejected, 300),
        ("steps with prefill and decode", sum.mixed_steps, 3_000),
        ("rows beside the last", sum.all_rows, 3_000),
        ("drafted tokens", sum.drafted, 50_000),
        ("accepted drafts", sum.accepted, 30_000),
        ("cancellations within a run", sum.cancelled_in_run, 300),
        ("first sequences outranked by more urgent ones", sum.outranked, 300),
        ("steps with all the prompt that decodes allow", sum.limited, 300),
    ] {
        assert!(count >= least, "only {count} {what}; the simulation no longer covers them");
    }
}

/// The device's reads are an oracle of their own: most mistakes of the cache show there when the bookkeeping's checker is
/// never asked. (Not those that corrupt reference counts, which stop at an arithmetic check first, nor early publishing,
/// which only misleads when its owner vanishes between two steps.)
#[test]
fn the_device_alone_sees_nothing_wrong() {
    for seed in 0..200 {
        judged(seed, 200, true);
    }
}

#[test]
fn ten_thousand_steps_on_one_engine() {
    for seed in [1_000_003, 1_000_033] {
        let met = simulate(seed, 10_000);
        assert!(met.steps > 1_000, "{met:?}");
    }
}

#[test]
fn the_same_commands_give_the_same_batches() {
    for seed in 0..40 {
        assert_eq!(simulate(seed, 200), simulate(seed, 200), "seed {seed}");
    }
    assert_ne!(simulate(1, 200).trace, simulate(2, 200).trace);
}
