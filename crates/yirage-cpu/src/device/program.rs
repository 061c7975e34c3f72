//! A plan loaded on the CPU: kernels bound to their operands, and the task programs that walk them.

use super::attend::{Attend, Plans};
use super::cpu::{Booked, Purpose, Shared, book};
use super::experts::Experts;
use super::gather::GatherRows;
use super::operand::{Env, Operand, StateRef, WeightRef};
use super::products::Products;
use super::rows_kernel::RowsKernel;
use super::sample::SampleTokens;
use crate::isa::Isa;
use crate::linear::Precision;
use crate::memory::HugeBuf;
use crate::walk::{Tasks, Walker, Work};
use std::collections::HashMap;
use std::sync::{Arc, Mutex};
use yirage_hal::{Bindings, HalError, Program, Slot, Values};
use yirage_ir::{DType, Dims, Graph, Node, NodeKind, Op, Source, ValueId};
use yirage_plan::{ExecutorKind, Plan, Task};

/// A kernel bound to its operands.
pub(super) trait Kernel: Send + Sync {
    /// Runs one task's part of a stage, one of those that the kernel's facts list ([`super::cpu`]).
    ///
    /// # Safety
    /// Everything before it in the task program has ended: earlier stages, and what writes what this one reads or reads
    /// what it writes (programs are verified to that end).
    unsafe fn run(&self, stage: u32, run: &Run<'_>, work: Work<'_>);

    /// A worker has nothing to do until this task, for the `look`th time. What it warms must not depend on what has not
    /// ended.
    fn waiting(&self, stage: u32, run: &Run<'_>, work: Work<'_>, look: u32) {
        let _ = (stage, run, work, look);
    }

    /// Workers among which a step of these sizes can be shared.
    fn workers(&self, dims: &Dims) -> usize {
        let _ = dims;
        usize::MAX
    }
}

/// One run of a program, as its kernels see it.
pub(super) struct Run<'a> {
    pub(super) env: Env<'a>,
    pub(super) plans: &'a Plans,
    pub(super) isa: Isa,
}

/// Hands out scratch memory: kernels of one phase get disjoint bytes, phases share them.
#[derive(Default)]
pub(super) struct ScratchSizes {
    used: usize,
    peak: usize,
}

impl ScratchSizes {
    /// The offset of `bytes` more bytes.
    pub(super) fn take(&mut self, bytes: usize) -> usize {
        let at = self.used;
        self.used += bytes.next_multiple_of(64);
        self.peak = self.peak.max(self.used);
        at
    }
}

/// What binding a kernel needs to know.
pub(super) struct Binder<'a> {
    pub(super) shared: &'a Arc<Shared>,
    pub(super) plan: &'a Plan,
    pub(super) bindings: &'a Bindings,
    pub(super) precision: Precision,
    pub(super) scratch: ScratchSizes,
    pub(super) plans: Plans,
    /// Quantised values held token by token (those that chosen experts read), and in how many parts a token's row.
    token_parts: HashMap<ValueId, usize>,
    slots: HashMap<ValueId, usize>,
}

/// The program.
pub(super) struct CpuProgram {
    shared: Arc<Shared>,
    /// One for each step.
    kernels: Vec<Box<dyn Kernel>>,
    walkers: Vec<(ExecutorKind, Walker)>,
    plans: Plans,
    arena: HugeBuf,
    scratch: HugeBuf,
    /// Places of the outputs; none for cache states, which stay where they are.
    outputs: Vec<Option<(usize, yirage_ir::Type)>>,
    _booked: Booked,
}

impl CpuProgram {
    pub(super) fn new(shared: &Arc<Shared>, plan: &Plan, bindings: &Bindings) -> Result<CpuProgram, HalError> {
        let mut binder = Binder::new(shared, plan, bindings);
        let mut kernels: Vec<Box<dyn Kernel>> = Vec::new();
        for (s, step) in plan.steps.iter().enumerate() {
            if s > 0 && plan.steps[s - 1].phase != step.phase {
                binder.scratch.used = 0;
            }
            kernels.push(binder.bind(step.node as usize, &plan.kernels[step.kernel as usize].name)?);
        }
        let walkers = plan.programs.iter().map(|p| (p.kind, Walker::new(plan, p))).collect();
        let outputs = plan.graph.outputs.iter().map(|&id| match binder.value(id)? {
            Operand::Arena { offset, ty } => Ok(Some((offset, ty))),
            Operand::State(_) => Ok(None),
            _ => Err(HalError::Load("an output is not a computed value".into())),
        });
        let outputs = outputs.collect::<Result<_, _>>()?;
        let memory = |bytes: usize| {
            HugeBuf::zeroed(bytes).map_err(|e| HalError::OutOfMemory {
                pool: "arena",
                wanted: bytes as u64,
                detail: e.to_string(),
            })
        };
        let (arena, scratch) = (memory(plan.arena as usize)?, memory(binder.scratch.peak)?);
        let booked = book(shared, Purpose::Arena, (arena.len() + scratch.len()) as u64);
        let plans = binder.plans;
        Ok(CpuProgram { shared: shared.clone(), kernels, walkers, plans, arena, scratch, outputs, _booked: booked })
    }
}

