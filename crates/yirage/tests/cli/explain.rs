//! `yirage explain`, and the profiles of commands that run steps. No test looks at a time.

use crate::support::{TINY, bedtime, keys, path, yirage};
use serde_json::Value;
use std::path::Path;

/// A layer of plain ops.
const GRAPH: &str = r#"graph mlp {
  input %x: f32[Tokens, 64]
  weight %w: q8_0[96, 64]
  %p = linear{groups=1}(%x, %w): f32[Tokens, 96]
  %g = map{expr="silu(x0)"}(%p): f32[Tokens, 96]
  %y = softmax(%g): f32[Tokens, 96]
  output %y, %p
}"#;

fn graph(folder: &Path) -> String {
    let file = folder.join("mlp.graph");
    std::fs::write(&file, GRAPH).unwrap();
    path(&file)
}

fn explained(subject: &str, more: &[&str]) -> Value {
    yirage(&[&["explain", subject, "--json", "-q"], more].concat()).json()
}

fn array<'a>(value: &'a Value, name: &str) -> &'a Vec<Value> {
    value[name].as_array().unwrap()
}

#[test]
fn a_model_is_explained_with_reasons_kernels_memory_and_executor() {
    let report = explained(TINY, &[]);
    let names = ["graph", "target", "precision", "passes", "regions", "ceilings", "kernels", "memory", "executor"];
    assert!(names.iter().all(|name| keys(&report).contains(name)), "{:?}", keys(&report));
    assert!(array(&report, "regions").iter().all(|r| !array(r, "reasons").is_empty()));
    for kernel in array(&report, "kernels") {
        assert!(kernel["predicted_seconds"].as_f64().unwrap() > 0.0, "{kernel}");
        assert!(kernel["bound"].is_string() && kernel["measured_seconds"].is_null());
    }
    let said = yirage(&["explain", TINY]).ran();
    assert_eq!(said.code, 0, "{}", said.err);
    assert!(said.out.contains("refused") && said.out.contains("executor: "), "{}", said.out);
}

#[test]
fn measured_kernels_have_times_and_shares() {
    for more in [&["--tokens", "1"][..], &["--tokens", "24", "--seqs", "2"]] {
        let report = explained(TINY, &[&["--measure"], more].concat());
        for kernel in array(&report, "kernels") {
            assert!(kernel["measured_seconds"].as_f64().unwrap() > 0.0, "{kernel}");
            assert!(kernel["share_of_limit"].as_f64().unwrap() > 0.0, "{kernel}");
        }
        assert!(report["measured"]["steps"].as_u64().unwrap() > 0);
    }
}

#[test]
fn a_graph_is_explained_and_measured_with_made_up_inputs() {
    let folder = tempfile::tempdir().unwrap();
    let file = graph(folder.path());
    let report = explained(&file, &["--tokens", "8", "--measure"]);
    assert_eq!((report["graph"].as_str(), report["step"]["tokens"].as_u64()), (Some("mlp"), Some(8)));
    assert!(array(&report, "kernels").iter().all(|k| k["measured_seconds"].as_f64().unwrap() > 0.0));
    let decisions = array(&report, "passes").iter().flat_map(|p| array(p, "decisions"));
    let refused =
        decisions.filter(|d| d["done"] == false).find(|d| d["why"].as_str().unwrap().contains("`p` is an output"));
    assert!(refused.is_some(), "the map may not take the product's value: {report}");
}

#[test]
fn a_graph_in_json_is_explained_and_profiled() {
    let folder = tempfile::tempdir().unwrap();
    crate::graph::files(folder.path());
    let file = |name: &str| path(&folder.path().join(name));
    assert_eq!(explained(&file("gate.json"), &[])["graph"], "gate");
    let (x, w) = (format!("x={}", file("x.npy")), format!("w={}", file("w.npy")));
    let run = ["graph", "run", &file("gate.json"), "--input", &x, "--input", &w, "--profile", &file("p.json")];
    let ran = yirage(&run).ran();
    assert_eq!(ran.code, 0, "{}", ran.err);
    // A step has a span on the track of each worker that ran tasks of it.
    assert!(events(&file("p.json"), "step").iter().all(|e| e["args"]["step"] == 0), "one call is one step");
    assert!(!events(&file("p.json"), "task").is_empty());
}

