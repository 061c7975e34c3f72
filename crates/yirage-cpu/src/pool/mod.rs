//! The worker pool: n threads (the caller is worker 0) that run one closure together.
//!
//! Idle workers spin for a few hundred microseconds, then sleep, so an idle engine burns no processor. Threads that outnumber
//! the processors hardly spin, so an oversubscribed machine advances. Deliberately unknown here: kernels, plans, tensors.

mod affinity;
mod barrier;
mod budget;
mod queued;
mod team;
mod wait;

pub use affinity::allowed_cpus;
pub use budget::{ThreadBudgetInputs, thread_budget};

use barrier::Barrier;
pub(crate) use queued::{Queued, this_thread};
use std::any::Any;
use std::cell::{Cell, UnsafeCell};
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering, fence};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::{JoinHandle, Thread};
pub(crate) use team::Team;
use thiserror::Error;
pub(crate) use wait::Backoff;
use wait::SpinPolicy;

/// Why a pool could not be made or a run not finished.
#[derive(Debug, Error)]
pub enum PoolError {
    /// No worker at all, or more than [`MAX_WORKERS`].
    #[error("a pool of {0} threads was asked for: choose 1 to {MAX_WORKERS}")]
    Count(usize),
    /// The operating system refused a thread.
    #[error("thread {index} of {count} could not be started: {source}; ask for fewer threads")]
    Spawn {
        /// Worker number.
        index: usize,
        /// Workers wanted.
        count: usize,
        /// What the system said.
        source: std::io::Error,
    },
    /// A worker panicked; the pool is whole again.
    #[error("worker {index} of {count} panicked: {message}")]
    Panicked {
        /// Worker number.
        index: usize,
        /// Workers of the pool.
        count: usize,
        /// The panic's text.
        message: String,
    },
    /// A closure run by a pool used a pool.
    #[error("a pool was used from inside one of a pool's own workers: it would wait for itself")]
    Nested,
}

/// Most threads a pool may have.
pub const MAX_WORKERS: usize = 1024;

thread_local! {
    static INSIDE: Cell<bool> = const { Cell::new(false) };
}

/// What a worker knows of itself while it runs a closure.
#[derive(Clone, Copy)]
pub struct WorkerCtx<'a> {
    /// This worker's number among those that run the closure, below `count`.
    pub index: usize,
    /// Workers that run the closure.
    pub count: usize,
    barrier: &'a Barrier,
}

/// Unwinds a worker whose peer has panicked.
struct Abandoned;

impl WorkerCtx<'_> {
    /// Waits until all workers have arrived; what they wrote before is visible after. All workers must call it equally
    /// often. If a worker panics, the others leave the closure here.
    #[inline]
    pub fn barrier(&self) {
        if self.barrier.wait(self.index, self.count).is_err() {
            resume_unwind(Box::new(Abandoned));
        }
    }

    /// Leaves the closure if another worker has panicked or called [`WorkerCtx::abandon`]; for those who wait in another
    /// way than at the barrier.
    #[inline]
    pub(crate) fn leave_if_abandoned(&self) {
        if self.barrier.is_broken() {
            resume_unwind(Box::new(Abandoned));
        }
    }

    /// How long to spin in other waits.
    pub(crate) fn patience(&self) -> SpinPolicy {
        self.barrier.patience()
    }

    /// Makes all workers leave the closure where they wait.
    pub(crate) fn abandon(&self) {
        self.barrier.break_up();
    }
}

