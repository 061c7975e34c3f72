//! Programs by hand on real threads.

use super::*;
use std::sync::atomic::AtomicUsize;
use yirage_ir::rng::Rng;
use yirage_plan::{ExecutorKind, Wait};

fn task(step: u32, part: TaskPartition, waits: &[(u32, u32)], signals: u32) -> Task {
    let waits = waits.iter().map(|&(counter, at_least)| Wait { counter, at_least }).collect();
    Task { step, stage: 0, partition: part, waits, signals }
}

fn walker(steps: usize, tasks: Vec<Task>, queues: Vec<Vec<u32>>) -> Walker {
    let counters = tasks.iter().map(|t| t.signals + 1).max().unwrap_or(0);
    let program = TaskProgram { kind: ExecutorKind::Persistent, counters, tasks, queues };
    Walker::over(steps, 1, &program)
}

struct ClosureTasks<F>(F);

impl<F: Fn(&Task, StageWork<'_>) + Sync> Tasks for ClosureTasks<F> {
    unsafe fn run(&self, task: &Task, work: StageWork<'_>) {
        (self.0)(task, work);
    }
    fn waiting(&self, _: &Task, _: StageWork<'_>, _: u32) {}
}

/// Step 0 on worker 0, step 1 on both, step 2 on worker 1: fork and join, many times over.
fn fork_and_join() -> Walker {
    let share = |index| TaskPartition::Static { index, of: 2 };
    let one = TaskPartition::Static { index: 0, of: 1 };
    let tasks = vec![
        task(0, one, &[], 0),
        task(1, share(0), &[], 1),
        task(1, share(1), &[(0, 1)], 1),
        task(2, one, &[(1, 2)], 2),
    ];
    walker(3, tasks, vec![vec![0, 1], vec![2, 3]])
}

/// A walker as it stands after `runs` runs that all went well.
fn after(runs: u32, mut walker: Walker) -> Walker {
    walker.counters = SignalCounters::new(&walker.program.totals(), runs);
    walker.runs = runs;
    walker
}

/// Runs the fork and join `runs` times and checks what its last task sees. Nothing sets the counters back in between,
/// but for the walker itself where run numbers end.
fn forks_and_joins(pool: &ThreadPool, walker: &mut Walker, runs: usize) {
    // Plain memory: the counters alone order the accesses.
    struct Cells(std::cell::UnsafeCell<[usize; 4]>);
    // SAFETY: the program orders all accesses.
    unsafe impl Sync for Cells {}
    let cells = Cells(std::cell::UnsafeCell::new([0; 4]));
    for run in 1..=runs {
        let body = ClosureTasks(|task: &Task, work: StageWork<'_>| {
            let all = &cells;
            let at = all.0.get().cast::<usize>();
            // SAFETY: step 1 writes its own cell after step 0, step 2 after step 1.
            unsafe {
                match task.step {
                    0 => *at = run,
                    1 => {
                        let share = work.partition(2).start;
                        *at.add(1 + share) = *at + share;
                    }
                    _ => *at.add(3) = *at.add(1) + *at.add(2),
                }
            }
        });
        walker.run(pool, Some(pool.all()), &body).unwrap();
        // SAFETY: the run is over.
        assert_eq!(unsafe { (*cells.0.get())[3] }, 2 * run + 1, "run {run}");
    }
}

#[test]
fn what_came_before_is_seen_in_every_run() {
    let mut walker = fork_and_join();
    forks_and_joins(&ThreadPool::new(2).unwrap(), &mut walker, 100_000);
    assert_eq!(walker.runs, 100_000, "the counters counted on all the way");
}

/// One counter of the three gets two signals a run, so it comes round after 2^31 runs and the others after 2^32.
#[test]
fn what_came_before_is_seen_when_counters_come_round() {
    let pool = ThreadPool::new(2).unwrap();
    for (start, reached) in [(u32::MAX / 2 - 5_000, u32::MAX / 2 + 5_000), (u32::MAX - 5_001, 5_000)] {
        let mut walker = after(start, fork_and_join());
        forks_and_joins(&pool, &mut walker, 10_000);
        assert_eq!(walker.runs, reached, "run numbers end before {}, and begin again at 0", u32::MAX - 1);
    }
}

