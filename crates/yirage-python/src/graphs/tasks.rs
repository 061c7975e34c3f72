//! A graph's tasks as JSON, by the names of Mirage's task graphs.

use super::content::Customized;
use crate::failure::{PyFailure, PyOutcome};
use serde_json::{Value, json};
use yirage_hal::Device;
use yirage_ir::Graph;
use yirage_plan::{ExecutorKind, TaskPartition, TaskProgram, VerifiedPlan};
use yirage_plancache::{CallOptions, planned};

/// The tasks of a graph on a device. Those that the persistent executor runs, or the only ones there are.
///
/// # Errors
/// What the compiler says; `Unsupported` for several devices.
pub(super) fn json(
    graph: &Graph,
    device: &dyn Device,
    customized: &[Customized],
    devices: u32,
    own: u32,
) -> PyOutcome<String> {
    if devices != 1 || own != 0 {
        let what = format!("a task graph for device {own} of {devices}");
        return Err(PyFailure::unsupported(what, "a graph runs on one device"));
    }
    let plan = planned(graph, &device.target(), &CallOptions::default())?;
    let persistent = plan.programs.iter().find(|program| program.kind == ExecutorKind::Persistent);
    let none = || PyFailure::unsupported("the task graph of this device", "its plans have no task program");
    let program = persistent.or(plan.programs.first()).ok_or_else(none)?;
    let tasks: Vec<Value> = program.tasks.iter().enumerate().map(|(id, _)| task(&plan, program, id)).collect();
    let events: Vec<Value> =
        program.totals().iter().enumerate().map(|(id, n)| json!({"id": id, "num_triggers": n})).collect();
    let name = |id| graph.value(id).name.clone();
    let registered = customized.iter().filter_map(|of| Some((of.task.as_ref()?, &of.values)));
    let registered: Vec<Value> = registered
        .map(|(task, values)| {
            let values: Vec<String> = values.iter().map(|&id| name(id)).collect();
            json!({"task_type": task.name, "params": task.params, "outputs": values})
        })
        .collect();
    let all = json!({
        "graph": graph.name,
        "executor": program.kind.name(),
        "all_tasks": tasks,
        "all_events": events,
        "workers": program.queues,
        "registered_tasks": registered,
    });
    Ok(all.to_string())
}

fn task(plan: &VerifiedPlan, program: &TaskProgram, id: usize) -> Value {
    let task = &program.tasks[id];
    let step = &plan.steps[task.step as usize];
    let node = &plan.graph.nodes[step.node as usize];
    let outputs: Vec<&str> = node.outs.iter().map(|&id| plan.graph.value(id).name.as_str()).collect();
    let waits: Vec<Value> =
        task.waits.iter().map(|wait| json!({"event": wait.counter, "at_least": wait.at_least})).collect();
    let (index, of) = match task.partition {
        TaskPartition::Static { index, of } => (json!(index), json!(of)),
        // Pieces of a list, until it is empty.
        TaskPartition::WorkQueue => (Value::Null, Value::Null),
    };
    json!({
        "id": id,
        "task_type": node.name(),
        "kernel": plan.kernels[step.kernel as usize].name,
        "outputs": outputs,
        "stage": task.stage,
        "part": index,
        "parts": of,
        "dependent_events": waits,
        "trigger_event": task.signals,
    })
}