impl Program for CpuProgram {
    fn run(&mut self, kind: ExecutorKind, dims: &Dims, slots: &[Slot<'_>]) -> Result<(), HalError> {
        let slots = &slots.iter().map(words).collect::<Result<Vec<_>, _>>()?;
        self.plans.prepare(dims, slots, self.shared.pool.count())?;
        let failed = Mutex::new(None);
        let env = Env { dims, slots, arena: &self.arena, scratch: &self.scratch, failed: &failed };
        let run = Run { env, plans: &self.plans, isa: self.shared.isa };
        // Waking the others costs more than what one worker does anyway.
        let alone = self.kernels.iter().all(|kernel| kernel.workers(dims) <= 1);
        let missing = || HalError::Step(format!("the plan was loaded without a program for the executor `{kind}`"));
        let (_, walker) = self.walkers.iter_mut().find(|(k, _)| *k == kind).ok_or_else(missing)?;
        let walked = walker.run(&self.shared.pool, alone, &Step { kernels: &self.kernels, run });
        walked.map_err(|e| HalError::Device(e.to_string()))?;
        match failed.into_inner() {
            Ok(Some(error)) => Err(error),
            _ => Ok(()),
        }
    }

    fn output(&self, index: usize, dims: &Dims) -> Result<Values<'_>, HalError> {
        let missing = || HalError::Step(format!("output {index} is not there, or is a cache state"));
        let (offset, ty) = self.outputs.get(index).and_then(Option::as_ref).ok_or_else(missing)?;
        let (first, elems) = (self.arena.as_ptr().wrapping_add(*offset), ty.elems(dims));
        // SAFETY: verified plans place the whole value inside the arena, 64-byte aligned; nothing runs meanwhile.
        unsafe {
            match ty.dtype {
                DType::F32 => Ok(Values::F32(std::slice::from_raw_parts(first.cast(), elems))),
                DType::I32 => Ok(Values::I32(std::slice::from_raw_parts(first.cast(), elems))),
                other => Err(HalError::Step(format!("output {index} is {other}, which does not leave the device"))),
            }
        }
    }
}

/// The kernels of a program in one run.
struct Step<'a> {
    kernels: &'a [Box<dyn Kernel>],
    run: Run<'a>,
}

impl Tasks for Step<'_> {
    unsafe fn run(&self, task: &Task, work: Work<'_>) {
        // SAFETY: the caller's contract.
        unsafe { self.kernels[task.step as usize].run(task.stage, &self.run, work) }
    }

    fn waiting(&self, task: &Task, work: Work<'_>, look: u32) {
        self.kernels[task.step as usize].waiting(task.stage, &self.run, work, look);
    }
}

/// The words of a slot; another program's output is read where it lies.
fn words<'a>(slot: &Slot<'a>) -> Result<&'a [i32], HalError> {
    match *slot {
        Slot::Words(words) => Ok(words),
        Slot::Output { of, index, dims } => match of.output(index, &dims)? {
            Values::I32(words) => Ok(words),
            // SAFETY: both are plain 32-bit words of the same size and alignment.
            Values::F32(floats) => Ok(unsafe { std::slice::from_raw_parts(floats.as_ptr().cast(), floats.len()) }),
        },
    }
}

