//! When each task of each step began and ended, by worker: what a device writes while its steps run, and a value of it.
//!
//! A device that keeps such times has a [`Profiler`], made before its first plan is loaded. All memory is taken then: a
//! span is three words in a row that the worker has for itself, written without a lock. What does not fit is counted and
//! dropped. Knows no kernel, and not what becomes of a profile.

use crate::error::HalError;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Instant;
use yirage_ir::Dims;
use yirage_plan::{ExecutorKind, Plan, TaskProgram};

/// Most spans that a profiler has room for, of all workers together.
pub const MAX_SPANS: usize = 1 << 26;

/// Most steps that a profiler has room for.
pub const MAX_RUNS: usize = 1 << 16;

/// Words of a span in a lane.
const SPAN: usize = 3;
/// Words of a run in its lane.
const RUN: usize = 5;

/// Writes down when tasks and steps begin and end.
#[derive(Debug)]
pub struct Profiler {
    began: Instant,
    /// One a worker.
    tasks: Vec<Lane<SPAN>>,
    runs: Lane<RUN>,
    programs: Mutex<Vec<ProfiledProgram>>,
}

/// A list of records of `WORDS` words with room for so many.
#[derive(Debug)]
#[repr(align(128))]
struct Lane<const WORDS: usize> {
    /// Records that were asked for, beyond the room too.
    requested: AtomicUsize,
    words: Box<[AtomicU64]>,
}

impl<const WORDS: usize> Lane<WORDS> {
    fn new(room: usize) -> Lane<WORDS> {
        Lane { requested: AtomicUsize::new(0), words: (0..room * WORDS).map(|_| AtomicU64::new(0)).collect() }
    }

    /// The number of the record, whether there is room for it or not.
    fn push(&self, record: [u64; WORDS]) -> usize {
        let at = self.requested.fetch_add(1, Ordering::Relaxed);
        self.set(at, record);
        at
    }

    fn set(&self, at: usize, record: [u64; WORDS]) {
        let Some(words) = self.words.get(at.saturating_mul(WORDS)..).and_then(|w| w.get(..WORDS)) else { return };
        words.iter().zip(record).for_each(|(word, value)| word.store(value, Ordering::Relaxed));
    }

    fn records(&self) -> Vec<[u64; WORDS]> {
        let (whole, _) = self.words.as_chunks::<WORDS>();
        let written = whole.iter().take(self.requested.load(Ordering::Relaxed));
        written.map(|words| std::array::from_fn(|i| words[i].load(Ordering::Relaxed))).collect()
    }

    fn dropped(&self) -> u64 {
        (self.requested.load(Ordering::Relaxed) as u64).saturating_sub((self.words.len() / WORDS) as u64)
    }
}

/// A program among those of a profiler, and what it is of.
#[derive(Clone, PartialEq, Debug)]
pub struct ProfiledProgram {
    /// The name of the plan's graph.
    pub graph: String,
    /// The largest sizes of the plan.
    pub bucket: Dims,
    /// The plan's steps by name.
    pub steps: Vec<String>,
    /// Its task programs.
    pub programs: Vec<TaskProgram>,
}

/// A program as a profiler knows it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ProgramId(u32);

/// A step that runs, as a profiler knows it.
#[derive(Clone, Copy, Debug)]
pub struct RunningStep {
    /// Its number among all that ran.
    run: usize,
    program: ProgramId,
    kind: ExecutorKind,
    dims: Dims,
    began: u64,
}

/// A step that ran.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct RunSpan {
    /// Which of [`Profile::programs`].
    pub program: usize,
    /// By which executor.
    pub kind: ExecutorKind,
    /// Tokens of the step.
    pub tokens: u32,
    /// Sequences of the step.
    pub seqs: u32,
    /// Nanoseconds since the profiler was made.
    pub began: u64,
    /// As `began`.
    pub ended: u64,
}

