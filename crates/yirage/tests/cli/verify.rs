//! `yirage verify`: what its record holds, what `--compare` notices, and what is refused before anything runs.

use crate::support::{Ran, TINY, keys, path, yirage};
use serde_json::{Value, json};
use std::fs;
use tempfile::TempDir;

/// A few cases and a tiny model on the processor.
const FEW: [&str; 5] = ["verify", "cpu", "--quick", "--ops", "softmax,linear"];

fn few(more: &[&str]) -> Ran {
    yirage(&[&FEW[..], more].concat()).ran()
}

fn record(more: &[&str]) -> Value {
    few(&[more, &["--json"]].concat()).json()
}

#[test]
fn the_record_says_how_closely_which_build_agrees_on_which_device() {
    let record = record(&["--model", TINY]);
    assert_eq!(keys(&record), ["schema", "date", "build", "device", "suite", "model"]);
    assert_eq!((&record["schema"], &record["build"]["version"]), (&json!(1), &env!("CARGO_PKG_VERSION").into()));
    assert!(record["date"].as_str().unwrap().ends_with('Z'));
    assert!(record["build"]["features"].as_array().unwrap().contains(&"cpu".into()));
    let device = &record["device"];
    assert_eq!((&device["backend"], &device["software"]), (&"cpu".into(), &false.into()));
    assert!(!device["name"].as_str().unwrap().is_empty() && !device["arch"].as_str().unwrap().is_empty());
    let suite = &record["suite"];
    assert_eq!((&suite["quick"], &suite["only"]), (&true.into(), &json!(["softmax", "linear"])));
    let count = |of: &Value, key: &str| of[key].as_u64().unwrap();
    let ops = suite["ops"].as_array().unwrap();
    assert_eq!(ops.iter().map(|op| count(op, "passed")).sum::<u64>(), count(suite, "cases"));
    assert_eq!(count(suite, "left_out"), 0, "these ops read no cache");
    let formats = suite["formats"].as_array().unwrap();
    for name in ["f32", "bf16", "q4_0", "q4_k", "mxfp4"] {
        assert!(formats.iter().any(|format| format["name"] == name && count(format, "passed") > 0), "{name}: {suite}");
    }
    for group in ops.iter().chain(formats) {
        assert!(group["error"]["of_tolerance"].as_f64().is_some_and(|share| share <= 1.0), "{group}");
    }
    assert!(ops.iter().any(|op| op["error"]["absolute"].as_f64().unwrap() > 0.0), "f32 sums are rounded: {suite}");
}

/// The tiny model has two layers, and the processor's exact precision is that of the reference but for roundings.
#[test]
fn a_model_is_followed_layer_by_layer_and_token_by_token() {
    let model = record(&["--model", TINY])["model"].clone();
    let read = |key: &str| model[key].as_u64().unwrap();
    assert_eq!((&model["against"], read("tokens"), read("at_once")), (&"reference".into(), 48, 32));
    let [exact, fast] = model["runs"].as_array().unwrap().as_slice() else { panic!("{model}") };
    assert_eq!((&exact["precision"], &fast["precision"]), (&"exact".into(), &"fast".into()));
    for run in [exact, fast] {
        assert_eq!((&run["error"], &run["wrong"]), (&Value::Null, &json!([])), "{run}");
        assert!(run["drift"].as_array().unwrap().len() >= 2, "{run}");
        assert!(run["kl_mean"].as_f64().unwrap() <= run["kl_most"].as_f64().unwrap(), "{run}");
    }
    assert_eq!((&exact["same_when_cut"], &exact["different"]), (&true.into(), &json!(0)), "{exact}");
    assert!(exact["drift"][0].as_f64().unwrap() < 1e-4, "{exact}");
    let itself = yirage(&["verify", "reference", "--ops", "softmax", "--quick", "--model", TINY, "--json"]).json();
    assert_eq!(itself["model"]["runs"][0]["drift"][0], 0.0, "{itself}");
}

#[test]
fn people_read_the_same_and_are_told_what_is_done() {
    let ran = few(&["--model", TINY]);
    assert_eq!(ran.code, 0, "{}", ran.err);
    assert!(ran.err.contains("testing: softmax") && ran.err.contains("in exact"), "{}", ran.err);
    for part in
        ["cpu 0: ", "op  ", "\nlinear ", "format  ", "\nq4_0 ", "model model.gguf", "exact: drift", " 0 wrong\n"]
    {
        assert!(ran.out.contains(part), "{part}: {}", ran.out);
    }
}

/// A file that was written, with a part of it changed.
fn spoilt(folder: &TempDir, change: impl Fn(&mut Value)) -> String {
    let file = folder.path().join("spoilt.json");
    let mut record: Value = serde_json::from_str(&fs::read_to_string(written(folder)).unwrap()).unwrap();
    change(&mut record);
    fs::write(&file, record.to_string()).unwrap();
    path(&file)
}