#[test]
fn what_cannot_be_explained_says_why() {
    let folder = tempfile::tempdir().unwrap();
    let file = |name: &str, text: &str| {
        let file = folder.path().join(name);
        std::fs::write(&file, text).unwrap();
        path(&file)
    };
    let (json, broken) = (file("g.json", "{}"), file("b.graph", "graph b { output %nothing }"));
    let profile = path(&folder.path().join("p.json"));
    for (arguments, code, part) in [
        (&["explain", &json][..], 1, "g.json"),
        (&["explain", &broken], 1, "b.graph"),
        (&["explain", TINY, "--tokens", "2", "--seqs", "3"], 2, "--tokens"),
        (&["explain", TINY, "--seqs", "0"], 2, "--seqs"),
        (&["explain", TINY, "--profile", &profile], 2, "--measure"),
        (&["explain", TINY, "--svg", "/no/such/folder/a.svg"], 1, "/no/such/folder/a.svg"),
        (&["run", TINY, "--prompt-ids", "1", "-n", "1", "--profile", "/no/such/folder/p"], 1, "/no/such/folder/p"),
        (
            &["run", TINY, "--prompt-ids", "1", "-n", "1", "--backend", "sim", "--profile", &profile],
            3,
            "times of tasks",
        ),
        (&["bench", TINY, "-b", "8,16", "--profile", &profile], 2, "--profile"),
    ] {
        let ran = yirage(arguments).ran();
        assert_eq!(ran.code, code, "{arguments:?}: {}", ran.err);
        assert!(ran.err.contains(part), "{arguments:?}: {}", ran.err);
    }
}

/// The events of a trace of one kind.
fn events(file: &str, kind: &str) -> Vec<Value> {
    let trace: Value = serde_json::from_str(&std::fs::read_to_string(file).unwrap()).unwrap();
    assert_eq!(trace["otherData"]["dropped_tasks"], 0);
    array(&trace, "traceEvents").iter().filter(|e| e["cat"] == kind).cloned().collect()
}

#[test]
fn a_profile_has_the_steps_that_ran() {
    let folder = tempfile::tempdir().unwrap();
    let file = path(&folder.path().join("steps.json"));
    let model = bedtime();
    let plain = ["run", &model, "Once upon a time", "--temperature", "0", "-n", "12", "--json", "-q"];
    let profiled = yirage(&[&plain[..], &["--profile", &file]].concat()).json();
    assert_eq!(profiled["tokens"], yirage(&plain).json()["tokens"], "the answer is the same");
    let (steps, tasks) = (events(&file, "step"), events(&file, "task"));
    // The model's own steps: the prompt's, and one for each token but the last.
    let of_model = |e: &&Value| e["name"] != "sample" && e["tid"] == 0;
    assert!(steps.iter().filter(of_model).count() >= 12 && tasks.len() > steps.len());
    let bench = ["bench", &model, "-p", "8", "-n", "0", "-r", "1", "-q", "--profile", &file];
    assert_eq!(yirage(&bench).ran().code, 0);
    assert!(!events(&file, "task").is_empty());
    yirage(&["explain", &model, "--measure", "--profile", &file, "--json"]).json();
    assert!(!events(&file, "task").is_empty());
}

pub(crate) fn tokens() {
    let ops = |tokens: &str| {
        let report = explained(TINY, &["--tokens", tokens]);
        array(&report, "kernels").iter().map(|k| k["operations"].as_f64().unwrap()).sum::<f64>()
    };
    assert!(ops("16") > 10.0 * ops("1"));
}

pub(crate) fn seqs() {
    assert_eq!(explained(TINY, &["--seqs", "3"])["step"]["tokens"], 3);
}

pub(crate) fn svg() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("plan.svg");
    let report = explained(TINY, &["--svg", &path(&file)]);
    let picture = std::fs::read_to_string(file).unwrap();
    assert_eq!(picture.matches("class=\"least\"").count(), array(&report, "kernels").len());
}

pub(crate) fn decisions(model: &str) {
    let said = |more: &[&str]| yirage(&[&["explain", model], more].concat()).ran().out;
    assert!(said(&["--decisions"]).lines().count() > said(&[]).lines().count());
}

pub(crate) fn profile() {
    let folder = tempfile::tempdir().unwrap();
    let file = path(&folder.path().join("p.json"));
    let ran = yirage(&["run", TINY, "--prompt-ids", "1,2", "-n", "2", "--profile", &file]).ran();
    assert!(ran.code == 0 && ran.err.contains("perfetto"), "{}", ran.err);
    assert!(!events(&file, "task").is_empty());
}
