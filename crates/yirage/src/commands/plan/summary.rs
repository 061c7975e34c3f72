//! What a plan file holds, in short.

use crate::console::Console;
use crate::failure::CliFailure;
use serde::Serialize;
use yirage_ir::{Dims, Type};
use yirage_plan::Plan;
use yirage_plancache::{Interface, PlanKey};

/// What a plan file holds, in short.
#[derive(Serialize)]
pub(super) struct PlanFileSummary<'a> {
    graph: &'a str,
    /// In hexadecimal digits.
    structural_hash: String,
    compiler: &'a str,
    target: &'a str,
    precision: String,
    fused: bool,
    /// The largest sizes of a call.
    bucket: PlanBucketSummary,
    inputs: Vec<PlanValueSummary<'a>>,
    outputs: Vec<PlanValueSummary<'a>>,
    arena_bytes: u64,
    executors: Vec<&'static str>,
    /// The kernel of each step, by phase.
    steps: Vec<PlanStepSummary<'a>>,
    /// Whether all of it was proved for a device of this machine.
    proved: bool,
}

#[derive(Serialize)]
struct PlanBucketSummary {
    tokens: u32,
    seqs: u32,
    blocks: u32,
    rows: u32,
}

#[derive(Serialize)]
struct PlanValueSummary<'a> {
    name: &'a str,
    /// `input`, `weight`, `kv_cache` or, of outputs, `output`.
    kind: &'static str,
    r#type: String,
}

#[derive(Serialize)]
struct PlanStepSummary<'a> {
    phase: u32,
    kernel: &'a str,
    variant: &'a str,
    /// What it runs: an op or a region.
    node: String,
}

impl<'a> PlanFileSummary<'a> {
    /// Of what a file holds. A plan that is not proved may name nodes and kernels that are not there: their steps say so.
    pub(super) fn new(key: &'a PlanKey, interface: &'a Interface, plan: &'a Plan, proved: bool) -> PlanFileSummary<'a> {
        let named = |kind: &'static str, of: &'a [(String, Type)]| {
            of.iter().map(move |(name, ty)| PlanValueSummary { name, kind, r#type: ty.to_string() })
        };
        let Dims { tokens, seqs, blocks, rows } = key.bucket;
        let Interface { step_inputs, weights, kv_caches, outputs, .. } = interface;
        PlanFileSummary {
            graph: &interface.graph,
            structural_hash: format!("{:032x}", key.graph),
            compiler: &key.compiler,
            target: &key.target,
            precision: key.precision.to_string(),
            fused: key.fuse,
            bucket: PlanBucketSummary { tokens, seqs, blocks, rows },
            inputs: named("input", step_inputs)
                .chain(named("weight", weights))
                .chain(named("kv_cache", kv_caches))
                .collect(),
            outputs: named("output", outputs).collect(),
            arena_bytes: plan.arena,
            executors: plan.programs.iter().map(|program| program.kind.name()).collect(),
            steps: plan.steps.iter().map(|step| PlanStepSummary::of(plan, step)).collect(),
            proved,
        }
    }

    /// Prints it, as text or as JSON.
    ///
    /// # Errors
    /// [`CliFailure::Closed`].
    pub(super) fn print(&self, console: &Console) -> Result<(), CliFailure> {
        if console.json {
            return console.value(self);
        }
        let fused = if self.fused { "fused" } else { "not fused" };
        console
            .line(&format!("{}: {}, {fused}, structural hash {}", self.graph, self.precision, self.structural_hash))?;
        console.line(&format!("target {}, compiler {}", self.target, self.compiler))?;
        let PlanBucketSummary { tokens, seqs, blocks, rows } = self.bucket;
        console.line(&format!("at most {tokens} tokens, {seqs} sequences, {blocks} blocks, {rows} rows"))?;
        for of in self.inputs.iter().chain(&self.outputs) {
            console.line(&format!("  {} {}: {}", of.kind, of.name, of.r#type))?;
        }
        let (steps, arena) = (self.steps.len(), self.arena_bytes);
        console.line(&format!("{steps} steps, {arena} bytes of memory, executors: {}", self.executors.join(", ")))?;
        for step in &self.steps {
            console.line(&format!("  phase {}: {} {} for {}", step.phase, step.kernel, step.variant, step.node))?;
        }
        console.line(if self.proved {
            "proved for this device"
        } else {
            "nothing of it is proved: see `yirage plan check`"
        })
    }
}

impl<'a> PlanStepSummary<'a> {
    fn of(plan: &'a Plan, step: &yirage_plan::PlanStep) -> PlanStepSummary<'a> {
        let kernel = plan.kernels.get(step.kernel as usize);
        let node = plan.graph.nodes.get(step.node as usize);
        let (kernel, variant) = kernel.map_or(("no kernel", ""), |k| (k.name.as_str(), k.variant.as_str()));
        PlanStepSummary {
            phase: step.phase,
            kernel,
            variant,
            node: node.map_or("no node".into(), |n| n.name().to_string()),
        }
    }
}
