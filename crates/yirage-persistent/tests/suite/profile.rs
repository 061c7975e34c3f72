//! Times of tasks by worker: none of a worker overlap, and they make a trace.

use crate::support::{build, cpu, meta};
use yirage_hal::RunSpan;
use yirage_persistent::KernelConfig;
use yirage_plan::ExecutorKind;
use yirage_testkit::tiny;

#[test]
fn spans_of_a_worker_do_not_overlap_and_make_a_trace() {
    let config = KernelConfig { profiler_spans: Some(1 << 14), max_seq_length: 40, ..KernelConfig::default() };
    let mut kernel =
        build(&tiny::model("qwen3"), config.clone(), meta(&[vec![3, 4, 5]], 40)).compile(cpu(2), None).unwrap();
    let report = kernel.call(None).unwrap();
    let profile = kernel.profile().unwrap();
    assert_eq!((profile.workers, profile.dropped), (2, 0));
    assert!(profile.runs.len() as u64 >= report.steps, "{} runs of {} steps", profile.runs.len(), report.steps);
    for worker in 0..2 {
        let spans: Vec<_> = profile.tasks.iter().filter(|span| span.worker == worker).collect();
        assert!(!spans.is_empty());
        assert!(spans.iter().all(|span| span.began <= span.ended));
        assert!(spans.windows(2).all(|pair| pair[0].ended <= pair[1].began), "worker {worker}");
    }
    let mut trace = Vec::new();
    yirage_explain::write_trace(&profile, &mut trace).unwrap();
    let trace: serde_json::Value = serde_json::from_slice(&trace).unwrap();
    assert!(trace["traceEvents"].as_array().is_some_and(|events| events.len() > profile.tasks.len()));

    for kind in [ExecutorKind::Steps, ExecutorKind::Persistent] {
        let forced = KernelConfig { executor: Some(kind), ..config.clone() };
        let kernel = build(&tiny::model("qwen3"), forced, meta(&[vec![3, 4, 5]], 40));
        let mut kernel = kernel.compile(cpu(2), None).unwrap();
        kernel.call(None).unwrap();
        let profile = kernel.profile().unwrap();
        let of_model = |run: &&RunSpan| profile.programs[run.program].graph == "kernel";
        assert!(profile.runs.iter().filter(of_model).count() > 10);
        assert!(profile.runs.iter().filter(of_model).all(|run| run.kind == kind), "{kind}");
    }

    let none = KernelConfig { profiler_spans: None, ..config };
    let kernel = build(&tiny::model("qwen3"), none, meta(&[vec![3]], 40)).compile(cpu(2), None).unwrap();
    assert!(kernel.profile().is_none());
}
