//! A machine that computes a plan's task program on one thread, task by task, by the references, in any order that the
//! program allows, and compares each step's outputs with what the reference makes of the graph.
//!
//! Values lie where the plan puts them, as bytes, and a task reads what lies there when it runs. So a wait that is missing,
//! places that overlap and an op that is wrong all show as a value: the first one is told with its task, its op, the
//! element and both values. It knows nothing of devices; [`GraphSetup::first_difference`] compares those, op by op.
//!
//! Of a step with several stages the tasks of the last one make the outputs, each its part of the bytes. What earlier stages
//! leave is scratch of a kernel, which a reference does not have.

use crate::setup::{GraphSetup, Trouble};
use std::collections::HashMap;
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use thiserror::Error;
use yirage_compile::{CompileOptions, compile, plan_weights};
use yirage_hal::Device;
use yirage_ir::interp::{Eval, evaluate_node};
use yirage_ir::tensor::Data;
use yirage_ir::{Dims, Op, Tensor, ValueId};
use yirage_plan::tasks::vm::{WalkError, walk};
use yirage_plan::{ExecutorKind, Partitioning, Plan, TaskPartition, TaskProgram, ValueLocation};

/// How a program is run.
pub struct VmOptions<'a> {
    /// The program.
    pub kind: ExecutorKind,
    /// Evaluates the tasks' ops: [`Op::eval`], or one with a mistake that is to be found.
    pub eval: Eval,
    /// The plan's step after which nothing more runs, once it is whole.
    pub stop_after: Option<usize>,
    /// Is given the workers that could run their next task and says which does, by its place among them.
    pub choose: &'a mut dyn FnMut(&[usize]) -> usize,
}

/// What ran.
#[derive(Clone, PartialEq, Debug)]
pub struct VmReport {
    /// Tasks that ran, in their order.
    pub tasks: Vec<u32>,
    /// Steps whose outputs are the reference's, in the order in which they became whole.
    pub steps: Vec<usize>,
    /// The outputs of the step that became whole last, by name; caches are left out.
    pub outputs: Vec<(String, Tensor)>,
}

/// The first value that is not the reference's.
#[derive(Clone, PartialEq, Debug)]
pub struct Difference {
    /// The task that made its step whole.
    pub task: u32,
    /// The plan's step.
    pub step: usize,
    /// Its op, or its region.
    pub op: String,
    /// The value.
    pub value: String,
    /// The first element that differs.
    pub element: usize,
    /// What the program made.
    pub got: String,
    /// What the reference makes.
    pub wanted: String,
}

impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Difference { task, step, op, value, element, got, wanted } = self;
        write!(
            f,
            "task {task} (step {step}, {op}): element {element} of `{value}` is {got}, the reference gives {wanted}"
        )
    }
}

