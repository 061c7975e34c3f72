//! `yirage plan`: plans in files, written by one process and run by another after they are proved; and `explain --plan`.

use crate::graph::files;
use crate::support::{Ran, keys, path, yirage};
use serde_json::Value;

/// A command on a plan file.
type Command = Box<dyn Fn(&str) -> Ran>;

/// A folder with the graph, its arrays and its plan, and how the command line names a file.
fn folder(more: &[&str]) -> (tempfile::TempDir, impl Fn(&str) -> String) {
    let folder = tempfile::tempdir().unwrap();
    files(folder.path());
    let at = folder.path().to_path_buf();
    let file = move |name: &str| path(&at.join(name));
    let saved = yirage(&[&["plan", "save", &file("gate.json"), "--plan", &file("gate.plan")], more].concat()).ran();
    assert_eq!(saved.code, 0, "{}", saved.err);
    (folder, file)
}

fn run(file: &impl Fn(&str) -> String, plan: &str) -> Ran {
    let inputs = ["--input", &format!("w={}", file("w.npy")), "--input", &file("x.npy")];
    let outputs = ["--output", &file("y.npy"), "--output", &file("product.npy")];
    yirage(&[&["plan", "run", plan], &inputs[..], &outputs[..]].concat()).ran()
}

/// A layer whose sizes are symbols.
const LAYER: &str = r#"graph mlp {
  input %x: f32[Tokens, 64]
  weight %w: f32[96, 64]
  %p = linear{groups=1}(%x, %w): f32[Tokens, 96]
  %g = map{expr="silu(x0)"}(%p): f32[Tokens, 96]
  %y = softmax(%g): f32[Tokens, 96]
  output %y
}"#;

/// What `plan save` says of the layer.
fn saved(more: &[&str]) -> Value {
    let folder = tempfile::tempdir().unwrap();
    let file = |name: &str| path(&folder.path().join(name));
    std::fs::write(file("mlp.graph"), LAYER).unwrap();
    yirage(&[&["plan", "save", &file("mlp.graph"), "--plan", &file("mlp.plan"), "--json", "-q"], more].concat()).json()
}

pub(crate) fn plan() {
    let (_folder, file) = folder(&[]);
    assert!(std::fs::read_to_string(file("gate.plan")).unwrap().starts_with("yirage-plan 2\nsum "));
    let ran = yirage(&["plan", "save", &file("gate.json")]).ran();
    assert!(ran.code == 2 && ran.err.contains("--plan FILE"), "{}", ran.err);
}

pub(crate) fn fuse() {
    let steps = |more: &[&str]| saved(more)["steps"].as_array().unwrap().len();
    assert!(steps(&[]) < steps(&["--no-fuse"]));
}

#[test]
fn a_saved_plan_gives_what_its_graph_gives() {
    for more in [&["--precision", "exact"][..], &["--no-fuse", "--precision", "exact"]] {
        let (_folder, file) = folder(more);
        let ran = run(&file, &file("gate.plan"));
        assert_eq!(ran.code, 0, "{}", ran.err);
        assert!(ran.out.starts_with(&format!("y: f32[2, 3] -> {}\n", file("y.npy"))), "{}", ran.out);
        let read = |name: &str| std::fs::read(file(name)).unwrap();
        let by_plan = [read("y.npy"), read("product.npy")];
        let inputs = ["--input", &file("x.npy"), "--input", &file("w.npy")];
        let outputs = ["--output", &file("y.npy"), "--output", &file("product.npy")];
        let graph = yirage(&[&["graph", "run", &file("gate.json")], &inputs[..], &outputs[..]].concat()).ran();
        assert_eq!(graph.code, 0, "{}", graph.err);
        assert_eq!(by_plan, [read("y.npy"), read("product.npy")]);
    }
}

#[test]
fn plans_are_shown_and_checked() {
    let (_folder, file) = folder(&[]);
    let of = |command: &str| yirage(&["plan", command, &file("gate.plan"), "--json", "-q"]).json();
    let (mut shown, checked) = (of("show"), of("check"));
    let names = [
        "graph",
        "structural_hash",
        "compiler",
        "target",
        "precision",
        "fused",
        "bucket",
        "inputs",
        "outputs",
        "arena_bytes",
        "executors",
        "steps",
        "proved",
    ];
    assert_eq!(keys(&shown), names);
    assert_eq!((&shown["graph"], &shown["inputs"][1]["type"]), (&"gate".into(), &"f32[4, 3]".into()));
    assert_eq!((&shown["proved"], &checked["proved"]), (&false.into(), &true.into()));
    shown["proved"] = true.into();
    assert_eq!(shown, checked);
    let text = yirage(&["plan", "show", &file("gate.plan")]).ran().out;
    assert!(text.contains("  weight w: f32[4, 3]\n") && text.contains("nothing of it is proved"), "{text}");
}

