//! Task programs: a plan's steps cut into tasks, with what each waits for, as data that any interpreter can walk.
//!
//! A worker walks its own queue from front to back. Before a task it waits until the task's counters have reached their
//! thresholds; after it, it adds one to the task's own counter. Counters start at 0 in each run (an interpreter may count
//! on from run to run instead, by adding a counter's signals per run to its thresholds). There is no barrier: `steps` is
//! the program whose every group of tasks waits for all of the group before it, `persistent` the one in which a task
//! waits for those whose bytes it touches.
//!
//! [`verify`] proves that a program ends and is free of races, [`vm`] walks one in any order and watches the bytes.
//! Deliberately unknown here: what a kernel computes, how long a task takes, how an interpreter waits.

pub mod access;
pub(crate) mod order;
pub mod text;
pub mod verify;
pub mod vm;

use crate::plan::Plan;
use std::fmt;
use std::str::FromStr;
use yirage_ir::DType;

/// How a plan is run.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub enum ExecutorKind {
    /// Step after step, all workers waiting for each other in between.
    Steps,
    /// A recording that the device plays by itself.
    Replay,
    /// Tasks that wait only for what they read or overwrite.
    Persistent,
}

impl ExecutorKind {
    /// All of them.
    pub const ALL: [ExecutorKind; 3] = [ExecutorKind::Steps, ExecutorKind::Replay, ExecutorKind::Persistent];

    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            ExecutorKind::Steps => "steps",
            ExecutorKind::Replay => "replay",
            ExecutorKind::Persistent => "persistent",
        }
    }
}

impl fmt::Display for ExecutorKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for ExecutorKind {
    type Err = String;
    fn from_str(s: &str) -> Result<ExecutorKind, String> {
        let found = ExecutorKind::ALL.into_iter().find(|k| k.name() == s);
        found.ok_or_else(|| format!("`{s}` is no executor: `steps`, `replay` or `persistent` wanted"))
    }
}

/// How the workers divide a stage of a kernel.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Sharing {
    /// Into shares that the sizes of a step determine.
    Shares,
    /// Each worker takes pieces from one list until it is empty: for work whose pieces or speed the plan cannot know.
    Drained,
}

/// Which nodes of a kernel have a stage.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum When {
    /// All.
    Always,
    /// Those whose first input is not quantised.
    FloatInput,
    /// Those that read no cache state.
    NoState,
}

/// A stage of a kernel: all of one stage ends before the next begins.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Stage {
    /// How it is divided.
    pub sharing: Sharing,
    /// Which nodes have it.
    pub when: When,
}

impl Stage {
    /// A stage of every node.
    pub const fn always(sharing: Sharing) -> Stage {
        Stage { sharing, when: When::Always }
    }
}

/// What a task does of its stage.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Part {
    /// Share `index` of `of`.
    Share {
        /// Which.
        index: u32,
        /// Of how many.
        of: u32,
    },
    /// Pieces of the stage's list, until it is empty.
    Drain,
}

/// What must have happened before a task.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub struct Wait {
    /// The counter.
    pub counter: u32,
    /// The value it must have reached.
    pub at_least: u32,
}

/// A task.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Task {
    /// Which of [`Plan::steps`].
    pub step: u32,
    /// Which stage of the step's kernel.
    pub stage: u32,
    /// What of it.
    pub part: Part,
    /// What it waits for; any number of counters.
    pub waits: Vec<Wait>,
    /// The counter that it raises by one when it has ended.
    pub signals: u32,
}

/// A program. `tasks` stand in an order in which one worker could run them all.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct TaskProgram {
    /// Which executor it is for.
    pub kind: ExecutorKind,
    /// Number of counters.
    pub counters: u32,
    /// The tasks.
    pub tasks: Vec<Task>,
    /// For each worker, its tasks by number, in the order in which it runs them.
    pub queues: Vec<Vec<u32>>,
}

impl TaskProgram {
    /// Signals that each counter gets in one run.
    pub fn totals(&self) -> Vec<u32> {
        let mut totals = vec![0; self.counters as usize];
        self.tasks.iter().for_each(|t| totals[t.signals as usize] += 1);
        totals
    }
}

impl Plan {
    /// The stages that step `step` has, by number.
    pub fn stages(&self, step: usize) -> impl Iterator<Item = (u32, Sharing)> {
        let s = &self.steps[step];
        let node = &self.graph.nodes[s.node as usize];
        let of_node = |when: When| match when {
            When::Always => true,
            When::FloatInput => node.ins.first().is_some_and(|&x| self.graph.ty(x).dtype != DType::Q8A),
            When::NoState => !node.ins.iter().any(|&i| self.graph.state_of(i).is_some()),
        };
        let stages = self.kernels[s.kernel as usize].stages.iter().enumerate();
        stages.filter(move |(_, stage)| of_node(stage.when)).map(|(i, stage)| (i as u32, stage.sharing))
    }

    /// The program for `kind`.
    pub fn program(&self, kind: ExecutorKind) -> Option<&TaskProgram> {
        self.programs.iter().find(|p| p.kind == kind)
    }

    /// What a step is, for people: the node's name and the first value it makes.
    pub fn step_name(&self, step: usize) -> String {
        let node = &self.graph.nodes[self.steps[step].node as usize];
        let made = node.outs.first().map_or("", |&o| self.graph.value(o).name.as_str());
        format!("{} `{made}`", node.name())
    }
}