/// A task that ran.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct TaskSpan {
    /// Which of [`Profile::runs`].
    pub run: usize,
    /// The worker that ran it.
    pub worker: usize,
    /// Its number in the task program.
    pub task: u32,
    /// Nanoseconds since the profiler was made.
    pub began: u64,
    /// As `began`.
    pub ended: u64,
}

/// What a profiler has written.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Profile {
    /// Workers of the device.
    pub workers: usize,
    /// What was loaded.
    pub programs: Vec<ProfiledProgram>,
    /// The steps that ran, in order.
    pub runs: Vec<RunSpan>,
    /// The tasks, by worker and in the order in which each ran them.
    pub tasks: Vec<TaskSpan>,
    /// Tasks that ran when there was no room left.
    pub dropped: u64,
}

impl Profiler {
    /// With room for `spans` tasks of each worker, and as many steps, at most [`MAX_RUNS`].
    ///
    /// # Errors
    /// [`HalError::Unsupported`] for more than [`MAX_SPANS`] in all.
    pub fn new(workers: usize, spans: usize) -> Result<Profiler, HalError> {
        let workers = workers.max(1);
        if spans.checked_mul(workers).is_none_or(|all| all > MAX_SPANS) {
            return Err(HalError::Unsupported {
                what: format!("a profile of {spans} tasks of each of {workers} workers"),
                why: format!("it has room for {MAX_SPANS} in all"),
            });
        }
        Ok(Profiler {
            began: Instant::now(),
            tasks: (0..workers).map(|_| Lane::new(spans)).collect(),
            runs: Lane::new(spans.min(MAX_RUNS)),
            programs: Mutex::new(Vec::new()),
        })
    }

    /// A plan was loaded.
    pub fn program(&self, plan: &Plan) -> ProgramId {
        let mut programs = self.programs.lock().unwrap_or_else(PoisonError::into_inner);
        programs.push(ProfiledProgram {
            graph: plan.graph.name.clone(),
            bucket: plan.bucket,
            steps: (0..plan.steps.len()).map(|step| plan.step_name(step)).collect(),
            programs: plan.programs.clone(),
        });
        ProgramId(programs.len() as u32 - 1)
    }

    /// Nanoseconds since it was made.
    pub fn now(&self) -> u64 {
        u64::try_from(self.began.elapsed().as_nanos()).unwrap_or(u64::MAX)
    }

    /// A step begins.
    pub fn begin(&self, program: ProgramId, kind: ExecutorKind, dims: &Dims) -> RunningStep {
        // It has its place from now on, since tasks name it by that.
        let run = self.runs.push([0; RUN]);
        RunningStep { run, program, kind, dims: *dims, began: self.now() }
    }

    /// The step is over.
    pub fn end(&self, step: RunningStep) {
        let RunningStep { run, program, kind, dims, began } = step;
        let kind = ExecutorKind::ALL.iter().position(|k| *k == kind).unwrap_or(0) as u64;
        // A step that ran has ended later than the profiler began: 0 stands for one that has not.
        let ended = self.now().max(1);
        self.runs.set(run, [u64::from(program.0), kind, pair(dims.tokens, dims.seqs), began, ended]);
    }

    /// Worker `worker` has run task `task` of a step since `began`, until now.
    pub fn task(&self, step: &RunningStep, worker: usize, task: u32, began: u64) {
        let Some(lane) = self.tasks.get(worker) else { return };
        lane.push([pair(step.run.min(u32::MAX as usize) as u32, task), began, self.now()]);
    }

