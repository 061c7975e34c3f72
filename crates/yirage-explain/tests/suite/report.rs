//! What a report says of a plan, against sums done by hand.

use serde_json::Value;
use yirage_compile::{CompileOptions, PassDecisions, compile_explained, plan_weights};
use yirage_explain::{PlanTimings, Report, ReportInput, StoredSizes, limits, report, svg, text};
use yirage_hal::reference::Reference;
use yirage_hal::{
    Backend, Ceilings, Device, HalError, Limit, OpenOptions, Profile, ProfiledProgram, RunSpan, SelectionReason,
    TaskSpan,
};
use yirage_ir::cost::{SequenceSpan, StepSizes};
use yirage_ir::{Dims, text as graph_text};
use yirage_plan::{ExecutorKind, Partitioning, Stage, Target, VerifiedPlan};

const DIMS: Dims = Dims { tokens: 4, seqs: 1, blocks: 1, rows: 1 };
const SPANS: [SequenceSpan; 1] = [SequenceSpan { start: 0, tokens: 4, rows: 1 }];
/// Bytes and operations a second.
const BANDWIDTH: f64 = 1e6;
const PEAK: f64 = 1e6;

/// A product with what follows it, and a norm beside another reader of its input.
const GRAPH: &str = r#"graph g {
  input %x: f32[Tokens, 64]
  weight %w: f32[96, 64]
  weight %bias: f32[96]
  weight %norm: f32[96]
  %p = linear{groups=1}(%x, %w): f32[Tokens, 96]
  %b = map{expr="add(x0, x1)"}(%p, %bias): f32[Tokens, 96]
  %n = rms_norm{eps=1e-5, width=96, unit_offset=false}(%b, %norm): f32[Tokens, 96]
  %y = softmax(%n): f32[Tokens, 96]
  output %y, %b
}"#;

fn reference() -> std::sync::Arc<dyn Device> {
    Reference::new().open(0, &OpenOptions::default()).unwrap().0
}

/// That of the reference, whose kernels have no stages, with one stage each.
fn target(device: &dyn Device) -> Target {
    let mut target = device.target();
    target.kernels.iter_mut().for_each(|facts| facts.kernel.stages = vec![Stage::always(Partitioning::Static)]);
    target
}

fn compiled(device: &dyn Device) -> (VerifiedPlan, Vec<PassDecisions>) {
    compiled_for(&target(device))
}

fn compiled_for(target: &Target) -> (VerifiedPlan, Vec<PassDecisions>) {
    let graph = graph_text::parse(GRAPH).unwrap();
    let weights = plan_weights(&graph, target).unwrap();
    let mut told = Vec::new();
    let plan = compile_explained(&graph, DIMS, target, &weights, &CompileOptions::default(), &mut told).unwrap();
    (plan, told)
}

fn reported(ceilings: &Ceilings, measured: Option<&PlanTimings>) -> (VerifiedPlan, Report) {
    let device = reference();
    let (plan, passes) = compiled(&*device);
    let sizes = StoredSizes::new(&*device, &plan).unwrap();
    let subject = ReportInput {
        plan: &plan,
        passes: &passes,
        step: StepSizes { dims: DIMS, spans: &SPANS },
        sizes: &sizes,
        ceilings,
        limit_of: &|_| Limit::F32,
        variant: None,
        chosen: None,
        measured,
    };
    let report = report(&subject);
    (plan, report)
}

fn ceilings() -> Ceilings {
    Ceilings::new(vec![(Limit::MemoryRead, BANDWIDTH), (Limit::F32, PEAK)])
}

