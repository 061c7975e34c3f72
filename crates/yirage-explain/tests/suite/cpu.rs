//! Profiles of the CPU: one span a task that ran, by 1 to 4 workers and both executors, and the trace made of them.

use serde_json::Value;
use std::collections::BTreeMap;
use std::sync::Arc;
use yirage_compile::{CompileOptions, compile, plan_weights};
use yirage_cpu::Cpu;
use yirage_explain::{PlanRun, run, write_trace};
use yirage_hal::{Backend, Device, OpenOptions, Profile, SelectionReason};
use yirage_ir::{Dims, text};
use yirage_plan::{ExecutorKind, VerifiedPlan};

const DIMS: Dims = Dims { tokens: 96, seqs: 1, blocks: 1, rows: 1 };

/// Two layers of products, norms and maps: phases with several steps, shares and drained stages.
const GRAPH: &str = r#"graph layers {
  input %x: f32[Tokens, 256]
  weight %norm: f32[256]
  weight %up: q8_0[512, 256]
  weight %gate: q8_0[512, 256]
  weight %down: f32[256, 512]
  %n = rms_norm{eps=1e-5, width=256, unit_offset=false}(%x, %norm): f32[Tokens, 256]
  %u = linear{groups=1}(%n, %up): f32[Tokens, 512]
  %g = linear{groups=1}(%n, %gate): f32[Tokens, 512]
  %h = map{expr="mul(silu(x0), x1)"}(%g, %u): f32[Tokens, 512]
  %d = linear{groups=1}(%h, %down): f32[Tokens, 256]
  %r = map{expr="add(x0, x1)"}(%x, %d): f32[Tokens, 256]
  %y = softmax(%r): f32[Tokens, 256]
  output %y
}"#;

fn cpu(threads: usize) -> Arc<dyn Device> {
    Cpu.open(0, &OpenOptions { threads: Some(threads), ..OpenOptions::default() }).unwrap().0
}

fn plan(device: &dyn Device) -> VerifiedPlan {
    let graph = text::parse(GRAPH).unwrap();
    let target = device.target();
    let weights = plan_weights(&graph, &target).unwrap();
    compile(&graph, DIMS, &target, &weights, &CompileOptions::default()).unwrap()
}

fn ran(threads: usize, kind: Option<ExecutorKind>) -> (VerifiedPlan, PlanRun) {
    let device = cpu(threads);
    let plan = plan(&*device);
    let ran = run(&*device, &plan, &DIMS, kind, None).unwrap();
    (plan, ran)
}

#[test]
fn every_task_that_ran_has_one_span_inside_of_its_step() {
    for threads in 1..=4 {
        for kind in [ExecutorKind::Steps, ExecutorKind::Persistent] {
            let (plan, PlanRun { profile, chosen, .. }) = ran(threads, Some(kind));
            assert_eq!((chosen.0, profile.workers, profile.dropped), (kind, threads, 0));
            let tasks = plan.program(kind).unwrap().tasks.len();
            assert!(!profile.runs.is_empty() && profile.tasks.len() == tasks * profile.runs.len(), "{threads} {kind}");
            let mut seen: BTreeMap<(usize, u32), usize> = BTreeMap::new();
            for task in &profile.tasks {
                *seen.entry((task.run, task.task)).or_default() += 1;
                let run = &profile.runs[task.run];
                assert!(run.kind == kind && run.began <= task.began && task.ended <= run.ended, "{task:?} {run:?}");
            }
            assert!(seen.len() == profile.tasks.len() && seen.keys().all(|(_, t)| (*t as usize) < tasks));
            no_overlaps(&profile);
        }
    }
}

