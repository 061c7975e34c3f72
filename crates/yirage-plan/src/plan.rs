//! The plan: the lowered graph, which kernel runs each node, where each value lies, and in which order.

use crate::precision::Precision;
use crate::program::{ExecutorKind, Partitioning, Stage, StageCondition, TaskProgram};
use crate::weights::WeightPlan;
use yirage_ir::{Dims, Graph, ValueId};

/// A kernel by name, resolved when a device loads the plan.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct KernelRef {
    /// `backend/kernel@version`.
    pub name: String,
    /// The variant that the device runs, as its instruction set.
    pub variant: String,
    /// Its stages, in order.
    pub stages: Vec<Stage>,
    /// Whether it uses scratch memory that the device divides among the kernels of a phase.
    pub scratch: bool,
}

impl KernelRef {
    /// One that needs no scratch.
    pub fn new(name: impl Into<String>, variant: impl Into<String>, stages: Vec<Stage>) -> KernelRef {
        KernelRef { name: name.into(), variant: variant.into(), stages, scratch: false }
    }
}

/// Where a value of the graph lies in the plan's arena. What lives only inside a region has no place: it lies in the memory
/// of the worker that makes it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct BufferPlacement {
    /// The value.
    pub value: ValueId,
    /// First byte.
    pub offset: u64,
    /// Bytes at the bucket's largest sizes.
    pub bytes: u64,
}

/// One node to run.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct PlanStep {
    /// The node.
    pub node: u32,
    /// Which of [`Plan::kernels`].
    pub kernel: u32,
    /// Steps of one phase run without waiting for each other; all of a phase end before the next begins.
    pub phase: u32,
}

/// A compiled graph for one bucket on one target. A value: equal inputs give equal plans, byte for byte.
#[derive(Clone, PartialEq, Debug)]
pub struct Plan {
    /// The target, in one line.
    pub target: String,
    /// How closely products are computed.
    pub precision: Precision,
    /// The largest sizes the plan can run.
    pub bucket: Dims,
    /// The graph after all passes.
    pub graph: Graph,
    /// How the weights of the graph lie.
    pub weights: WeightPlan,
    /// Kernels used.
    pub kernels: Vec<KernelRef>,
    /// Bytes of the arena that holds all placed values.
    pub arena: u64,
    /// Where values lie.
    pub placements: Vec<BufferPlacement>,
    /// What runs, phase by phase.
    pub steps: Vec<PlanStep>,
    /// The same as tasks, one program an executor.
    pub programs: Vec<TaskProgram>,
}

impl Plan {
    /// The place of a value.
    pub fn placement(&self, value: ValueId) -> Option<&BufferPlacement> {
        self.placements.iter().find(|p| p.value == value)
    }

    /// Number of phases.
    pub fn phases(&self) -> u32 {
        self.steps.last().map_or(0, |s| s.phase + 1)
    }

    /// The stages that step `step` has, by number.
    pub fn stages(&self, step: usize) -> impl Iterator<Item = (u32, Partitioning)> {
        let s = &self.steps[step];
        let node = &self.graph.nodes[s.node as usize];
        let of_node = |when: StageCondition| match when {
            StageCondition::Always => true,
            StageCondition::FloatInput => {
                node.ins.first().is_some_and(|&x| self.graph.ty(x).activation_format.is_none())
            }
            StageCondition::NoKvCache => !node.ins.iter().any(|&i| self.graph.kv_cache_of(i).is_some()),
        };
        let stages = self.kernels[s.kernel as usize].stages.iter().enumerate();
        stages.filter(move |(_, stage)| of_node(stage.when)).map(|(i, stage)| (i as u32, stage.partitioning))
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