/// A broadcast closure with its lifetime erased; it is used only while `run` waits.
type BroadcastClosure = *const (dyn Fn(WorkerCtx<'_>) + Sync);

#[repr(align(128))]
struct PoolWorker {
    /// Number of the last run this worker was asked for, counted for each worker: not all take part in every run.
    asked: AtomicU32,
    /// Number of the last run this worker has finished.
    done: AtomicU32,
    /// Its number in the run it was asked for.
    rank: AtomicU32,
    asleep: AtomicBool,
    /// The number that the system gave its thread.
    thread: AtomicU32,
}

struct PoolShared {
    workers: Box<[PoolWorker]>,
    barrier: Barrier,
    /// What is to be run, by how many workers.
    job: UnsafeCell<Option<(BroadcastClosure, usize)>>,
    stop: AtomicBool,
    panic: Mutex<Option<(usize, Box<dyn Any + Send>)>>,
}

// SAFETY: `job` is written by the caller while no worker reads it: before any worker's `asked` is advanced (Release), and
// again only after `done` of every worker that was asked has been seen (Acquire). The closure behind it is Sync.
unsafe impl Sync for PoolShared {}
// SAFETY: nothing in it belongs to a thread; `job` is written and read in turns, as for Sync.
unsafe impl Send for PoolShared {}

/// A fixed set of threads. Dropping it ends them.
pub struct ThreadPool {
    shared: Arc<PoolShared>,
    threads: Vec<JoinHandle<()>>,
    /// One run at a time; how many workers the last had.
    turn: Mutex<usize>,
    all: Team,
    cpus: Vec<usize>,
    unpinned: Option<String>,
}

fn lock<T>(m: &Mutex<T>) -> MutexGuard<'_, T> {
    m.lock().unwrap_or_else(PoisonError::into_inner)
}

impl ThreadPool {
    /// Starts `count - 1` threads, each pinned to its own processor of the allowed set if there are enough. Where
    /// pinning is refused the threads run unpinned and [`ThreadPool::pinning_refused`] says why.
    ///
    /// # Errors
    /// [`PoolError::Count`], [`PoolError::Spawn`].
    pub fn new(count: usize) -> Result<ThreadPool, PoolError> {
        ThreadPool::beside(count, 0, 1)
    }

    /// One of so many pools of `count` threads that share the allowed set, each in a process of its own: the first has the
    /// first processors. Where there are not enough for all of them, none is pinned.
    ///
    /// # Errors
    /// As [`ThreadPool::new`].
    pub fn beside(count: usize, pool: usize, pools: usize) -> Result<ThreadPool, PoolError> {
        if count == 0 || count > MAX_WORKERS {
            return Err(PoolError::Count(count));
        }
        let mut cpus = allowed_cpus().ok().filter(|c| c.len() >= count.saturating_mul(pools)).unwrap_or_default();
        cpus.drain(..cpus.len().min(count.saturating_mul(pool)));
        let patience = if cpus.is_empty() { SpinPolicy::CROWDED } else { SpinPolicy::ALONE };
        let worker = || PoolWorker {
            asked: AtomicU32::new(0),
            done: AtomicU32::new(0),
            rank: AtomicU32::new(0),
            asleep: AtomicBool::new(false),
            thread: AtomicU32::new(0),
        };
        let shared = Arc::new(PoolShared {
            workers: (0..count).map(|_| worker()).collect(),
            barrier: Barrier::new(count, patience),
            job: UnsafeCell::new(None),
            stop: AtomicBool::new(false),
            panic: Mutex::new(None),
        });
        let mut pool = ThreadPool {
            shared,
            threads: Vec::new(),
            turn: Mutex::new(count),
            all: Team::all(count),
            cpus,
            unpinned: None,
        };
        if pool.cpus.is_empty() {
            let wanted = count.saturating_mul(pools);
            pool.unpinned = Some(format!("fewer than {wanted} processors are allowed to this process"));
        }
        let refused = Arc::new(Mutex::new(None));
        for index in 1..count {
            let (shared, refused, cpu) = (pool.shared.clone(), refused.clone(), pool.cpus.get(index).copied());
            let body = move || {
                if let Some(Err(why)) = cpu.map(affinity::pin) {
                    lock(&refused).get_or_insert(why);
                }
                shared.workers[index].thread.store(this_thread(), Ordering::Relaxed);
                work(&shared, index);
            };
            let thread = std::thread::Builder::new().name(format!("yirage-cpu-{index}")).spawn(body);
            pool.threads.push(thread.map_err(|source| PoolError::Spawn { index, count, source })?);
        }
        // One empty run: every thread has tried to pin itself afterwards.
        pool.try_run(|_| {})?;
        if let Some(why) = lock(&refused).take() {
            pool.unpinned = Some(why);
        }
        Ok(pool)
    }

    /// Threads that run a closure, the caller included.
    pub fn count(&self) -> usize {
        self.shared.workers.len()
    }

    /// Why threads are not pinned, or None if each has its own processor.
    pub fn pinning_refused(&self) -> Option<&str> {
        self.unpinned.as_deref()
    }

    /// All workers.
    pub(crate) fn all(&self) -> &Team {
        &self.all
    }

    /// The numbers that the system gave the threads of all workers but the caller.
    pub(crate) fn threads(&self) -> Vec<u32> {
        self.shared.workers[1..].iter().map(|worker| worker.thread.load(Ordering::Relaxed)).collect()
    }

    /// Pins the calling thread to worker 0's processor, for a thread that does nothing but call [`ThreadPool::run`]. The pool
    /// never does this by itself: the caller's thread is not its own.
    ///
    /// # Errors
    /// Why the system refused, as text.
    pub fn pin_caller(&self) -> Result<(), String> {
        match (&self.unpinned, self.cpus.first()) {
            (Some(why), _) => Err(why.clone()),
            (None, Some(&cpu)) => affinity::pin(cpu),
            (None, None) => Err("the allowed processors are unknown".to_owned()),
        }
    }

    /// Runs `f` once on every worker (the caller is worker 0) and returns when all have finished.
    ///
    /// # Errors
    /// [`PoolError::Panicked`] with the first panic; all workers have left the closure and the pool can be used again.
    /// [`PoolError::Nested`] from inside a run.
    pub fn try_run<F: Fn(WorkerCtx<'_>) + Sync>(&self, f: F) -> Result<(), PoolError> {
        self.try_run_by(&self.all, f)
    }

    /// [`ThreadPool::try_run`] by some of the pool's workers, which are numbered by their ranks in the team; the others sleep on.
    ///
    /// # Errors
    /// As [`ThreadPool::try_run`].
    pub(crate) fn try_run_by<F: Fn(WorkerCtx<'_>) + Sync>(&self, team: &Team, f: F) -> Result<(), PoolError> {
        match self.broadcast(team, &f)? {
            None => Ok(()),
            Some((index, payload)) => {
                Err(PoolError::Panicked { index, count: team.len(), message: message(&*payload) })
            }
        }
    }

    /// [`ThreadPool::try_run`], but a worker's panic continues on the caller.
    ///
    /// # Panics
    /// If `f` panics on any worker, or from inside a run.
    pub fn run<F: Fn(WorkerCtx<'_>) + Sync>(&self, f: F) {
        match self.broadcast(&self.all, &f) {
            Ok(None) => {}
            Ok(Some((_, payload))) => resume_unwind(payload),
            Err(e) => panic!("{e}"),
        }
    }

    /// Runs `f` on the caller alone, as the one worker there is: for work too small to share.
    ///
    /// # Errors
    /// [`PoolError::Panicked`], [`PoolError::Nested`].
    pub fn run_alone<F: FnOnce(WorkerCtx<'_>)>(&self, f: F) -> Result<(), PoolError> {
        if INSIDE.get() {
            return Err(PoolError::Nested);
        }
        let _turn = lock(&self.turn);
        let barrier = Barrier::new(1, SpinPolicy::ALONE);
        INSIDE.set(true);
        let result = catch_unwind(AssertUnwindSafe(|| f(WorkerCtx { index: 0, count: 1, barrier: &barrier })));
        INSIDE.set(false);
        result.map_err(|payload| PoolError::Panicked { index: 0, count: 1, message: message(&*payload) })
    }

    #[allow(clippy::type_complexity)]
    fn broadcast(
        &self,
        team: &Team,
        f: &(dyn Fn(WorkerCtx<'_>) + Sync),
    ) -> Result<Option<(usize, Box<dyn Any + Send>)>, PoolError> {
        if INSIDE.get() {
            return Err(PoolError::Nested);
        }
        let mut turn = lock(&self.turn);
        let shared = &*self.shared;
        let others = || team.members()[1..].iter().map(|&w| (&shared.workers[w], &self.threads[w - 1]));
        if std::mem::replace(&mut *turn, team.len()) != team.len() {
            shared.barrier.restart();
        }
        // SAFETY: only the lifetime changes; `f` outlives this call, which waits for every worker to be done with it.
        let job: BroadcastClosure =
            unsafe { std::mem::transmute::<*const (dyn Fn(WorkerCtx<'_>) + Sync + '_), BroadcastClosure>(f) };
        // SAFETY: no worker reads the cell between its `done` and the next `asked` (see Shared).
        unsafe { *shared.job.get() = Some((job, team.len())) };
        for (rank, (worker, _)) in others().enumerate() {
            worker.rank.store(rank as u32 + 1, Ordering::Relaxed);
            worker.asked.store(worker.asked.load(Ordering::Relaxed).wrapping_add(1), Ordering::Release);
        }
        // Pairs with the fence in `rest`: either we see the worker asleep, or it sees the new number.
        fence(Ordering::SeqCst);
        for (worker, thread) in others() {
            if worker.asleep.load(Ordering::Relaxed) {
                thread.thread().unpark();
            }
        }
        execute(shared, (0, team.len()), f);
        for (worker, _) in others() {
            let mut backoff = Backoff::new(shared.barrier.patience());
            while worker.done.load(Ordering::Acquire) != worker.asked.load(Ordering::Relaxed) {
                backoff.snooze();
            }
        }
        shared.barrier.mend();
        Ok(lock(&shared.panic).take())
    }
}

impl Drop for ThreadPool {
    fn drop(&mut self) {
        self.shared.stop.store(true, Ordering::Release);
        fence(Ordering::SeqCst);
        self.threads.iter().map(JoinHandle::thread).for_each(Thread::unpark);
        for thread in self.threads.drain(..) {
            // Workers catch every panic of a job, so there is nothing left to report.
            let _ = thread.join();
        }
    }
}

/// One worker's share of a run; a panic is kept for the caller and frees those who wait at the barrier.
fn execute(shared: &PoolShared, (index, count): (usize, usize), f: &(dyn Fn(WorkerCtx<'_>) + Sync)) {
    let ctx = WorkerCtx { index, count, barrier: &shared.barrier };
    INSIDE.set(true);
    let result = catch_unwind(AssertUnwindSafe(|| f(ctx)));
    INSIDE.set(false);
    if let Err(payload) = result {
        if !payload.is::<Abandoned>() {
            lock(&shared.panic).get_or_insert((index, payload));
        }
        shared.barrier.break_up();
    }
}

/// The life of a worker thread.
fn work(shared: &PoolShared, index: usize) {
    let me = &shared.workers[index];
    let mut last = 0;
    loop {
        let mut backoff = Backoff::idle(shared.barrier.patience());
        let asked = loop {
            let asked = me.asked.load(Ordering::Acquire);
            if asked != last {
                break asked;
            }
            if shared.stop.load(Ordering::Acquire) {
                return;
            }
            if backoff.should_sleep() {
                rest(shared, me, last);
            } else {
                backoff.snooze();
            }
        };
        last = asked;
        // SAFETY: `asked` was advanced after the cell was written, and the caller waits for `done` below.
        if let Some((job, count)) = unsafe { *shared.job.get() } {
            // SAFETY: `ThreadPool::broadcast` keeps the closure alive until each worker has set `done`.
            execute(shared, (me.rank.load(Ordering::Relaxed) as usize, count), unsafe { &*job });
        }
        me.done.store(asked, Ordering::Release);
    }
}

/// Sleeps unless there is something to do. A wake-up for nothing is harmless: the caller checks again.
fn rest(shared: &PoolShared, me: &PoolWorker, last: u32) {
    me.asleep.store(true, Ordering::Relaxed);
    fence(Ordering::SeqCst);
    if me.asked.load(Ordering::Acquire) == last && !shared.stop.load(Ordering::Acquire) {
        std::thread::park();
    }
    me.asleep.store(false, Ordering::Relaxed);
}

fn message(payload: &(dyn Any + Send)) -> String {
    let text = payload.downcast_ref::<&str>().map(|s| (*s).to_owned());
    text.or_else(|| payload.downcast_ref::<String>().cloned()).unwrap_or_else(|| "a value that is no text".to_owned())
}

#[cfg(test)]
mod tests;