/// Work done by one thread alone leaves the counters at 0, so runs of both kinds follow each other freely.
#[test]
fn what_came_before_is_seen_after_runs_alone() {
    let pool = ThreadPool::new(2).unwrap();
    let mut walker = after(u32::MAX / 2, fork_and_join());
    for _ in 0..100 {
        walker.run(&pool, None, &ClosureTasks(|_: &Task, _: StageWork<'_>| {})).unwrap();
        assert_eq!(walker.runs, 0);
        forks_and_joins(&pool, &mut walker, 10);
    }
}

/// Random graphs on one to five threads, more of them than tasks at times, some of them left out: every task once, after
/// all that it needs.
#[test]
fn random_graphs_run_in_their_order() {
    let mut rng = Rng::new(1);
    let mut below = move |n: usize| rng.index(n);
    let pools: Vec<ThreadPool> = (1..=5).map(|n| ThreadPool::new(n).unwrap()).collect();
    for _ in 0..250 {
        let pool = &pools[below(pools.len())];
        let (workers, count) = (pool.count(), 1 + below(30));
        let (mut tasks, mut queues, mut needs) = (Vec::new(), vec![Vec::new(); workers], Vec::new());
        let mut places: Vec<(u32, u32)> = Vec::new();
        for t in 0..count {
            let needed: Vec<usize> = (0..t).filter(|_| below(4) == 0).collect();
            let waits: Vec<(u32, u32)> = needed.iter().map(|&n: &usize| places[n]).collect();
            let worker = below(workers);
            queues[worker].push(t as u32);
            places.push((worker as u32, queues[worker].len() as u32));
            tasks.push(task(t as u32, TaskPartition::Static { index: 0, of: 1 }, &waits, worker as u32));
            needs.push(needed);
        }
        // Counters of workers without tasks exist, too.
        let program = TaskProgram { kind: ExecutorKind::Persistent, counters: workers as u32, tasks, queues };
        let mut walker = Walker::over(count, 1, &program);
        for _ in 0..40 {
            let ended: Vec<AtomicUsize> = (0..count).map(|_| AtomicUsize::new(0)).collect();
            let body = ClosureTasks(|task: &Task, _: StageWork<'_>| {
                let t = task.step as usize;
                assert!(needs[t].iter().all(|&n| ended[n].load(Ordering::Relaxed) == 1), "task {t} was early");
                ended[t].fetch_add(1, Ordering::Relaxed);
            });
            let left_out: Vec<usize> = (0..workers).filter(|_| below(4) == 0).collect();
            walker.run(pool, Some(&pool.all().without(&left_out)), &body).unwrap();
            assert!(ended.iter().all(|n| n.load(Ordering::Relaxed) == 1));
        }
    }
}

#[test]
fn a_list_is_drained_exactly_once_in_every_run() {
    const TOTALS: [usize; 8] = [0, 1, 2, 5, 6, 7, 100, 1000];
    let pool = ThreadPool::new(3).unwrap();
    let drain = |counter| task(0, TaskPartition::WorkQueue, &[], counter);
    let walker = || walker(1, vec![drain(0), drain(0), drain(0)], vec![vec![0], vec![1], vec![2]]);
    for (start, total) in [0, u32::MAX - 20].into_iter().flat_map(|start| TOTALS.map(|total| (start, total))) {
        let mut walker = after(start, walker());
        for run in 0..50 {
            let done: Vec<AtomicUsize> = (0..total).map(|_| AtomicUsize::new(0)).collect();
            let body = ClosureTasks(|_: &Task, work: StageWork<'_>| {
                work.for_each_item(total, |some| {
                    assert!(!some.is_empty());
                    some.for_each(|i| {
                        done[i].fetch_add(1, Ordering::Relaxed);
                    });
                });
            });
            walker.run(&pool, (run < 40 || run % 5 != 0).then(|| pool.all()), &body).unwrap();
            assert!(done.iter().all(|n| n.load(Ordering::Relaxed) == 1), "{total} pieces, run {run} from {start}");
        }
    }
}