    /// What was written of the steps that are over. Steps that run meanwhile may be half in it.
    pub fn profile(&self) -> Profile {
        let runs = self.runs.records();
        // Steps that have not ended are left out, so the others move up.
        let mut place = vec![None; runs.len()];
        let mut ended = Vec::new();
        for (at, [program, kind, sizes, began, end]) in runs.into_iter().enumerate() {
            let kind = usize::try_from(kind).ok().and_then(|kind| ExecutorKind::ALL.get(kind).copied());
            let (Some(kind), true) = (kind, end > 0) else { continue };
            let (tokens, seqs) = unpair(sizes);
            place[at] = Some(ended.len());
            ended.push(RunSpan { program: program as usize, kind, tokens, seqs, began, ended: end });
        }
        let mut dropped = self.tasks.iter().map(Lane::dropped).sum();
        let mut tasks = Vec::new();
        for (worker, lane) in self.tasks.iter().enumerate() {
            for [which, began, ended] in lane.records() {
                let (run, task) = unpair(which);
                match place.get(run as usize).copied().flatten() {
                    Some(run) => tasks.push(TaskSpan { run, worker, task, began, ended }),
                    None => dropped += 1,
                }
            }
        }
        let programs = self.programs.lock().unwrap_or_else(PoisonError::into_inner).clone();
        Profile { workers: self.tasks.len(), programs, runs: ended, tasks, dropped }
    }
}

impl Profile {
    /// The task program that a run walked; none for a replay, which has none.
    pub fn program_of(&self, run: &RunSpan) -> Option<&TaskProgram> {
        self.programs.get(run.program)?.programs.iter().find(|p| p.kind == run.kind)
    }
}

fn pair(high: u32, low: u32) -> u64 {
    u64::from(high) << 32 | u64::from(low)
}

fn unpair(both: u64) -> (u32, u32) {
    ((both >> 32) as u32, both as u32)
}

#[cfg(test)]
mod tests {
    use super::*;

    const DIMS: Dims = Dims { tokens: 3, seqs: 2, blocks: 1, rows: 2 };

    fn step(profiler: &Profiler, tasks: &[(usize, u32)]) {
        let running = profiler.begin(ProgramId(0), ExecutorKind::Persistent, &DIMS);
        for &(worker, task) in tasks {
            let began = profiler.now();
            profiler.task(&running, worker, task, began);
        }
        profiler.end(running);
    }

    #[test]
    fn what_was_written_is_there_by_worker_and_in_order() {
        let profiler = Profiler::new(2, 8).unwrap();
        step(&profiler, &[(0, 0), (1, 1), (0, 2)]);
        step(&profiler, &[(1, 3)]);
        let profile = profiler.profile();
        let tasks: Vec<_> = profile.tasks.iter().map(|t| (t.run, t.worker, t.task)).collect();
        assert_eq!(tasks, [(0, 0, 0), (0, 0, 2), (0, 1, 1), (1, 1, 3)]);
        let first = profile.runs[0];
        assert_eq!((first.kind, first.tokens, first.seqs), (ExecutorKind::Persistent, 3, 2));
        for task in &profile.tasks {
            let run = profile.runs[task.run];
            assert!(run.began <= task.began && task.began <= task.ended && task.ended <= run.ended);
        }
        assert_eq!((profile.workers, profile.dropped), (2, 0));
    }

    #[test]
    fn what_does_not_fit_is_counted() {
        let profiler = Profiler::new(1, 2).unwrap();
        step(&profiler, &[(0, 0), (0, 1), (0, 2)]);
        let profile = profiler.profile();
        assert_eq!((profile.tasks.len(), profile.dropped), (2, 1));
        step(&profiler, &[]);
        step(&profiler, &[]);
        assert_eq!(profiler.profile().runs.len(), 2, "the third step has no room");
        assert!(Profiler::new(2, MAX_SPANS).is_err() && Profiler::new(usize::MAX, 2).is_err());
    }

    #[test]
    fn a_step_that_has_not_ended_is_left_out() {
        let profiler = Profiler::new(1, 4).unwrap();
        let open = profiler.begin(ProgramId(0), ExecutorKind::Steps, &DIMS);
        profiler.task(&open, 0, 0, profiler.now());
        step(&profiler, &[(0, 1)]);
        let profile = profiler.profile();
        assert_eq!((profile.runs.len(), profile.tasks.len(), profile.dropped), (1, 1, 1));
        assert_eq!((profile.tasks[0].run, profile.tasks[0].task), (0, 1));
    }
}
