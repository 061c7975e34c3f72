//! Profiles as traces that Perfetto, and every other reader of Chrome's trace events, loads.
//!
//! The format is the JSON of Google's "Trace Event Format": complete events (`ph` X) with times in microseconds. Beside
//! Perfetto's own binary format it is larger, but it needs no library to write or read, and `jq` tells what is in it. Each
//! worker has a track. A step is a span on each track on which it ran tasks, and the tasks are spans inside of it. Times
//! are written with all their nanoseconds, so that what is inside of a step stays inside.

use serde_json::{Value, json};
use std::io::{self, Write};
use yirage_hal::{Profile, RunSpan, TaskSpan};
use yirage_plan::{Task, TaskPartition};

/// The process that all tracks belong to.
const PID: u32 = 1;

/// Writes all steps of a profile.
///
/// # Errors
/// Those of the writer.
pub fn write_trace(profile: &Profile, out: &mut dyn Write) -> io::Result<()> {
    let other = json!({ "dropped_tasks": profile.dropped, "workers": profile.workers });
    writeln!(out, "{{\"displayTimeUnit\":\"ns\",\"otherData\":{other},\"traceEvents\":[")?;
    let name = |kind: &str, tid: usize, name: String| json!({ "name": kind, "ph": "M", "pid": PID, "tid": tid, "args": { "name": name } });
    write!(out, "{}", name("process_name", 0, "yirage".into()))?;
    for worker in 0..profile.workers {
        write!(out, ",\n{}", name("thread_name", worker, format!("worker {worker}")))?;
    }
    // Tasks stand by worker and in the order of their begins, so those of a step on a worker stand together.
    for tasks in profile.tasks.chunk_by(|a, b| (a.run, a.worker) == (b.run, b.worker)) {
        let (first, run) = (&tasks[0], &profile.runs[tasks[0].run]);
        event(out, step_name(profile, run), "step", first.worker, (run.began, run.ended), &step_args(first.run, run))?;
        for task in tasks {
            task_event(profile, run, task, out)?;
        }
    }
    writeln!(out, "\n]}}")
}

fn task_event(profile: &Profile, run: &RunSpan, span: &TaskSpan, out: &mut dyn Write) -> io::Result<()> {
    let task = profile.program_of(run).and_then(|p| p.tasks.get(span.task as usize));
    let named = |t: &Task| profile.programs.get(run.program).and_then(|p| p.steps.get(t.step as usize));
    let name = task.and_then(named).cloned().unwrap_or_else(|| format!("task {}", span.task));
    event(out, name, "task", span.worker, (span.began, span.ended), &task_args(span, task))
}

fn step_name(profile: &Profile, run: &RunSpan) -> String {
    profile.programs.get(run.program).map_or_else(|| "a step".into(), |p| p.graph.clone())
}

fn step_args(number: usize, run: &RunSpan) -> Value {
    json!({ "step": number, "executor": run.kind.name(), "tokens": run.tokens, "sequences": run.seqs })
}

fn task_args(span: &TaskSpan, task: Option<&Task>) -> Value {
    let part = |part| match part {
        TaskPartition::Static { index, of } => format!("share {index} of {of}"),
        TaskPartition::WorkQueue => "pieces of a list".to_string(),
    };
    match task {
        Some(task) => json!({
            "task": span.task, "plan_step": task.step, "stage": task.stage, "part": part(task.partition),
        }),
        None => json!({ "task": span.task }),
    }
}

fn event(
    out: &mut dyn Write,
    name: String,
    category: &str,
    worker: usize,
    (began, ended): (u64, u64),
    args: &Value,
) -> io::Result<()> {
    let (name, took) = (Value::String(name), ended.saturating_sub(began));
    write!(out, ",\n{{\"name\":{name},\"cat\":\"{category}\",\"ph\":\"X\",\"pid\":{PID},\"tid\":{worker},")?;
    write!(out, "\"ts\":{},\"dur\":{},\"args\":{args}}}", microseconds(began), microseconds(took))
}

/// Nanoseconds as microseconds, exactly.
fn microseconds(nanoseconds: u64) -> String {
    format!("{}.{:03}", nanoseconds / 1000, nanoseconds % 1000)
}