/// Whoever is left out, each task is run as the worker that the program has for it, by one thread, and every piece of a list
/// once.
#[test]
fn left_out_workers_have_their_tasks_done_by_others() {
    const TOTALS: [usize; 5] = [0, 3, 7, 40, 1000];
    let pool = ThreadPool::new(4).unwrap();
    let share = |index| TaskPartition::Static { index, of: 4 };
    let tasks = (0..4)
        .map(|w| task(0, share(w), &[], 0))
        .chain((0..4).map(|_| task(1, TaskPartition::WorkQueue, &[(0, 4)], 1)));
    let mut walker = walker(2, tasks.collect(), (0..4).map(|w| vec![w, 4 + w]).collect());
    let left_out: [&[usize]; 6] = [&[], &[1], &[1, 2, 3], &[2], &[1, 3], &[]];
    for (total, left_out) in TOTALS.into_iter().flat_map(|total| left_out.map(|left_out| (total, left_out))) {
        let team = pool.all().without(left_out);
        let shares = [const { AtomicUsize::new(0) }; 4];
        let done: Vec<AtomicUsize> = (0..total).map(|_| AtomicUsize::new(0)).collect();
        let body = ClosureTasks(|task: &Task, work: StageWork<'_>| {
            assert_eq!((work.workers, work.worker as u32), (4, work.number % 4));
            if task.step == 0 {
                shares[work.partition(4).start].fetch_add(1, Ordering::Relaxed);
                return;
            }
            assert!(shares.iter().all(|n| n.load(Ordering::Relaxed) == 1), "the list was early");
            work.for_each_item(total, |some| {
                some.for_each(|i| {
                    done[i].fetch_add(1, Ordering::Relaxed);
                });
            });
        });
        walker.run(&pool, Some(&team), &body).unwrap();
        assert!(done.iter().all(|n| n.load(Ordering::Relaxed) == 1), "{total} pieces without {left_out:?}");
    }
}

#[test]
fn a_panic_ends_the_run_and_the_walker_goes_on() {
    let pool = ThreadPool::new(2).unwrap();
    let mut walker = fork_and_join();
    for _ in 0..20 {
        let failed = walker.run(
            &pool,
            Some(pool.all()),
            &ClosureTasks(|task: &Task, _: StageWork<'_>| assert!(task.step != 0, "planted")),
        );
        assert!(failed.unwrap_err().to_string().contains("planted"));
        let ran = AtomicUsize::new(0);
        let body = ClosureTasks(|_: &Task, _: StageWork<'_>| {
            ran.fetch_add(1, Ordering::Relaxed);
        });
        walker.run(&pool, Some(pool.all()), &body).unwrap();
        assert_eq!(ran.into_inner(), 4);
    }
}

/// No verified program does this; a lost signal would.
#[test]
fn a_hang_says_where_everyone_stands() {
    let pool = ThreadPool::new(2).unwrap();
    let one = TaskPartition::Static { index: 0, of: 1 };
    let tasks = vec![task(0, one, &[], 0), task(1, one, &[(0, 1), (1, 5)], 1), task(2, one, &[(1, 1)], 0)];
    let mut walker = walker(3, tasks, vec![vec![0, 2], vec![1]]);
    walker.hang_after = Duration::from_millis(50);
    let error = walker.run(&pool, Some(pool.all()), &ClosureTasks(|_: &Task, _: StageWork<'_>| {})).unwrap_err();
    let CpuWalkError::Hang { stuck, .. } = &error else { panic!("{error}") };
    let want =
        |worker, position, task, counter, at_least, value| Blocked { worker, position, task, counter, at_least, value };
    assert_eq!(stuck, &[want(0, 1, 2, 1, 1, 0), want(1, 0, 1, 1, 5, 0)]);
    let text = error.to_string();
    assert!(text.contains("worker 1 at 0 of its queue (task 1) waits until counter 1 is 5, it is 0"), "{text}");
}

#[test]
fn shares_cover_everything_once() {
    let list = WorkList::new();
    for of in 1..9 {
        for total in 0..40 {
            let share = |index| {
                let part = TaskPartition::Static { index, of };
                StageWork { worker: 0, workers: of as usize, number: 0, part, list: &list, run: 1, again: false }
                    .partition(total)
            };
            let all: Vec<usize> = (0..of).flat_map(share).collect();
            assert_eq!(all, (0..total).collect::<Vec<_>>());
        }
    }
}
