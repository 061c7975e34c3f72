//! Task programs as data: tasks, what they wait for, and the queues that workers walk.

use std::fmt;
use std::ops::Range;
use std::str::FromStr;

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
pub enum Partitioning {
    /// Into shares that the sizes of a step determine.
    Static,
    /// Into rows that lie in a row: share i of n makes rows `rows * i / n` to `rows * (i + 1) / n`, and of what the ops
    /// read row by row it reads no others. So what it waits for can be told for each share ([`crate::tasks::access`]).
    Rows,
    /// Each worker takes pieces from one list until it is empty: for work whose pieces or speed the plan cannot know.
    WorkQueue,
}

/// Which nodes of a kernel have a stage.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum StageCondition {
    /// All.
    Always,
    /// Those whose first input is not quantised.
    FloatInput,
    /// Those that read no cache state.
    NoKvCache,
}

/// A stage of a kernel: all of one stage ends before the next begins.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Stage {
    /// How it is divided.
    pub partitioning: Partitioning,
    /// Which nodes have it.
    pub when: StageCondition,
}

impl Stage {
    /// A stage of every node.
    pub const fn always(sharing: Partitioning) -> Stage {
        Stage { partitioning: sharing, when: StageCondition::Always }
    }
}

/// What a task does of its stage.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum TaskPartition {
    /// Share `index` of `of`.
    Static {
        /// Which.
        index: u32,
        /// Of how many.
        of: u32,
    },
    /// Pieces of the stage's list, until it is empty.
    WorkQueue,
}

impl TaskPartition {
    /// A share's part of `total` things that lie in a row; nothing of a work queue, whose pieces nobody knows before.
    pub fn range(self, total: usize) -> Option<Range<usize>> {
        let TaskPartition::Static { index, of } = self else { return None };
        let at = |index: u32| (total as u128 * u128::from(index) / u128::from(of.max(1))) as usize;
        Some(at(index)..at(index.saturating_add(1)))
    }
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
    /// Which of [`crate::Plan::steps`].
    pub step: u32,
    /// Which stage of the step's kernel.
    pub stage: u32,
    /// What of it.
    pub partition: TaskPartition,
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_follow_each_other_and_are_all() {
        for (total, of) in [(0, 3), (1, 4), (7, 3), (64, 5), (usize::MAX, 7)] {
            let shares = (0..of).filter_map(|index| TaskPartition::Static { index, of }.range(total));
            let end = shares.fold(0, |end, share| {
                assert_eq!(share.start, end);
                share.end
            });
            assert_eq!(end, total, "{of} shares");
        }
        assert_eq!(TaskPartition::WorkQueue.range(5), None);
    }
}
