//! Walks task programs on the worker pool: every worker its own queue, with counters and without barriers. Workers that are
//! left out have their queues walked by others.
//!
//! It knows tasks, counters and lists of pieces; not what a task computes. A program comes here verified, so a wait that
//! does not end is a fault of a kernel or of the machine: a watchdog ends the run then and says where everyone stands.

mod counters;
mod list;
mod queues;
mod sync;

use crate::pool::{Backoff, PoolError, Team, ThreadPool, WorkerCtx};
use counters::SignalCounters;
pub(crate) use list::WorkList;
use queues::{QueuedTask, Queues};
use std::ops::Range;
use std::sync::Mutex;
use std::sync::PoisonError;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};
use thiserror::Error;
use yirage_plan::tasks::vm::Blocked;
use yirage_plan::{Plan, Task, TaskPartition, TaskProgram};

/// How long all workers that have not ended may wait, before a run is given up.
const HANG_AFTER: Duration = Duration::from_secs(10);
/// Where a worker is that has ended.
const ENDED: u32 = u32::MAX;
/// Looks at a counter between two looks at the clock.
const LOOKS: u32 = 1024;

/// Why a run ended early.
#[derive(Debug, Error)]
pub(crate) enum CpuWalkError {
    /// A worker panicked, or a pool was used inside a pool.
    #[error(transparent)]
    Pool(#[from] PoolError),
    /// Nothing moved for too long.
    #[error("no task has ended for {seconds} s, the run is given up; {}", .stuck.iter().map(ToString::to_string).collect::<Vec<_>>().join("; "))]
    Hang {
        /// How long.
        seconds: u64,
        /// Where the workers stand that wait.
        stuck: Vec<Blocked>,
    },
}

/// What a task is given to do of its stage.
#[derive(Clone, Copy)]
pub(crate) struct StageWork<'a> {
    /// Number of the worker that it is run as; a thread may stand for several.
    pub(crate) worker: usize,
    /// Workers of the program.
    pub(crate) workers: usize,
    /// Number of the task in its program.
    pub(crate) number: u32,
    part: TaskPartition,
    list: &'a WorkList,
    run: u32,
    /// Whether the thread comes to the list again, as another worker.
    again: bool,
}

impl StageWork<'_> {
    /// This task's share of `total` things that lie in a row.
    pub(crate) fn partition(&self, total: usize) -> Range<usize> {
        self.part.range(total).unwrap_or(0..total)
    }

    /// All of a stage, by one worker, inside of what it does anyway.
    pub(crate) fn alone(self) -> Self {
        StageWork { workers: 1, part: TaskPartition::Static { index: 0, of: 1 }, ..self }
    }

    /// Runs `piece` on pieces of a list of `total` until it is empty. The first are known beforehand
    /// ([`StageWork::first`]). A share of a list is some of its pieces.
    pub(crate) fn for_each_item(&self, total: usize, mut pieces: impl FnMut(Range<usize>)) {
        if let TaskPartition::Static { .. } = self.part {
            let share = self.partition(total);
            if !share.is_empty() {
                pieces(share);
            }
            return;
        }
        let first = self.first(total);
        if !first.is_empty() {
            pieces(first);
        }
        if self.again {
            return;
        }
        while let Some(some) = self.list.take(self.run, total, self.workers) {
            pieces(some);
        }
    }

    /// Whether this task and those of all other workers are to take pieces of one list.
    pub(crate) fn uses_queue(&self) -> bool {
        self.part == TaskPartition::WorkQueue
    }

    /// The pieces that this task begins with.
    pub(crate) fn first(&self, total: usize) -> Range<usize> {
        WorkList::first(total, self.worker, self.workers)
    }
}

