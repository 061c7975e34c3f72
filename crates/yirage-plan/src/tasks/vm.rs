//! A checking interpreter: one thread walks a program in whatever order its caller likes, and every access is watched.
//!
//! It knows nothing of the proofs in [`super::verify`]; it looks at what happens. A program that passes there must run
//! here to its end without a fault in every order, and a planted fault must be seen by one of them or by both.

use super::access::{Access, ArenaSpan, Extent, accesses};
use crate::error::PlanError;
use crate::plan::Plan;
use crate::program::{Task, TaskProgram};
use std::fmt;
use std::ops::Range;
use thiserror::Error;
use yirage_ir::{Dims, ValueId, ValueSource};

/// Where a worker stands that cannot go on.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Blocked {
    /// The worker.
    pub worker: usize,
    /// Position in its queue.
    pub position: usize,
    /// The task there.
    pub task: u32,
    /// The counter it waits for.
    pub counter: u32,
    /// The value wanted.
    pub at_least: u32,
    /// The value there is.
    pub value: u32,
}

impl fmt::Display for Blocked {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Blocked { worker, position, task, counter, at_least, value } = self;
        write!(
            f,
            "worker {worker} at {position} of its queue (task {task}) waits until counter {counter} is {at_least}, it is {value}"
        )
    }
}

/// Why a walk ended early.
#[derive(Clone, PartialEq, Eq, Debug, Error)]
pub enum WalkError {
    /// No worker can go on.
    #[error("deadlock: {}", .0.iter().map(ToString::to_string).collect::<Vec<_>>().join("; "))]
    Deadlock(Vec<Blocked>),
    /// A task touched memory at the wrong time.
    #[error("task {task}: {what}")]
    Race {
        /// The task.
        task: u32,
        /// What it did.
        what: String,
    },
    /// The program or plan is not sound enough to be walked.
    #[error(transparent)]
    Plan(#[from] PlanError),
}

/// Walks `program`. `choose` is given the workers that could run their next task and says which one does (by position
/// in that list); `run` runs a task's number on a worker.
///
/// # Errors
/// [`WalkError::Deadlock`], or what `run` says.
pub fn walk(
    program: &TaskProgram,
    mut choose: impl FnMut(&[usize]) -> usize,
    mut run: impl FnMut(u32, usize) -> Result<(), WalkError>,
) -> Result<(), WalkError> {
    let mut counters = vec![0u32; program.counters as usize];
    let mut heads = vec![0usize; program.queues.len()];
    loop {
        let mut ready = Vec::new();
        let mut blocked = Vec::new();
        for (worker, queue) in program.queues.iter().enumerate() {
            let Some(&task) = queue.get(heads[worker]) else { continue };
            let waits = &program.tasks[task as usize].waits;
            match waits.iter().find(|w| counters[w.counter as usize] < w.at_least) {
                None => ready.push(worker),
                Some(w) => blocked.push(Blocked {
                    worker,
                    position: heads[worker],
                    task,
                    counter: w.counter,
                    at_least: w.at_least,
                    value: counters[w.counter as usize],
                }),
            }
        }
        if ready.is_empty() {
            return if blocked.is_empty() { Ok(()) } else { Err(WalkError::Deadlock(blocked)) };
        }
        let worker = ready[choose(&ready) % ready.len()];
        let task = program.queues[worker][heads[worker]];
        run(task, worker)?;
        heads[worker] += 1;
        counters[program.tasks[task as usize].signals as usize] += 1;
    }
}

/// Watches the memory of a plan while its tasks run one after the other.
pub struct ArenaRaceChecker<'a> {
    plan: &'a Plan,
    program: &'a TaskProgram,
    /// The sizes of the step.
    sizes: Dims,
    accesses: Vec<Access>,
    /// Whether each task has run.
    ran: Vec<bool>,
    /// The stages that each step begins and ends with.
    ends: Vec<Option<(u32, u32)>>,
    /// Tasks of each step.
    all: Vec<usize>,
    /// Those that have not run yet.
    remaining: Vec<usize>,
    /// Tasks of each stage of each step that have not run yet.
    stages_remaining: Vec<Vec<usize>>,
    /// What lies in the arena: (from, to, value), disjoint.
    arena_values: Vec<(u64, u64, ValueId)>,
}