/// Why a program did not run to its end.
#[derive(Clone, PartialEq, Debug, Error)]
pub enum VmError {
    /// A value is not the reference's.
    #[error("{0}")]
    Differs(Box<Difference>),
    /// An op could not make anything of what it read.
    #[error("task {task} (step {step}, {op}) fails on what it reads")]
    Fails {
        /// The task.
        task: u32,
        /// The plan's step.
        step: usize,
        /// Its op.
        op: String,
    },
    /// The program cannot be walked.
    #[error(transparent)]
    Walk(#[from] WalkError),
    /// The plan and what is given for it do not fit.
    #[error("{0}")]
    Setup(String),
}

/// Runs the program of `plan` on what `setup` gives for its inputs.
///
/// # Errors
/// [`VmError::Differs`] with the first difference; and a plan that cannot be run.
pub fn run_program(setup: &GraphSetup, plan: &Plan, options: &mut VmOptions<'_>) -> Result<VmReport, VmError> {
    let none = || VmError::Setup(format!("the plan has no program for `{}`", options.kind));
    let program = plan.program(options.kind).ok_or_else(none)?.clone();
    run_tasks(setup, plan, &program, options)
}

/// The same of a program that may not be the plan's own.
///
/// # Errors
/// As [`run_program`].
pub fn run_tasks(
    setup: &GraphSetup,
    plan: &Plan,
    program: &TaskProgram,
    options: &mut VmOptions<'_>,
) -> Result<VmReport, VmError> {
    let mut machine = TaskProgramVm::new(setup, plan, program, options.eval)?;
    let stop_after = options.stop_after;
    // The walk has errors of its own kind, so ours wait here.
    let mut ended: Option<Result<(), VmError>> = None;
    let walked = walk(program, &mut *options.choose, |task, _| {
        let step = machine.run(task);
        let whole = match step {
            Ok(whole) => whole,
            Err(why) => {
                ended = Some(Err(why));
                return Err(stopped(task));
            }
        };
        if whole.is_some() && whole == stop_after {
            ended = Some(Ok(()));
            return Err(stopped(task));
        }
        Ok(())
    });
    match ended {
        Some(Err(why)) => return Err(why),
        Some(Ok(())) => {}
        None => walked?,
    }
    Ok(machine.report)
}

impl GraphSetup {
    /// Where a result of this graph on `device` that is wrong comes from: the first value that a task program of its plan
    /// spoils; or else a kernel, as all programs of the plan give the values that they should.
    pub fn blame(&self, device: &dyn Device, bucket: Dims, options: &CompileOptions) -> String {
        let target = device.target();
        let plan = plan_weights(&self.graph, &target)
            .and_then(|weights| compile(&self.graph, bucket, &target, &weights, options));
        let plan = match plan {
            Ok(plan) => plan,
            Err(why) => return format!("there is no plan: {why}"),
        };
        // A device that runs nodes one by one has programs without tasks.
        for program in plan.programs.iter().filter(|program| !program.tasks.is_empty()) {
            let kind = program.kind;
            let mut options = VmOptions { kind, eval: Op::eval, stop_after: None, choose: &mut |_| 0 };
            if let Err(why) = run_program(self, &plan, &mut options) {
                return format!("its task program `{kind}`: {why}");
            }
        }
        "no task program of its plan spoils a value, so a kernel is wrong".into()
    }
}

fn stopped(task: u32) -> WalkError {
    WalkError::Race { task, what: "stopped".into() }
}

struct TaskProgramVm<'a> {
    plan: &'a Plan,
    program: &'a TaskProgram,
    dims: Dims,
    eval: Eval,
    /// Weights, step inputs and states; a state as it is now, under its first value.
    inputs: HashMap<ValueId, Tensor>,
    wanted: Vec<Option<Tensor>>,
    arena: Vec<u8>,
    /// For each step: its last stage, and that stage's tasks in the program's order.
    producer_tasks: Vec<(u32, Vec<u32>)>,
    remaining_tasks: Vec<usize>,
    report: VmReport,
}

