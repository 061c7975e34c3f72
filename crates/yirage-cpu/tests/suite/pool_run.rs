//! The worker pool: every worker runs, barriers order memory, panics and drops do not hang.

use std::sync::atomic::{AtomicU32, AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;
use yirage_cpu::pool::{PoolError, ThreadPool};

#[test]
fn every_worker_runs_once_a_run() {
    for count in 1..=8 {
        let pool = ThreadPool::new(count).unwrap();
        let hits: Vec<AtomicUsize> = (0..count).map(|_| AtomicUsize::new(0)).collect();
        for _ in 0..200 {
            pool.run(|ctx| {
                assert_eq!(ctx.count, count);
                hits[ctx.index].fetch_add(1, Ordering::Relaxed);
            });
        }
        assert!(hits.iter().all(|h| h.load(Ordering::Relaxed) == 200), "{count}: {hits:?}");
    }
}

/// Each worker writes its cell, all read all cells after the barrier.
fn phases(count: usize, rounds: u32) {
    let pool = ThreadPool::new(count).unwrap();
    let cells: Vec<AtomicU32> = (0..count).map(|_| AtomicU32::new(0)).collect();
    pool.run(|ctx| {
        for round in 1..=rounds {
            cells[ctx.index].store(round, Ordering::Relaxed);
            ctx.barrier();
            assert!(cells.iter().all(|c| c.load(Ordering::Relaxed) == round));
            ctx.barrier();
        }
    });
}

#[test]
fn a_hundred_thousand_barriers() {
    phases(2, 50_000);
}

#[test]
fn barriers_advance_when_oversubscribed() {
    phases(1, 1000);
    phases(3, 300);
    phases(8, 100);
}

#[test]
fn barriers_stay_in_step_over_runs() {
    let pool = ThreadPool::new(3).unwrap();
    let sum = AtomicU64::new(0);
    for _ in 0..300 {
        pool.run(|ctx| {
            sum.fetch_add(1, Ordering::Relaxed);
            ctx.barrier();
            assert_eq!(sum.load(Ordering::Relaxed) % 3, 0);
            ctx.barrier();
        });
    }
    assert_eq!(sum.load(Ordering::Relaxed), 900);
}

#[test]
fn a_panic_frees_those_who_wait_and_reaches_the_caller() {
    let pool = ThreadPool::new(4).unwrap();
    for bad in 0..4 {
        let result = pool.try_run(|ctx| {
            assert!(ctx.index != bad, "worker {bad} fails");
            ctx.barrier();
            unreachable!("the barrier cannot be passed");
        });
        match result {
            Err(PoolError::Panicked { index, count: 4, message }) => {
                assert_eq!((index, message), (bad, format!("worker {bad} fails")));
            }
            other => panic!("{other:?}"),
        }
        // The pool is whole again, its barrier too.
        let passed = AtomicUsize::new(0);
        pool.run(|ctx| {
            ctx.barrier();
            ctx.barrier();
            passed.fetch_add(1, Ordering::Relaxed);
        });
        assert_eq!(passed.load(Ordering::Relaxed), 4);
    }
    let caught =
        std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| pool.run(|ctx| assert!(ctx.index != 2, "two"))));
    assert!(caught.is_err());
    pool.run(|ctx| ctx.barrier());
}

#[test]
fn panics_between_barriers() {
    let pool = ThreadPool::new(3).unwrap();
    for at in 0..20 {
        let result = pool.try_run(|ctx| {
            for round in 0..20 {
                assert!(round != at || ctx.index != at % 3);
                ctx.barrier();
            }
        });
        assert!(matches!(result, Err(PoolError::Panicked { .. })), "{at}: {result:?}");
    }
    pool.run(|ctx| ctx.barrier());
}

#[test]
fn sleeping_workers_wake_and_end() {
    let pool = ThreadPool::new(3).unwrap();
    let hits = AtomicUsize::new(0);
    for _ in 0..5 {
        // Long enough for the workers to fall asleep.
        std::thread::sleep(Duration::from_millis(30));
        pool.run(|ctx| {
            hits.fetch_add(1, Ordering::Relaxed);
            ctx.barrier();
        });
    }
    assert_eq!(hits.load(Ordering::Relaxed), 15);
    std::thread::sleep(Duration::from_millis(30));
    drop(pool);
    drop(ThreadPool::new(8).unwrap());
}

#[test]
fn threads_share_a_pool_by_turns() {
    let pool = ThreadPool::new(2).unwrap();
    let inside = AtomicUsize::new(0);
    std::thread::scope(|s| {
        for _ in 0..4 {
            s.spawn(|| {
                for _ in 0..100 {
                    pool.run(|ctx| {
                        inside.fetch_add(1, Ordering::SeqCst);
                        ctx.barrier();
                        assert_eq!(inside.load(Ordering::SeqCst), 2);
                        ctx.barrier();
                        inside.fetch_sub(1, Ordering::SeqCst);
                        ctx.barrier();
                    });
                }
            });
        }
    });
}

#[test]
fn misuse_is_told() {
    assert!(matches!(ThreadPool::new(0), Err(PoolError::Count(0))));
    assert!(matches!(ThreadPool::new(5000), Err(PoolError::Count(5000))));
    let (a, b) = (ThreadPool::new(2).unwrap(), ThreadPool::new(2).unwrap());
    a.run(|_| {
        assert!(matches!(a.try_run(|_| {}), Err(PoolError::Nested)));
        assert!(matches!(b.try_run(|_| {}), Err(PoolError::Nested)));
    });
    let allowed = yirage_cpu::pool::allowed_cpus().map_or(0, |c| c.len());
    let large = ThreadPool::new(allowed + 1).unwrap();
    assert!(large.pinning_refused().is_some());
    assert!(large.pin_caller().is_err());
}