impl<'a> ArenaRaceChecker<'a> {
    /// Before the first task of a step of the bucket's sizes.
    ///
    /// # Errors
    /// When a value has no place.
    pub fn new(plan: &'a Plan, program: &'a TaskProgram) -> Result<ArenaRaceChecker<'a>, PlanError> {
        ArenaRaceChecker::at(plan, program, plan.bucket)
    }

    /// Before the first task of a step of some sizes, on which it depends which rows each share has.
    ///
    /// # Errors
    /// When a value has no place.
    pub fn at(plan: &'a Plan, program: &'a TaskProgram, sizes: Dims) -> Result<ArenaRaceChecker<'a>, PlanError> {
        let mut all = vec![0; plan.steps.len()];
        let widest = plan.kernels.iter().map(|k| k.stages.len()).max().unwrap_or(0);
        let mut stages_left = vec![vec![0; widest]; plan.steps.len()];
        for t in &program.tasks {
            all[t.step as usize] += 1;
            stages_left[t.step as usize][t.stage as usize] += 1;
        }
        let accesses = accesses(plan)?;
        let ends = |s: usize| Some((plan.stages(s).next()?.0, plan.stages(s).last()?.0));
        Ok(ArenaRaceChecker {
            plan,
            program,
            sizes,
            accesses,
            ran: vec![false; program.tasks.len()],
            ends: (0..plan.steps.len()).map(ends).collect(),
            remaining: all.clone(),
            all,
            stages_remaining: stages_left,
            arena_values: Vec::new(),
        })
    }

    /// A task runs now, from beginning to end.
    ///
    /// # Errors
    /// [`WalkError::Race`] when an earlier stage of its step is unfinished, when what it reads is not whole or no longer
    /// there, or when it overwrites what an unfinished step reads or writes.
    pub fn run(&mut self, task: u32) -> Result<(), WalkError> {
        let t = &self.program.tasks[task as usize];
        let step = t.step as usize;
        let race = |what: String| WalkError::Race { task, what };
        if let Some(stage) = self.stages_remaining[step][..t.stage as usize].iter().position(|&n| n > 0) {
            return Err(race(format!("stage {stage} of step {step} has not ended")));
        }
        self.check_reads(t).map_err(race)?;
        self.check_writes(step).map_err(race)?;
        for w in self.accesses[step].writes.clone() {
            self.arena_values.retain(|(from, to, _)| *to <= w.from || w.to <= *from);
            self.arena_values.push((w.from, w.to, w.value));
        }
        self.ran[task as usize] = true;
        self.remaining[step] -= 1;
        self.stages_remaining[step][t.stage as usize] -= 1;
        Ok(())
    }

    fn producer(&self, value: ValueId) -> Option<usize> {
        let ValueSource::Node { node, .. } = self.plan.graph.value(value).source else { return None };
        self.plan.steps.iter().position(|s| s.node == node)
    }

    fn name(&self, value: ValueId) -> &str {
        &self.plan.graph.value(value).name
    }

    /// The rows that a task touches of a value of which it touches its own alone.
    fn rows(&self, task: &Task, span: &ArenaSpan) -> Option<Range<usize>> {
        task.partition.range(span.rows?.get(&self.sizes))
    }

    /// The rows that a task of its step's first stage reads of such a value; what later stages read is not divided so.
    fn read_rows(&self, task: &Task, span: &ArenaSpan) -> Option<Range<usize>> {
        let (first, _) = self.ends[task.step as usize]?;
        self.rows(task, span).filter(|_| task.stage == first)
    }

    /// Whether a task that begins its step finds the rows that it reads of a value, though its maker is unfinished.
    fn finds_its_rows(&self, task: &Task, maker: usize, value: ValueId) -> bool {
        let of = |spans: &[ArenaSpan]| spans.iter().find(|s| s.value == value).copied();
        let Some((_, last)) = self.ends[maker] else { return false };
        let (read, written) = (of(&self.accesses[task.step as usize].reads), of(&self.accesses[maker].writes));
        let (Some(read), Some(written)) = (read, written) else { return false };
        let Some(wanted) = self.read_rows(task, &read) else { return false };
        let tasks = self.program.tasks.iter().zip(&self.ran);
        let mut unfinished = tasks.filter(|(t, ran)| t.step as usize == maker && t.stage == last && !**ran);
        unfinished.all(|(other, _)| {
            let made = self.rows(other, &written);
            made.is_some_and(|made| made.is_empty() || made.end <= wanted.start || wanted.end <= made.start)
        })
    }

    fn check_reads(&self, task: &Task) -> Result<(), String> {
        let step = task.step as usize;
        let node = &self.plan.graph.nodes[self.plan.steps[step].node as usize];
        for &i in &node.ins {
            if let Some(maker) = self.producer(i)
                && self.remaining[maker] > 0
                && !self.finds_its_rows(task, maker, i)
            {
                return Err(format!("`{}` is read before it is whole", self.name(i)));
            }
        }
        for r in &self.accesses[step].reads {
            // Of no rows there is nothing to read.
            if self.read_rows(task, r).is_some_and(|rows| rows.is_empty()) {
                continue;
            }
            if !self.arena_values.contains(&(r.from, r.to, r.value)) {
                return Err(format!("`{}` is read after its bytes were used again", self.name(r.value)));
            }
        }
        Ok(())
    }

    /// Other steps that have begun but not ended must not touch what this one writes, and none that will still read it.
    fn check_writes(&self, step: usize) -> Result<(), String> {
        let mine = &self.accesses[step];
        for (other, access) in self.accesses.iter().enumerate() {
            let running = other != step && self.remaining[other] > 0 && self.remaining[other] < self.all[other];
            if running && mine.conflict(access) == Some(Extent::Whole) {
                return Err(format!("step {step} and step {other} run together and touch the same memory"));
            }
            if other < step
                && self.remaining[other] > 0
                && access.kv_caches_read.iter().any(|s| mine.kv_caches_written.contains(s))
            {
                return Err(format!("step {step} writes a state that step {other} has not read yet"));
            }
        }
        Ok(())
    }
}