#[test]
fn a_kernel_takes_at_least_what_its_bytes_and_operations_take() {
    let (_, report) = reported(&ceilings(), None);
    let product = report.kernels.iter().find(|k| k.weight_bytes >= 96.0 * 64.0 * 4.0).unwrap();
    assert_eq!(product.operations, 2.0 * 4.0 * 96.0 * 64.0);
    assert_eq!(product.arithmetic_seconds, Some(product.operations / PEAK));
    let bytes = product.weight_bytes + product.cache_bytes + product.activation_bytes;
    assert_eq!(product.memory_seconds, Some(bytes / BANDWIDTH));
    let (memory, arithmetic) = (product.memory_seconds.unwrap(), product.arithmetic_seconds.unwrap());
    assert!(arithmetic > memory, "{product:?}");
    assert_eq!((product.predicted_seconds, product.bound), (Some(arithmetic), Some("arithmetic")));
    let all: f64 = report.kernels.iter().map(|k| k.predicted_seconds.unwrap()).sum();
    assert_eq!(report.least_seconds, Some(all));
    // The rows are read whole, and made whole: 4 rows of 96 elements each way, and whatever is an output besides.
    let rows = 4.0 * 96.0 * 4.0;
    let last = report.kernels.last().unwrap();
    assert!(last.activation_bytes >= 2.0 * rows && last.bound == Some("memory"), "{last:?}");
}

#[test]
fn a_device_without_limits_predicts_nothing() {
    let (_, report) = reported(&Ceilings::default(), None);
    assert!(report.least_seconds.is_none() && report.kernels.iter().all(|k| k.predicted_seconds.is_none()));
    assert!(text(&report, false).contains("no time is predicted"));
    assert!(svg(&report).contains("no times"));
}

#[test]
fn values_lie_in_the_arena_for_as_long_as_they_are_read() {
    let (plan, report) = reported(&ceilings(), None);
    let memory = &report.memory;
    assert_eq!(memory.values.len(), plan.placements.len());
    assert!(memory.alive_bytes <= memory.arena_bytes && memory.arena_bytes <= memory.value_bytes.max(plan.arena));
    for (i, a) in memory.values.iter().enumerate() {
        assert!(a.offset + a.bytes <= memory.arena_bytes && a.to.is_none_or(|to| to >= a.from));
        for b in &memory.values[..i] {
            let meet = a.to.is_none_or(|to| to >= b.from) && b.to.is_none_or(|to| to >= a.from);
            let share = a.offset < b.offset + b.bytes && b.offset < a.offset + a.bytes;
            assert!(!(meet && share), "{a:?} {b:?}");
        }
    }
    assert!(memory.values.iter().any(|v| v.name == "y" && v.to.is_none()), "an output stays: {memory:?}");
}

#[test]
fn regions_have_reasons_and_passes_their_decisions() {
    let (plan, report) = reported(&ceilings(), None);
    let regions = plan.graph.nodes.iter().filter(|n| matches!(n.kind, yirage_ir::NodeKind::Region(_))).count();
    assert_eq!(report.regions.len(), regions);
    assert!(report.regions.iter().all(|r| !r.reasons.is_empty() && !r.ops.is_empty()), "{:#?}", report.regions);
    assert!(report.passes.iter().any(|p| p.pass == "select" && p.decisions.len() == report.kernels.len()));
}

#[test]
fn the_executor_has_its_reason() {
    let (_, report) = reported(&ceilings(), None);
    assert_eq!((report.executor.chosen, &*report.executor.why), ("steps", "the device has no other"));
    assert_eq!(report.executor.programs.len(), 1);
    assert!(report.executor.programs[0].tasks.unwrap() >= report.kernels.len());
    assert!(SelectionReason::at_first(2, 2, false).to_string().contains("undecided"));
    assert!(SelectionReason::Measured { ratio: 0.8, pairs: 15 }.to_string().contains("0.800"));
}

/// A profile of `runs` runs in steps, in which a task of plan step s takes s + 1 microseconds on a worker, one after the
/// other; the first run takes ten times as long.
fn profile(plan: &VerifiedPlan, runs: u64) -> Profile {
    let program = ProfiledProgram {
        graph: plan.graph.name.clone(),
        bucket: plan.bucket,
        steps: (0..plan.steps.len()).map(|s| plan.step_name(s)).collect(),
        programs: plan.programs.clone(),
    };
    let mut made = Profile { workers: 1, programs: vec![program], ..Profile::default() };
    let mut now = 0;
    for run in 0..runs {
        let began = now;
        for (t, task) in plan.programs[0].tasks.iter().enumerate() {
            let took = 1000 * (u64::from(task.step) + 1) * if run == 0 { 10 } else { 1 };
            made.tasks.push(TaskSpan { run: run as usize, worker: 0, task: t as u32, began: now, ended: now + took });
            now += took;
        }
        let kind = ExecutorKind::Steps;
        made.runs.push(RunSpan { program: 0, kind, tokens: DIMS.tokens, seqs: DIMS.seqs, began, ended: now });
    }
    made
}