/// The file that a first verification writes.
fn written(folder: &TempDir) -> String {
    let file = path(&folder.path().join("first.json"));
    if !folder.path().join("first.json").exists() {
        let ran = few(&["-o", &file]);
        assert_eq!(ran.code, 0, "{}", ran.err);
    }
    file
}

#[test]
fn a_comparison_notices_what_became_worse_and_what_better() {
    let folder = tempfile::tempdir().unwrap();
    let same = few(&["--compare", &written(&folder)]);
    assert!(same.code == 0 && same.out.contains("neither better nor worse than before"), "{}{}", same.out, same.err);
    let closer = spoilt(&folder, |record| {
        for op in record["suite"]["ops"].as_array_mut().unwrap() {
            op["error"]["of_tolerance"] = json!(1e-3);
        }
    });
    let ran = few(&["--compare", &closer]);
    assert_eq!(ran.code, 5, "{}", ran.err);
    assert!(ran.out.contains("worse: linear: the largest error"), "{}", ran.out);
    let error = few(&["--compare", &closer, "--json"]);
    assert!(error.code == 5 && error.err.contains("\"kind\":\"worse\""), "{}", error.err);
    let value: Value = serde_json::from_str(&error.out).unwrap();
    assert!(!value["compare"]["worse"].as_array().unwrap().is_empty(), "{value}");
    let failed = spoilt(&folder, |record| {
        record["suite"]["failed"] = json!([{"case": "softmax: once", "why": "off"}]);
        record["device"]["name"] = "another".into();
    });
    let ran = few(&["--compare", &failed]);
    assert!(ran.code == 0 && ran.out.contains("better: softmax: once: fails no more"), "{}", ran.out);
    assert!(ran.err.contains("not the same device"), "{}", ran.err);
}

#[test]
fn what_makes_no_sense_is_refused_before_anything_runs() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("no-record.json");
    fs::write(&file, "{\"schema\": 1}").unwrap();
    let nowhere = path(&folder.path().join("no/such.json"));
    let other = spoilt(&folder, |record| record["schema"] = json!(7));
    for (arguments, code, part) in [
        (&["warp"][..], 2, "\"warp\" is unknown"),
        (&["ascend"], 3, "not available"),
        (&["cpu", "--device", "7"], 2, "7"),
        (&["cpu", "--ops", "softmax,warp"], 2, "--ops: expected names separated by commas, of "),
        (&["cpu", "-o", &nowhere], 1, "no/such.json"),
        (&["cpu", "--compare", &nowhere], 1, "no/such.json"),
        (&["cpu", "--compare", &path(&file)], 1, "no result of `yirage verify -o FILE`"),
        (&["cpu", "--compare", &other], 1, "expected results of schema 1, got 7"),
        (&["cpu", "--model", "no/such.gguf"], 1, "no/such.gguf"),
        (&["cpu", "--model", TINY, "--against", "warp"], 2, "\"warp\" is unknown"),
    ] {
        let ran = yirage(&[&["verify", "--quick"][..], arguments].concat()).ran();
        assert!(ran.code == code && ran.err.contains(part), "{arguments:?}: {} {}", ran.code, ran.err);
        assert!(ran.out.is_empty() && !ran.err.contains("testing: "), "{arguments:?}: {}", ran.err);
    }
}

#[test]
fn devices_that_a_processor_plays_are_said_to_be_that() {
    let record = yirage(&["verify", "sim", "--quick", "--ops", "softmax", "--json"]).json();
    assert_eq!((&record["device"]["backend"], &record["device"]["software"]), (&"sim".into(), &true.into()));
    assert_eq!((&record["model"], &record["suite"]["failed"]), (&Value::Null, &json!([])));
    assert!(yirage(&["verify", "sim", "--quick", "--ops", "softmax"]).ran().out.contains(", played by a processor"));
}

pub(crate) fn ops() {
    let names = |ops: &str| {
        let value = yirage(&["verify", "cpu", "--quick", "--ops", ops, "--json"]).json();
        value["suite"]["ops"].as_array().unwrap().iter().map(|op| op["name"].clone()).collect::<Vec<_>>()
    };
    assert_eq!(names("softmax"), ["softmax"]);
    assert_eq!(names("embed, top_k").len(), 2);
}

pub(crate) fn model() {
    assert_eq!(record(&[])["model"], Value::Null, "with some ops alone");
    assert_eq!(record(&["--model", TINY])["model"]["name"], "model.gguf");
}

pub(crate) fn against() {
    assert_eq!(record(&["--model", TINY, "--against", "sim"])["model"]["against"], "sim");
}

pub(crate) fn output() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("out.json");
    // Something longer that was there before.
    fs::write(&file, "x".repeat(1 << 20)).unwrap();
    let printed = record(&["-o", &path(&file)]);
    let text = fs::read_to_string(&file).unwrap();
    assert_eq!(serde_json::from_str::<Value>(&text).unwrap(), printed);
}
