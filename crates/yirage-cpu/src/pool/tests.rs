//! Runs by some of a pool's workers.

use super::*;
use std::sync::atomic::AtomicUsize;

/// Teams follow each other in any order: each member runs once, by its rank, and barriers hold the team together.
#[test]
fn a_team_runs_by_its_ranks_and_the_others_do_not() {
    let pool = ThreadPool::new(4).unwrap();
    let left_out: [&[usize]; 7] = [&[], &[1], &[1, 2, 3], &[2, 3], &[], &[1, 3], &[3]];
    for left_out in left_out.into_iter().cycle().take(200) {
        let team = pool.all().without(left_out);
        let ran = [const { AtomicUsize::new(0) }; 4];
        let names: Vec<Mutex<String>> = (0..4).map(|_| Mutex::default()).collect();
        let body = |ctx: WorkerCtx<'_>| {
            ran[ctx.index].fetch_add(1, Ordering::Relaxed);
            *lock(&names[ctx.index]) = std::thread::current().name().unwrap_or_default().to_owned();
            for _ in 0..3 {
                ctx.barrier();
                assert_eq!(ctx.count, team.len());
                assert!(ran[..ctx.count].iter().all(|n| n.load(Ordering::Relaxed) == 1));
            }
        };
        pool.try_run_by(&team, body).unwrap();
        assert!(ran[team.len()..].iter().all(|n| n.load(Ordering::Relaxed) == 0));
        for (rank, worker) in team.members().iter().enumerate().skip(1) {
            assert_eq!(*lock(&names[rank]), format!("yirage-cpu-{worker}"));
        }
    }
}

#[test]
fn a_panic_in_a_team_frees_the_others_of_it() {
    let pool = ThreadPool::new(4).unwrap();
    let team = pool.all().without(&[1]);
    for bad in 0..3 {
        let result = pool.try_run_by(&team, |ctx| {
            assert!(ctx.index != bad, "planted");
            ctx.barrier();
        });
        assert!(matches!(result, Err(PoolError::Panicked { index, count: 3, .. }) if index == bad), "{result:?}");
        pool.run(|ctx| ctx.barrier());
    }
}

/// Those that slept through other workers' runs wake for their own.
#[test]
fn who_was_left_out_for_long_takes_part_again() {
    let pool = ThreadPool::new(3).unwrap();
    let (some, hits) = (pool.all().without(&[2]), AtomicUsize::new(0));
    for _ in 0..3 {
        for _ in 0..2000 {
            pool.try_run_by(&some, |_| {}).unwrap();
        }
        pool.run(|ctx| {
            hits.fetch_add(1, Ordering::Relaxed);
            ctx.barrier();
        });
    }
    assert_eq!(hits.into_inner(), 9);
}

#[cfg(target_os = "linux")]
#[test]
fn threads_have_numbers_of_their_own() {
    let pool = ThreadPool::new(3).unwrap();
    let threads = pool.threads();
    let seen = Mutex::new(Vec::new());
    pool.run(|ctx| lock(&seen).push((ctx.index, this_thread())));
    let mut seen = lock(&seen);
    seen.sort_unstable();
    assert_eq!(seen[1..].iter().map(|(_, thread)| *thread).collect::<Vec<_>>(), threads);
}