impl<'a> TaskProgramVm<'a> {
    fn new(
        setup: &GraphSetup,
        plan: &'a Plan,
        program: &'a TaskProgram,
        eval: Eval,
    ) -> Result<TaskProgramVm<'a>, VmError> {
        let of_plan = GraphSetup { graph: plan.graph.clone(), ..setup.clone() };
        let trouble = |trouble: Trouble| VmError::Setup(trouble.into());
        let inputs = of_plan.inputs().map_err(trouble)?;
        let wanted = every_value(plan, &inputs)?;
        let mut makers = Vec::with_capacity(plan.steps.len());
        for step in 0..plan.steps.len() {
            let last = plan.stages(step).last().map(|(stage, _)| stage);
            let last = last.ok_or_else(|| VmError::Setup(format!("step {step} has no stage")))?;
            let own = program.tasks.iter().enumerate().filter(|(_, t)| t.step as usize == step && t.stage == last);
            makers.push((last, own.map(|(at, _)| at as u32).collect()));
        }
        let mut left = vec![0; plan.steps.len()];
        program.tasks.iter().for_each(|t| left[t.step as usize] += 1);
        let bytes = usize::try_from(plan.arena).map_err(|_| VmError::Setup("its arena is too large".into()))?;
        Ok(TaskProgramVm {
            plan,
            program,
            dims: setup.dims,
            eval,
            inputs,
            wanted,
            // No number: what nobody has written is no value by chance.
            arena: vec![0xff; bytes],
            producer_tasks: makers,
            remaining_tasks: left,
            report: VmReport { tasks: Vec::new(), steps: Vec::new(), outputs: Vec::new() },
        })
    }

    /// Runs a task; the step that is whole with it.
    fn run(&mut self, task: u32) -> Result<Option<usize>, VmError> {
        let t = &self.program.tasks[task as usize];
        let step = t.step as usize;
        let (last, makers) = &self.producer_tasks[step];
        if t.stage == *last {
            let drains = makers
                .iter()
                .filter(|&&m| self.program.tasks[m as usize].partition == TaskPartition::WorkQueue)
                .count();
            let (index, of) = match t.partition {
                TaskPartition::Static { index, of } => (index as usize, of as usize),
                // Which worker drains how much is nobody's promise: here each has an equal part.
                TaskPartition::WorkQueue => (makers.iter().position(|&m| m == task).unwrap_or(0), drains),
            };
            self.make(task, step, index, of.max(1))?;
        }
        self.report.tasks.push(task);
        self.remaining_tasks[step] -= 1;
        if self.remaining_tasks[step] > 0 {
            return Ok(None);
        }
        self.compare(task, step)?;
        self.report.steps.push(step);
        Ok(Some(step))
    }

    /// Makes part `index` of `of` of a step's outputs from what lies in its inputs now.
    fn make(&mut self, task: u32, step: usize, index: usize, of: usize) -> Result<(), VmError> {
        let plan = self.plan;
        let node = &plan.graph.nodes[plan.steps[step].node as usize];
        let by_rows = plan.stages(step).last().is_some_and(|(_, sharing)| sharing == Partitioning::Rows);
        let ins = node.ins.iter().map(|&id| self.read(id)).collect::<Result<Vec<_>, _>>()?;
        let ins: Vec<&Tensor> = ins.iter().collect();
        let fails = || VmError::Fails { task, step, op: node.name().to_owned() };
        // What a planted mistake gives an op may be nothing that it takes.
        let made = catch_unwind(AssertUnwindSafe(|| evaluate_node(self.eval, node, &ins)));
        let made = made.map_err(|_| fails())?.map_err(|_| fails())?;
        for (&id, tensor) in node.outs.iter().zip(&made) {
            match plan.graph.kv_cache_of(id) {
                Some(state) => {
                    let mut now = self.read(state)?;
                    let (Data::F32(to), Data::F32(from)) = (&mut now.data, &tensor.data) else { return Err(fails()) };
                    let part = from.len() * index / of..from.len() * (index + 1) / of;
                    to.get_mut(part.clone()).ok_or_else(fails)?.copy_from_slice(&from[part]);
                    self.inputs.insert(state, now);
                }
                None => {
                    let (bytes, from) = (tensor.memory(), self.arena_offset(id)?);
                    // Of what is made row by row whole rows, as those who wait for a share of them expect.
                    let rows =
                        tensor.shape.first().filter(|&&rows| by_rows && rows > 0 && bytes.len().is_multiple_of(rows));
                    let rows = rows.copied().unwrap_or(bytes.len());
                    let row = bytes.len() / rows.max(1);
                    let part = rows * index / of * row..rows * (index + 1) / of * row;
                    let outside = || VmError::Setup(format!("value {} lies outside of the arena", id.0));
                    let to = self.arena.get_mut(from + part.start..from + part.end).ok_or_else(outside)?;
                    to.copy_from_slice(&bytes[part]);
                }
            }
        }
        Ok(())
    }

    fn arena_offset(&self, id: ValueId) -> Result<usize, VmError> {
        let none = || VmError::Setup(format!("value {} has no place", id.0));
        usize::try_from(self.plan.placement(id).ok_or_else(none)?.offset).map_err(|_| none())
    }

    /// A value as it is now.
    fn read(&self, id: ValueId) -> Result<Tensor, VmError> {
        let graph = &self.plan.graph;
        let missing = || VmError::Setup(format!("`{}` is not given", graph.value(id).name));
        let given = |id: ValueId| self.inputs.get(&id).cloned().ok_or_else(missing);
        match self.plan.location(id) {
            Some(ValueLocation::KvCache(cache)) => return given(cache),
            Some(ValueLocation::Weight | ValueLocation::StepInput(_)) => return given(id),
            Some(ValueLocation::Arena(_)) | None => {}
        }
        let (ty, from) = (graph.ty(id), self.arena_offset(id)?);
        let outside = || VmError::Setup(format!("value {} lies outside of the arena", id.0));
        let bytes = self.arena.get(from..from + ty.bytes(&self.dims)).ok_or_else(outside)?;
        Ok(match ty.activation_format {
            Some(layout) => {
                let shape: Vec<usize> = ty.shape.iter().map(|d| d.get(&self.dims)).collect();
                Tensor::quantized(layout, shape, bytes.to_vec())
            }
            None => Tensor::from_memory(ty, &self.dims, bytes),
        })
    }

    /// Whether a step's outputs are the reference's.
    fn compare(&mut self, task: u32, step: usize) -> Result<(), VmError> {
        let (plan, mut outputs) = (self.plan, Vec::new());
        let node = &plan.graph.nodes[plan.steps[step].node as usize];
        for &id in &node.outs {
            let got = self.read(id)?;
            let name = &plan.graph.value(id).name;
            let wanted = self.wanted[id.index()].as_ref();
            let wanted = wanted.ok_or_else(|| VmError::Setup(format!("nothing is known of `{name}`")))?;
            if let Some((element, got, wanted)) = first_element(&got, wanted) {
                let (op, value) = (node.name().to_owned(), name.clone());
                let differs = Difference { task, step, op, value, element, got, wanted };
                return Err(VmError::Differs(Box::new(differs)));
            }
            if plan.graph.kv_cache_of(id).is_none() {
                outputs.push((name.clone(), got));
            }
        }
        self.report.outputs = outputs;
        Ok(())
    }
}