/// Runs tasks, and uses the time in which a worker waits.
pub(crate) trait Tasks: Sync {
    /// Runs a task.
    ///
    /// # Safety
    /// Everything the program orders before the task has ended, and nothing that the program orders after it has begun.
    unsafe fn run(&self, task: &Task, work: StageWork<'_>);

    /// A worker waits before this task, for the `look`th time. There is nothing that must be done.
    fn waiting(&self, task: &Task, work: StageWork<'_>, look: u32);
}

/// A program with its counters.
pub(crate) struct Walker {
    program: TaskProgram,
    counters: SignalCounters,
    /// What the threads of the last team do.
    queues: Queues,
    /// Where each thread is in its queue.
    heads: Box<[AtomicU32]>,
    /// One for each stage of each step.
    lists: Box<[WorkList]>,
    stages: usize,
    /// Runs since the counters were at 0.
    runs: u32,
    hang_after: Duration,
}

impl Walker {
    /// For a program of `plan`, which is verified.
    pub(crate) fn new(plan: &Plan, program: &TaskProgram) -> Walker {
        let stages = plan.kernels.iter().map(|k| k.stages.len()).max().unwrap_or(0).max(1);
        Walker::over(plan.steps.len(), stages, program)
    }

    /// For a program over `steps` steps of at most `stages` stages.
    fn over(steps: usize, stages: usize, program: &TaskProgram) -> Walker {
        Walker {
            counters: SignalCounters::new(&program.totals(), 0),
            queues: Queues::new(program, &Team::all(program.queues.len())),
            heads: program.queues.iter().map(|_| AtomicU32::new(ENDED)).collect(),
            lists: (0..steps * stages).map(|_| WorkList::new()).collect(),
            stages,
            runs: 0,
            hang_after: HANG_AFTER,
            program: program.clone(),
        }
    }

    /// Runs the program once by a team of the pool's workers, of which the pool must have as many as the program has queues;
    /// or without a team on the caller alone, for work too small to share.
    ///
    /// # Errors
    /// [`CpuWalkError`]; the walker can be used again.
    pub(crate) fn run(
        &mut self,
        pool: &ThreadPool,
        team: Option<&Team>,
        tasks: &impl Tasks,
    ) -> Result<(), CpuWalkError> {
        assert_eq!(pool.count(), self.program.queues.len(), "the program is for another number of workers");
        let hang = Mutex::new(None);
        let result = match team {
            None => pool.run_alone(|_| self.walk_alone(tasks)),
            Some(team) => {
                self.prepare(team);
                pool.try_run_by(team, |ctx| self.walk(ctx, tasks, &hang))
            }
        };
        self.runs = self.runs.wrapping_add(1);
        let hang = hang.into_inner().unwrap_or_else(PoisonError::into_inner);
        // Run numbers may not come round: lists tell runs apart by them.
        if result.is_err() || hang.is_some() || team.is_none() || self.runs == u32::MAX - 1 {
            self.counters.reset();
            self.lists.iter_mut().for_each(|l| *l = WorkList::new());
            self.runs = 0;
        }
        hang.map_or(Ok(()), Err)?;
        Ok(result?)
    }

    /// Deals out the queues, if the team is another than that of the last run.
    fn prepare(&mut self, team: &Team) {
        if self.queues.team != *team {
            self.queues = Queues::new(&self.program, team);
            self.heads.iter_mut().for_each(|head| *head.get_mut() = ENDED);
        }
    }

    fn work(&self, task: &Task, turn: QueuedTask) -> StageWork<'_> {
        let list = &self.lists[task.step as usize * self.stages + task.stage as usize];
        StageWork {
            worker: turn.worker as usize,
            workers: self.program.queues.len(),
            number: turn.task,
            part: task.partition,
            list,
            run: self.runs.wrapping_add(1),
            again: turn.again,
        }
    }

    /// The list of tasks is an order in which one thread may run them, each as the worker in whose queue it stands.
    fn walk_alone(&self, tasks: &impl Tasks) {
        for (t, task) in (0..).zip(&self.program.tasks) {
            let owner = self.program.queues.iter().position(|q| q.binary_search(&t).is_ok());
            let turn = QueuedTask { task: t, worker: owner.unwrap_or(0) as u32, again: false };
            // SAFETY: the list is a linear extension of the program's order.
            unsafe { tasks.run(task, self.work(task, turn)) };
        }
    }

    fn walk(&self, ctx: WorkerCtx<'_>, tasks: &impl Tasks, hang: &Mutex<Option<CpuWalkError>>) {
        for (position, &turn) in self.queues.by_rank[ctx.index].iter().enumerate() {
            let task = &self.program.tasks[turn.task as usize];
            let work = self.work(task, turn);
            self.heads[ctx.index].store(position as u32, Ordering::Relaxed);
            if !task.waits.is_empty() && !self.wait(ctx, task, work, tasks, hang) {
                return;
            }
            // SAFETY: the task's counters are where the program wants them.
            unsafe { tasks.run(task, work) };
            self.counters.signal(task.signals);
        }
        self.heads[ctx.index].store(ENDED, Ordering::Relaxed);
    }

    /// Waits for all of a task's counters; false if the run is over for another reason.
    fn wait(
        &self,
        ctx: WorkerCtx<'_>,
        task: &Task,
        work: StageWork<'_>,
        tasks: &impl Tasks,
        hang: &Mutex<Option<CpuWalkError>>,
    ) -> bool {
        let mut backoff = Backoff::new(ctx.patience());
        let mut watchdog = Watchdog { looks: 0, since: None, moved: 0 };
        task.waits.iter().all(|wait| {
            self.counters.wait(wait.counter, wait.at_least, self.runs, || {
                ctx.leave_if_abandoned();
                tasks.waiting(task, work, watchdog.looks);
                backoff.snooze();
                if !watchdog.barks(self) {
                    return true;
                }
                let error = CpuWalkError::Hang { seconds: self.hang_after.as_secs(), stuck: self.stuck() };
                hang.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(error);
                ctx.abandon();
                false
            })
        })
    }

    /// The workers that wait, and for what.
    fn stuck(&self) -> Vec<Blocked> {
        let head = |((queue, &worker), head): ((&Vec<QueuedTask>, &usize), &AtomicU32)| {
            let position = head.load(Ordering::Relaxed) as usize;
            let task = queue.get(position)?.task;
            let waits = self.program.tasks[task as usize].waits.iter();
            let missing = |w: &yirage_plan::Wait| Some((*w, self.counters.missing(w.counter, w.at_least, self.runs)?));
            let (wait, missing) = waits.filter_map(missing).next()?;
            let value = wait.at_least.wrapping_sub(missing);
            Some(Blocked { worker, position, task, counter: wait.counter, at_least: wait.at_least, value })
        };
        self.queues.by_rank.iter().zip(self.queues.team.members()).zip(&self.heads).filter_map(head).collect()
    }

    /// Changes whenever a worker begins a task.
    fn moved(&self) -> u32 {
        self.heads.iter().fold(0, |sum, head| sum.wrapping_mul(31).wrapping_add(head.load(Ordering::Relaxed)))
    }
}

/// Notices that nobody will ever move again.
struct Watchdog {
    looks: u32,
    since: Option<Instant>,
    moved: u32,
}

impl Watchdog {
    fn barks(&mut self, walker: &Walker) -> bool {
        self.looks = self.looks.wrapping_add(1);
        if !self.looks.is_multiple_of(LOOKS) {
            return false;
        }
        let moved = walker.moved();
        let since = *self.since.get_or_insert_with(Instant::now);
        if moved != self.moved {
            (self.moved, self.since) = (moved, Some(Instant::now()));
            return false;
        }
        // A worker that is not among those who wait is busy, however long its task takes.
        let at_work = |head: &&AtomicU32| head.load(Ordering::Relaxed) != ENDED;
        since.elapsed() >= walker.hang_after && walker.stuck().len() == walker.heads.iter().filter(at_work).count()
    }
}

#[cfg(test)]
mod tests;
