//! The report: what is known of a plan, as data.
//!
//! Bytes are bytes, times are seconds, and offsets are those in the plan's arena. What is not known is absent.

use crate::measured::PlanTimings;
use serde::Serialize;
use yirage_compile::PassDecisions;
use yirage_hal::{Ceilings, Limit, SelectionReason};
use yirage_ir::Format;
use yirage_ir::cost::StepSizes;
use yirage_plan::work::ResidentSizes;
use yirage_plan::{ExecutorKind, VerifiedPlan};

/// What is reported of.
pub struct ReportInput<'a> {
    /// The plan.
    pub plan: &'a VerifiedPlan,
    /// What the passes decided while it was compiled.
    pub passes: &'a [PassDecisions],
    /// The step whose times are predicted.
    pub step: StepSizes<'a>,
    /// What weights and states take on the device.
    pub sizes: &'a dyn ResidentSizes,
    /// What the device can do at most; empty where it does not measure itself.
    pub ceilings: &'a Ceilings,
    /// The ceiling of arithmetic that products with weights of a format meet.
    pub limit_of: &'a dyn Fn(Format) -> Limit,
    /// The executor of its next step, and why, where it was loaded.
    pub chosen: Option<(ExecutorKind, SelectionReason)>,
    /// How the device's kernels go about products, and why, where they have several ways.
    pub variant: Option<String>,
    /// What was measured.
    pub measured: Option<&'a PlanTimings>,
}

/// A plan, explained.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Report {
    /// The graph's name.
    pub graph: String,
    /// The target, in one line.
    pub target: String,
    /// How closely products are computed.
    pub precision: String,
    /// The largest sizes that the plan takes.
    pub bucket: ReportDims,
    /// The step whose times are told.
    pub step: ReportDims,
    /// The passes, in order.
    pub passes: Vec<PassReport>,
    /// The fused nodes.
    pub regions: Vec<RegionReport>,
    /// What the device can do at most.
    pub ceilings: Vec<DeviceCeiling>,
    /// The steps of the plan, in order.
    pub kernels: Vec<KernelReport>,
    /// Seconds that the limits allow for all kernels, one after the other.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub least_seconds: Option<f64>,
    /// Where values lie.
    pub memory: PlanMemoryReport,
    /// How the plan is run.
    pub executor: ExecutorReport,
    /// How the device's kernels go about products, and why.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub variant: Option<String>,
    /// What was measured.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub measured: Option<MeasuredReport>,
}

/// Sizes of a step.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
pub struct ReportDims {
    /// Tokens.
    pub tokens: u32,
    /// Sequences.
    pub seqs: u32,
    /// Cache blocks of the longest sequence.
    pub blocks: u32,
    /// Rows whose logits are wanted.
    pub rows: u32,
}

impl From<yirage_ir::Dims> for ReportDims {
    fn from(dims: yirage_ir::Dims) -> ReportDims {
        let yirage_ir::Dims { tokens, seqs, blocks, rows } = dims;
        ReportDims { tokens, seqs, blocks, rows }
    }
}

/// A pass of the compiler.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct PassReport {
    /// Its name.
    pub pass: &'static str,
    /// Nodes before it.
    pub before: usize,
    /// Nodes after it.
    pub after: usize,
    /// What it decided, in order.
    pub decisions: Vec<DecisionReport>,
}

/// A decision of a pass.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct DecisionReport {
    /// Whether it was done; else it was refused.
    pub done: bool,
    /// The values it is about.
    pub values: Vec<String>,
    /// What was done or refused.
    pub what: String,
    /// Why.
    pub why: String,
}

/// A fused node.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct RegionReport {
    /// Which of the plan's nodes.
    pub node: usize,
    /// Its kind.
    pub kind: &'static str,
    /// The values that it gives.
    pub values: Vec<String>,
    /// Its ops, in order.
    pub ops: Vec<&'static str>,
    /// Why it is one node: what was decided of the values inside of it.
    pub reasons: Vec<String>,
}

/// What a device can do at most.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct DeviceCeiling {
    /// Of what.
    pub limit: String,
    /// Bytes or operations a second.
    pub per_second: f64,
}

/// A step of the plan.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct KernelReport {
    /// Its number.
    pub step: usize,
    /// Steps of one phase do not wait for each other.
    pub phase: u32,
    /// The op, or the kind of region.
    pub op: String,
    /// The first value that it makes.
    pub value: String,
    /// `backend/kernel@version`.
    pub kernel: String,
    /// Bytes of weights that it reads.
    pub weight_bytes: f64,
    /// Bytes of cached keys and values that it reads.
    pub cache_bytes: f64,
    /// Bytes of other operands that it reads and makes.
    pub activation_bytes: f64,
    /// Operations of products, contractions and attention.
    pub operations: f64,
    /// Seconds that its bytes take at the device's bandwidth.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub memory_seconds: Option<f64>,
    /// Seconds that its operations take at the device's peak.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub arithmetic_seconds: Option<f64>,
    /// The longer of the two: what it takes at least. Bytes that a cache holds arrive sooner.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub predicted_seconds: Option<f64>,
    /// Which of the two that is: `memory` or `arithmetic`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bound: Option<&'static str>,
    /// Seconds it took, the median of the steps that were measured.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub measured_seconds: Option<f64>,
    /// Predicted over measured: 1 is the limit itself. More is reached only by bytes that a cache holds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub share_of_limit: Option<f64>,
}

/// Where values lie.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct PlanMemoryReport {
    /// Bytes of the arena.
    pub arena_bytes: u64,
    /// Bytes of all values, if each had its own.
    pub value_bytes: u64,
    /// Bytes of the values that are alive in the phase that has the most of them: no arena is smaller.
    pub alive_bytes: u64,
    /// Phases of the plan.
    pub phases: u32,
    /// The values, by offset.
    pub values: Vec<PlacedValue>,
}

/// A value in the arena.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct PlacedValue {
    /// Its name.
    pub name: String,
    /// Its type.
    #[serde(rename = "type")]
    pub ty: String,
    /// First byte.
    pub offset: u64,
    /// Bytes at the bucket's largest sizes.
    pub bytes: u64,
    /// The phase that makes it.
    pub from: u32,
    /// The last that reads it; absent for outputs, which stay.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub to: Option<u32>,
}

/// How the plan is run.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct ExecutorReport {
    /// The executor of the next step.
    pub chosen: &'static str,
    /// Why it is that one.
    pub why: String,
    /// Workers that share a step.
    pub workers: u32,
    /// The executors of the target, each with the tasks and counters of its program.
    pub programs: Vec<ProgramReport>,
}

/// A task program.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct ProgramReport {
    /// The executor it is for.
    pub executor: &'static str,
    /// Its tasks; absent where the device makes the program by itself.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tasks: Option<usize>,
    /// Waits of all tasks.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub waits: Option<usize>,
}

/// How the times were measured.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct MeasuredReport {
    /// The executor whose steps they are of.
    pub executor: &'static str,
    /// How many steps.
    pub steps: usize,
    /// Seconds of a whole step, the median.
    pub step_seconds: f64,
    /// Tasks that were dropped because the profile was full.
    pub dropped: u64,
}