#[test]
fn sizes_are_those_that_are_asked_for() {
    let bucket = |more: &[&str]| saved(more)["bucket"].clone();
    assert_eq!((&bucket(&[])["tokens"], &bucket(&["--tokens", "8", "--seqs", "2"])["seqs"]), (&1.into(), &2.into()));
    assert_eq!(bucket(&["--tokens", "8"])["tokens"], 8);
    assert_eq!(saved(&["--precision", "exact"])["precision"], "exact");
}

#[test]
fn a_plan_file_is_explained_and_measured() {
    let folder = tempfile::tempdir().unwrap();
    let file = |name: &str| path(&folder.path().join(name));
    std::fs::write(file("mlp.graph"), LAYER).unwrap();
    let save = ["plan", "save", &file("mlp.graph"), "--plan", &file("mlp.plan"), "--tokens", "8"];
    assert_eq!(yirage(&save).ran().code, 0);
    let explained = |more: &[&str]| yirage(&[&["explain", "--plan", &file("mlp.plan"), "--json", "-q"], more].concat());
    let report = explained(&["--measure"]).json();
    assert_eq!((report["graph"].as_str(), report["step"]["tokens"].as_u64()), (Some("mlp"), Some(8)));
    assert!(report["kernels"].as_array().unwrap().iter().all(|k| k["measured_seconds"].as_f64().unwrap() > 0.0));
    assert_eq!(explained(&["--tokens", "3"]).json()["step"]["tokens"], 3);
    let refused = explained(&["--tokens", "9"]).ran();
    assert!(refused.code == 2 && refused.err.contains("at most 8"), "{}", refused.err);
    let both = explained(&["--precision", "exact"]).ran();
    assert!(both.code == 2 && both.err.contains("--precision"), "{}", both.err);
    let said = yirage(&["explain", "--plan", &file("mlp.plan")]).ran();
    assert!(said.err.contains("what the compiler decided is not in a plan file"), "{}", said.err);
}

#[test]
fn what_is_damaged_foreign_or_missing_is_told_with_its_file() {
    let (_folder, file) = folder(&[]);
    let text = std::fs::read_to_string(file("gate.plan")).unwrap();
    std::fs::write(file("damaged.plan"), text.replacen("%y", "%z", 1)).unwrap();
    std::fs::write(file("cut.plan"), &text[..text.len() / 3]).unwrap();
    let explain = |plan: &str| yirage(&["explain", "--plan", plan]).ran();
    let command = |command: &'static str| move |plan: &str| yirage(&["plan", command, plan]).ran();
    let ran: [Command; 4] =
        [Box::new(command("show")), Box::new(command("check")), Box::new(command("run")), Box::new(explain)];
    for ran in &ran {
        for (name, words) in [
            ("damaged.plan", "it was damaged"),
            ("cut.plan", "it was damaged"),
            ("gate.json", "it begins with"),
            ("none.plan", "cannot open"),
        ] {
            let ran = ran(&file(name));
            assert!(ran.code == 1 && ran.err.contains(name) && ran.err.contains(words), "{} {}", ran.code, ran.err);
        }
    }
    // Made for another number of workers.
    let save = ["plan", "save", &file("gate.json"), "--plan", &file("one.plan"), "--threads", "1"];
    assert_eq!(yirage(&save).ran().code, 0);
    let foreign = yirage(&["plan", "check", &file("one.plan"), "--threads", "2"]).ran();
    assert!(foreign.code == 3 && foreign.err.contains("workers=1"), "{} {}", foreign.code, foreign.err);
    let missing = yirage(&["plan", "run", &file("gate.plan"), "--input", &file("x.npy")]).ran();
    assert!(missing.code == 2 && missing.err.contains("the input `w`"), "{}", missing.err);
    let nowhere = yirage(&["plan", "save", &file("gate.json"), "--plan", &file("no/such.plan")]).ran();
    assert!(nowhere.code == 1 && nowhere.err.contains("such.plan"), "{}", nowhere.err);
}