/// On a worker one task ends before the next begins, so that together they take no longer than the wall's clock says.
fn no_overlaps(profile: &Profile) {
    for pair in profile.tasks.windows(2).filter(|pair| pair[0].worker == pair[1].worker) {
        assert!(pair[0].ended <= pair[1].began, "{pair:?}");
    }
    for (r, run) in profile.runs.iter().enumerate() {
        for worker in 0..profile.workers {
            let of = profile.tasks.iter().filter(|t| (t.run, t.worker) == (r, worker));
            assert!(of.map(|t| t.ended - t.began).sum::<u64>() <= run.ended - run.began);
        }
    }
}

#[test]
fn the_first_steps_measure_executors_and_every_kernel_has_a_time() {
    let (plan, ran) = ran(2, None);
    // On a machine that is busy with other things, time may be over before the choice is made.
    assert!(
        matches!(ran.chosen.1, SelectionReason::Measured { .. } | SelectionReason::Measuring { .. }),
        "{:?}",
        ran.chosen
    );
    let measured = ran.measured.unwrap();
    assert_eq!((measured.executor, measured.kernels.len()), (ExecutorKind::Steps, plan.steps.len()));
    assert!(measured.steps > 0 && measured.kernels.iter().all(Option::is_some));
}

/// Nanoseconds of a time in microseconds with three places.
fn nanoseconds(value: &Value) -> u64 {
    let text = value.to_string();
    let (whole, part) = text.split_once('.').unwrap_or((&text, ""));
    format!("{whole}{part:0<3}").parse().unwrap()
}

#[test]
fn the_trace_is_json_with_a_span_for_every_task_nested_in_its_step() {
    for threads in [1, 3] {
        let (_, ran) = ran(threads, None);
        let mut bytes = Vec::new();
        write_trace(&ran.profile, &mut bytes).unwrap();
        let trace: Value = serde_json::from_slice(&bytes).unwrap();
        let events = trace["traceEvents"].as_array().unwrap();
        let of = |cat: &str| events.iter().filter(|e| e["cat"] == cat).collect::<Vec<_>>();
        let (steps, tasks) = (of("step"), of("task"));
        assert_eq!(tasks.len(), ran.profile.tasks.len());
        assert!(steps.iter().all(|s| s["name"] == "layers" && s["ph"] == "X"));
        let span = |e: &Value| (nanoseconds(&e["ts"]), nanoseconds(&e["ts"]) + nanoseconds(&e["dur"]));
        let mut step = None;
        for event in events.iter().filter(|e| e["ph"] == "X") {
            if event["cat"] == "step" {
                step = Some((span(event), &event["tid"]));
                continue;
            }
            let ((began, ended), tid) = step.unwrap();
            let (from, to) = span(event);
            assert!(began <= from && to <= ended && *tid == event["tid"], "{event}");
            assert!(event["name"].as_str().unwrap().contains('`') && event["args"]["part"].is_string(), "{event}");
        }
        let names = events.iter().filter(|e| e["name"] == "thread_name").count();
        assert_eq!((names, &trace["otherData"]["dropped_tasks"]), (threads, &Value::from(0)));
    }
}

#[test]
fn a_variant_is_the_kernels_or_refused() {
    let device = cpu(1);
    let plan = plan(&*device);
    let ran = |variant| run(&*device, &plan, &DIMS, Some(ExecutorKind::Steps), Some(variant));
    assert!(ran("share=static,piece=4K").is_ok());
    assert!(ran("share=odd").unwrap_err().to_string().contains("drained or static"));
}

#[test]
fn a_device_has_one_profiler_and_without_it_nothing_is_kept() {
    let device = cpu(1);
    let first = device.profile(16).unwrap();
    assert!(Arc::ptr_eq(&first, &device.profile(99).unwrap()));
    let silent = cpu(1);
    assert!(silent.profile(usize::MAX).is_err(), "more than there is room for");
    let plan = plan(&*device);
    run(&*device, &plan, &DIMS, Some(ExecutorKind::Steps), None).unwrap();
    let profile = first.profile();
    assert!(profile.dropped > 0 && profile.tasks.len() <= 16, "16 tasks have room: {}", profile.dropped);
}