#[test]
fn measured_times_are_medians_of_warm_steps() {
    let (plan, _) = compiled(&*reference());
    let measured = PlanTimings::new(&plan, &DIMS, &profile(&plan, 4)).unwrap();
    assert_eq!((measured.steps, measured.executor), (3, ExecutorKind::Steps));
    for (s, took) in measured.kernels.iter().enumerate() {
        let tasks = plan.programs[0].tasks.iter().filter(|t| t.step as usize == s).count() as f64;
        let want = (s + 1) as f64 * tasks * 1e-6;
        assert!((took.unwrap() - want).abs() < 1e-12, "{s}: {took:?} {want}");
    }
    let whole: f64 = measured.kernels.iter().map(|k| k.unwrap()).sum();
    assert!((measured.step_seconds - whole).abs() < 1e-12);
    let (_, report) = reported(&ceilings(), Some(&measured));
    for kernel in &report.kernels {
        let share = kernel.predicted_seconds.unwrap() / kernel.measured_seconds.unwrap();
        assert_eq!(kernel.share_of_limit, Some(share));
    }
    assert_eq!(PlanTimings::new(&plan, &Dims { tokens: 3, ..DIMS }, &profile(&plan, 2)), None, "no such step ran");
    assert_eq!(PlanTimings::new(&plan, &DIMS, &profile(&plan, 1)).unwrap().steps, 1, "the only run counts");
}

#[test]
fn the_same_stands_in_text_json_and_picture() {
    let (plan, _) = compiled(&*reference());
    let measured = PlanTimings::new(&plan, &DIMS, &profile(&plan, 4)).unwrap();
    let (_, report) = reported(&ceilings(), Some(&measured));
    let json: Value = serde_json::from_str(&serde_json::to_string(&report).unwrap()).unwrap();
    assert_eq!(json["kernels"].as_array().unwrap().len(), report.kernels.len());
    assert_eq!(json["memory"]["arena_bytes"], report.memory.arena_bytes);
    assert_eq!(json["passes"][0]["pass"], "recognise");
    let said = text(&report, true);
    for part in ["passes:", "regions:", "kernels,", "memory: an arena", "executor: steps", "medians of 3 steps"] {
        assert!(said.contains(part), "{part}: {said}");
    }
    let picture = svg(&report);
    assert_eq!(picture.matches("class=\"least\"").count(), report.kernels.len());
    assert_eq!(picture.matches("class=\"took\"").count(), report.kernels.len());
    assert_eq!(picture.matches("class=\"value\"").count(), report.memory.values.len());
    assert_well_formed(&picture);
}

/// Every element is closed, and no bare sign stands in a text.
fn assert_well_formed(xml: &str) {
    let mut open: Vec<&str> = Vec::new();
    let mut rest = xml;
    while let Some(at) = rest.find('<') {
        assert!(!rest[..at].contains('>'), "{}", &rest[..at]);
        let end = rest.find('>').unwrap();
        let tag = &rest[at + 1..end];
        rest = &rest[end + 1..];
        if let Some(name) = tag.strip_prefix('/') {
            assert_eq!(open.pop(), Some(name));
        } else if !tag.ends_with('/') {
            open.push(tag.split_whitespace().next().unwrap());
        }
    }
    assert!(open.is_empty(), "{open:?}");
}

#[test]
fn a_device_that_keeps_no_times_says_so() {
    let device = reference();
    let (plan, _) = compiled_for(&device.target());
    let refused = yirage_explain::run(&*device, &plan, &DIMS, None, None).unwrap_err().to_string();
    assert!(refused.contains("profile") && refused.contains("reference"), "{refused}");
    assert!(matches!(device.profile(1), Err(HalError::Unsupported { .. })));
    let sizes = StoredSizes::new(&*device, &plan).unwrap();
    let wanted = limits(&plan.graph, &sizes, &SPANS, &|_| Limit::Bf16);
    assert!(wanted.contains(&Limit::MemoryRead) && wanted.contains(&Limit::F32));
}
