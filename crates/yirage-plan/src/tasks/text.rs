//! The text form of task programs, as part of a plan's.
//!
//! ```text
//! program persistent counters=2
//! task step=0 stage=0 share=0/2 signals=0
//! task step=1 stage=1 drain waits=0:1,1:1 signals=0
//! queue 0 1
//! ```

use crate::fields::field;
use crate::program::{ExecutorKind, Part, Sharing, Stage, Task, TaskProgram, Wait, When};
use std::fmt::Write;

/// The lines of a program.
pub(crate) fn print(program: &TaskProgram, out: &mut String) {
    // Writing to a String cannot fail.
    let _ = writeln!(out, "program {} counters={}", program.kind, program.counters);
    for t in &program.tasks {
        let _ = write!(out, "task step={} stage={} ", t.step, t.stage);
        let _ = match t.part {
            Part::Share { index, of } => write!(out, "share={index}/{of}"),
            Part::Drain => write!(out, "drain"),
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
            program.tasks.push(Task { step, stage, part, waits, signals: field(next, "signals")? });
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

fn part(word: &str) -> Option<Part> {
    if word == "drain" {
        return Some(Part::Drain);
    }
    let (index, of) = word.strip_prefix("share=")?.split_once('/')?;
    Some(Part::Share { index: index.parse().ok()?, of: of.parse().ok()? })
}

fn wait(word: &str) -> Option<Wait> {
    let (counter, at_least) = word.split_once(':')?;
    Some(Wait { counter: counter.parse().ok()?, at_least: at_least.parse().ok()? })
}

/// A stage as a word: how it is divided, and for which nodes it is.
pub(crate) fn print_stage(stage: &Stage) -> String {
    let sharing = match stage.sharing {
        Sharing::Shares => "shares",
        Sharing::Drained => "drained",
    };
    let when = match stage.when {
        When::Always => "",
        When::FloatInput => "?float",
        When::NoState => "?nostate",
    };
    format!("{sharing}{when}")
}

/// Reads such a word.
pub(crate) fn stage(word: &str) -> Option<Stage> {
    let (sharing, when) = word.split_once('?').map_or((word, None), |(s, w)| (s, Some(w)));
    let sharing = match sharing {
        "shares" => Sharing::Shares,
        "drained" => Sharing::Drained,
        _ => return None,
    };
    let when = match when {
        None => When::Always,
        Some("float") => When::FloatInput,
        Some("nostate") => When::NoState,
        Some(_) => return None,
    };
    Some(Stage { sharing, when })
}
