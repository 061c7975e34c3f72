//! The text form of task programs, as part of a plan's.
//!
//! ```text
//! program persistent counters=2
//! task step=0 stage=0 partition=0/2 signals=0
//! task step=1 stage=1 work_queue waits=0:1,1:1 signals=0
//! queue 0 1
//! ```

use crate::fields::field;
use crate::program::{ExecutorKind, Partitioning, Stage, StageCondition, Task, TaskPartition, TaskProgram, Wait};
use std::fmt::Write;

/// The lines of a program.
pub(crate) fn print(program: &TaskProgram, out: &mut String) {
    // Writing to a String cannot fail.
    let _ = writeln!(out, "program {} counters={}", program.kind, program.counters);
    for t in &program.tasks {
        let _ = write!(out, "task step={} stage={} ", t.step, t.stage);
        let _ = match t.partition {
            TaskPartition::Static { index, of } => write!(out, "partition={index}/{of}"),
            TaskPartition::WorkQueue => write!(out, "work_queue"),
        };
        for (i, w) in t.waits.iter().enumerate() {
            let _ = write!(out, "{}{}:{}", if i == 0 { " waits=" } else { "," }, w.counter, w.at_least);
        }
        let _ = writeln!(out, " signals={}", t.signals);
    }
    for queue in &program.queues {
        out.push_str("queue");
        queue.iter().for_each(|t| {
            let _ = write!(out, " {t}");
        });
        out.push('\n');
    }
}

/// Reads one line of a program that follows a `program` line; None if it is none.
pub(crate) fn line(program: &mut TaskProgram, word: &str, rest: &str) -> Option<()> {
    let mut words = rest.split(' ').filter(|w| !w.is_empty());
    match word {
        "task" => {
            let step = field(words.next()?, "step")?;
            let stage = field(words.next()?, "stage")?;
            let part = part(words.next()?)?;
            let mut next = words.next()?;
            let waits = match next.strip_prefix("waits=") {
                None => Vec::new(),
                Some(list) => {
                    next = words.next()?;
                    list.split(',').map(wait).collect::<Option<_>>()?
                }
            };
            program.tasks.push(Task { step, stage, partition: part, waits, signals: field(next, "signals")? });
        }
        "queue" => {
            let tasks: Vec<u32> = words.by_ref().map(|w| w.parse().ok()).collect::<Option<_>>()?;
            program.queues.push(tasks);
        }
        _ => return None,
    }
    words.next().is_none().then_some(())
}

/// Reads what follows the word `program`.
pub(crate) fn head(rest: &str) -> Option<TaskProgram> {
    let (kind, counters) = rest.split_once(' ')?;
    let kind: ExecutorKind = kind.parse().ok()?;
    let counters = field(counters, "counters")?;
    Some(TaskProgram { kind, counters, tasks: Vec::new(), queues: Vec::new() })
}

fn part(word: &str) -> Option<TaskPartition> {
    if word == "work_queue" {
        return Some(TaskPartition::WorkQueue);
    }
    let (index, of) = word.strip_prefix("partition=")?.split_once('/')?;
    Some(TaskPartition::Static { index: index.parse().ok()?, of: of.parse().ok()? })
}

fn wait(word: &str) -> Option<Wait> {
    let (counter, at_least) = word.split_once(':')?;
    Some(Wait { counter: counter.parse().ok()?, at_least: at_least.parse().ok()? })
}

/// A stage as a word: how it is divided, and for which nodes it is.
pub(crate) fn print_stage(stage: &Stage) -> String {
    let partitioning = match stage.partitioning {
        Partitioning::Static => "static",
        Partitioning::Rows => "rows",
        Partitioning::WorkQueue => "work_queue",
    };
    let when = match stage.when {
        StageCondition::Always => "",
        StageCondition::FloatInput => "?float",
        StageCondition::NoKvCache => "?no_kv_cache",
    };
    format!("{partitioning}{when}")
}

/// Reads such a word.
pub(crate) fn stage(word: &str) -> Option<Stage> {
    let (partitioning, when) = word.split_once('?').map_or((word, None), |(s, w)| (s, Some(w)));
    let partitioning = match partitioning {
        "static" => Partitioning::Static,
        "rows" => Partitioning::Rows,
        "work_queue" => Partitioning::WorkQueue,
        _ => return None,
    };
    let when = match when {
        None => StageCondition::Always,
        Some("float") => StageCondition::FloatInput,
        Some("no_kv_cache") => StageCondition::NoKvCache,
        Some(_) => return None,
    };
    Some(Stage { partitioning, when })
}