/// Every value of the plan's graph, by the references.
fn every_value(plan: &Plan, inputs: &HashMap<ValueId, Tensor>) -> Result<Vec<Option<Tensor>>, VmError> {
    let graph = &plan.graph;
    let mut values: Vec<Option<Tensor>> = vec![None; graph.values.len()];
    for (&id, tensor) in inputs {
        values[id.index()] = Some(tensor.clone());
    }
    for node in &graph.nodes {
        let find = |id: &ValueId| {
            let missing = || VmError::Setup(format!("`{}` is not given", graph.value(*id).name));
            values[id.index()].as_ref().ok_or_else(missing)
        };
        let ins = node.ins.iter().map(find).collect::<Result<Vec<_>, _>>()?;
        let outs = evaluate_node(Op::eval, node, &ins).map_err(|e| VmError::Setup(e.to_string()))?;
        for (&id, tensor) in node.outs.iter().zip(outs) {
            values[id.index()] = Some(tensor);
        }
    }
    Ok(values)
}

/// The first element that is not the same, bit for bit, and both values. Any NaN is as good as another.
fn first_element(got: &Tensor, wanted: &Tensor) -> Option<(usize, String, String)> {
    let (a, b) = (got.memory(), wanted.memory());
    if a == b {
        return None;
    }
    if got.activation_format().is_some() {
        let at = a.iter().zip(&b).position(|(a, b)| a != b).unwrap_or(a.len().min(b.len()));
        let byte = |bytes: &[u8]| bytes.get(at).map_or("nothing".into(), |b| format!("byte {b}"));
        return Some((at, byte(&a), byte(&b)));
    }
    let (a, b) = (got.scalars(), wanted.scalars());
    let same = |x: f64, y: f64| x.to_bits() == y.to_bits() || (x.is_nan() && y.is_nan());
    let at = a.iter().zip(&b).position(|(x, y)| !same(x.as_f64(), y.as_f64()));
    let at = at.or((a.len() != b.len()).then_some(a.len().min(b.len())))?;
    let show = |all: &[yirage_ir::expr::Scalar]| all.get(at).map_or("nothing".into(), ToString::to_string);
    Some((at, show(&a), show(&b)))
}
