//! The wait and signal protocol and the work list under a model checker: every order of their atomic accesses that the
//! memory model allows.
#![allow(dead_code)]

/// The atomics that the two files below use, as the checker's.
mod sync {
    pub(crate) use loom::sync::atomic::{AtomicU32, AtomicU64, Ordering};
}
#[path = "../../src/walk/counters.rs"]
mod counters;
#[path = "../../src/walk/list.rs"]
mod list;

use counters::SignalCounters;
use list::WorkList;
use loom::cell::UnsafeCell;
use loom::sync::Arc;
use loom::thread;

fn wait(counters: &SignalCounters, counter: u32, at_least: u32, run: u32) {
    let looked = counters.wait(counter, at_least, run, || {
        thread::yield_now();
        true
    });
    assert!(looked);
}

/// Two tasks signal one counter; who waits for both sees what both wrote, in the first run and in the next. Also where
/// that counter comes round within the first run or after it, and where the number of the run does.
#[test]
fn a_waiter_sees_what_all_signallers_wrote() {
    for run in [0, u32::MAX / 2 - 1, u32::MAX / 2, u32::MAX] {
        loom::model(move || both_are_seen_twice(run));
    }
}

fn both_are_seen_twice(run: u32) {
    let next = run.wrapping_add(1);
    let shared = Arc::new((SignalCounters::new(&[2, 1], run), UnsafeCell::new(0), UnsafeCell::new(0)));
    let writer = {
        let shared = shared.clone();
        thread::spawn(move || {
            let (counters, mine, _) = &*shared;
            // SAFETY: nobody reads before both have signalled.
            mine.with_mut(|x| unsafe { *x = 1 });
            counters.signal(0);
            // The second run: only after the reader is done with the first.
            wait(counters, 1, 1, run);
            mine.with_mut(|x| unsafe { *x += 10 });
            counters.signal(0);
        })
    };
    let (counters, theirs, mine) = &*shared;
    mine.with_mut(|x| unsafe { *x = 2 });
    counters.signal(0);
    wait(counters, 0, 2, run);
    // SAFETY: both have signalled.
    assert_eq!(theirs.with(|a| mine.with(|b| unsafe { (*a, *b) })), (1, 2));
    counters.signal(1);
    mine.with_mut(|x| unsafe { *x += 10 });
    counters.signal(0);
    wait(counters, 0, 2, next);
    assert_eq!(theirs.with(|a| mine.with(|b| unsafe { (*a, *b) })), (11, 12));
    writer.join().unwrap();
}

/// A diamond: one task forks to two workers, a join waits for both by their own counters.
#[test]
fn fork_and_join_by_a_counter_a_worker() {
    loom::model(|| {
        let shared = Arc::new((SignalCounters::new(&[2, 1], 0), UnsafeCell::new(0), UnsafeCell::new(0)));
        let other = {
            let shared = shared.clone();
            thread::spawn(move || {
                let (counters, source, side) = &*shared;
                wait(counters, 0, 1, 0);
                // SAFETY: the source was written before counter 0 was raised, and is not written again.
                let seen = source.with(|x| unsafe { *x });
                side.with_mut(|x| unsafe { *x = seen + 1 });
                counters.signal(1);
            })
        };
        let (counters, source, side) = &*shared;
        source.with_mut(|x| unsafe { *x = 7 });
        counters.signal(0);
        let mine = source.with(|x| unsafe { *x }) + 2;
        counters.signal(0);
        wait(counters, 1, 1, 0);
        wait(counters, 0, 2, 0);
        assert_eq!(mine + side.with(|x| unsafe { *x }), 17);
        other.join().unwrap();
    });
}

/// Every piece is taken by exactly one worker, whatever the order, and in the next run again.
#[test]
fn pieces_are_taken_once() {
    const TOTAL: usize = 5;
    loom::model(|| {
        let list = Arc::new(WorkList::new());
        let take = |list: Arc<WorkList>, worker: usize| {
            move || {
                let mut mine: Vec<(u32, usize)> = WorkList::first(TOTAL, worker, 2).map(|p| (1, p)).collect();
                while let Some(some) = list.take(1, TOTAL, 2) {
                    mine.extend(some.map(|p| (1, p)));
                }
                mine
            }
        };
        let other = thread::spawn(take(list.clone(), 1));
        let mut all = take(list.clone(), 0)();
        all.extend(other.join().unwrap());
        // The next run, by one worker of two and then the other.
        for worker in 0..2 {
            all.extend(WorkList::first(TOTAL, worker, 2).map(|p| (2, p)));
            while let Some(some) = list.take(2, TOTAL, 2) {
                all.extend(some.map(|p| (2, p)));
            }
        }
        all.sort_unstable();
        let want: Vec<(u32, usize)> = (1..3).flat_map(|run| (0..TOTAL).map(move |p| (run, p))).collect();
        assert_eq!(all, want);
    });
}