impl<'a> Binder<'a> {
    fn new(shared: &'a Arc<Shared>, plan: &'a Plan, bindings: &'a Bindings) -> Binder<'a> {
        let precision = match plan.precision {
            yirage_plan::Precision::Exact => Precision::Exact,
            yirage_plan::Precision::Fast => Precision::Fast,
        };
        let slots = plan.graph.inputs_of(Source::Slot).enumerate().map(|(i, id)| (id, i)).collect();
        let token_parts = token_parts(&plan.graph);
        let (scratch, plans) = (ScratchSizes::default(), Plans::default());
        Binder { shared, plan, bindings, precision, scratch, plans, token_parts, slots }
    }

    fn bind(&mut self, n: usize, kernel: &str) -> Result<Box<dyn Kernel>, HalError> {
        let ops = self.ops(n)?;
        Ok(match kernel {
            "cpu/rows@1" => Box::new(RowsKernel::new(ops)?),
            "cpu/products@1" => Box::new(Products::new(self, ops)?),
            "cpu/experts@1" => Box::new(Experts::new(self, ops)?),
            "cpu/attention@1" => Box::new(Attend::new(self, ops)?),
            "cpu/sample@1" => Box::new(SampleTokens::new(self, ops)?),
            "cpu/gather@1" => Box::new(GatherRows::new(ops)?),
            other => return Err(HalError::Load(format!("this device has no kernel {other}"))),
        })
    }

    /// The ops of a node with their operands: itself, or those of its region.
    fn ops(&self, n: usize) -> Result<Vec<BoundOp>, HalError> {
        let node = &self.plan.graph.nodes[n];
        match &node.kind {
            NodeKind::Op(op) => {
                let operands = |ids: &[ValueId]| ids.iter().map(|&id| self.value(id)).collect::<Result<Vec<_>, _>>();
                let parts = node.outs.iter().find_map(|o| self.token_parts.get(o)).copied();
                Ok(vec![BoundOp { op: op.clone(), ins: operands(&node.ins)?, outs: operands(&node.outs)?, parts }])
            }
            NodeKind::Region(region) => {
                let bind = |inner: &Node| self.inner_op(n, node, &region.graph, inner);
                region.graph.nodes.iter().map(bind).collect()
            }
        }
    }

    fn inner_op(&self, n: usize, outer: &Node, graph: &Graph, inner: &Node) -> Result<BoundOp, HalError> {
        let NodeKind::Op(op) = &inner.kind else {
            return Err(HalError::Load("this device runs no region inside a region".into()));
        };
        let operands = |ids: &[ValueId]| {
            let of = |&id: &ValueId| self.inner_value(n, outer, graph, id);
            ids.iter().map(of).collect::<Result<Vec<_>, _>>()
        };
        let leaves = |id: &ValueId| {
            let at = graph.outputs.iter().position(|o| o == id);
            at.and_then(|at| self.token_parts.get(&outer.outs[at]))
        };
        let parts = inner.outs.iter().find_map(leaves).copied();
        Ok(BoundOp { op: op.clone(), ins: operands(&inner.ins)?, outs: operands(&inner.outs)?, parts })
    }

    fn inner_value(&self, n: usize, outer: &Node, graph: &Graph, id: ValueId) -> Result<Operand, HalError> {
        if let Some(state) = graph.state_of(id) {
            let at = graph.inputs.iter().position(|&i| i == state);
            let at = at.ok_or_else(|| HalError::Load("a region's state is not its input".into()))?;
            return self.value(outer.ins[at]);
        }
        if let Some(at) = graph.inputs.iter().position(|&i| i == id) {
            return self.value(outer.ins[at]);
        }
        if let Some(at) = graph.outputs.iter().position(|&o| o == id) {
            return self.value(outer.outs[at]);
        }
        self.placed(Some(n as u32), graph, id)
    }

    fn value(&self, id: ValueId) -> Result<Operand, HalError> {
        let graph = &self.plan.graph;
        let value = graph.value(id);
        if let Some(state) = graph.state_of(id) {
            let name = &graph.value(state).name;
            let handle = self.bindings.states.get(name);
            let handle = handle.ok_or_else(|| HalError::Load(format!("state `{name}` is not bound")))?;
            return Ok(Operand::State(Arc::new(StateRef(handle.0.clone()))));
        }
        match value.source {
            Source::Slot => Ok(Operand::Slot { index: self.slots[&id], ty: value.ty.clone() }),
            Source::Weight => {
                let handle = self.bindings.weights.get(&value.name);
                let handle = handle.ok_or_else(|| HalError::Load(format!("weight `{}` is not bound", value.name)))?;
                Ok(Operand::Weight(Arc::new(WeightRef(handle.0.clone()))))
            }
            _ => self.placed(None, graph, id),
        }
    }

    fn placed(&self, region: Option<u32>, graph: &Graph, id: ValueId) -> Result<Operand, HalError> {
        let place = self.plan.place(region, id);
        let place = place.ok_or_else(|| HalError::Load(format!("`{}` has no place", graph.value(id).name)))?;
        Ok(Operand::Arena { offset: place.offset as usize, ty: graph.ty(id).clone() })
    }
}

/// An op and where its inputs and outputs lie.
pub(super) struct BoundOp {
    pub(super) op: Op,
    pub(super) ins: Vec<Operand>,
    pub(super) outs: Vec<Operand>,
    /// If its quantised output is held token by token: in how many parts a token's row.
    pub(super) parts: Option<usize>,
}

/// The values that products with chosen experts read, with the parts of a row that are read apart.
fn token_parts(graph: &Graph) -> HashMap<ValueId, usize> {
    let parts = |op: &Op| match op {
        Op::ExpertLinear(e) => Some(if e.shared { 1 } else { e.top_k as usize }),
        _ => None,
    };
    let of = |node: &Node| match &node.kind {
        NodeKind::Op(op) => parts(op),
        NodeKind::Region(r) => r.graph.nodes.iter().find_map(|n| match &n.kind {
            NodeKind::Op(op) => parts(op),
            NodeKind::Region(_) => None,
        }),
    };
    graph.nodes.iter().filter_map(|n| Some((n.ins.first().copied()?, of(n)?))).collect()
}
