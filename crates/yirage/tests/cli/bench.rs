//! `yirage bench` and `yirage doctor`: what they measure, how they say it, and what they refuse. No test looks at a time.

use crate::support::{bedtime, keys, yirage};
use serde_json::Value;
use yirage_testkit::json::floats;

/// Fields of llama-bench that tools read.
const NAMES: &[&str] = &[
    "build_commit",
    "build_number",
    "cpu_info",
    "gpu_info",
    "backends",
    "model_filename",
    "model_type",
    "model_size",
    "model_n_params",
    "n_batch",
    "n_ubatch",
    "n_threads",
    "type_k",
    "type_v",
    "n_gpu_layers",
    "split_mode",
    "flash_attn",
    "devices",
    "n_prompt",
    "n_gen",
    "n_depth",
    "test_time",
    "avg_ns",
    "stddev_ns",
    "avg_ts",
    "stddev_ts",
    "samples_ns",
    "samples_ts",
];

fn rows(arguments: &[&str]) -> Vec<Value> {
    let ran = yirage(&[&["bench", "-q", "-o", "json"], arguments].concat()).ran();
    assert_eq!(ran.code, 0, "{}", ran.err);
    serde_json::from_str(&ran.out).unwrap()
}

#[test]
fn rows_have_the_names_that_tools_know() {
    let model = bedtime();
    let rows = rows(&["-m", &model, "-p", "16", "-n", "4", "-pg", "8,2", "-r", "3", "-t", "1,2"]);
    assert_eq!(rows.len(), 6);
    for row in &rows {
        assert!(NAMES.iter().all(|name| keys(row).contains(name)), "{:?}", keys(row));
        let tokens = row["n_prompt"].as_f64().unwrap() + row["n_gen"].as_f64().unwrap();
        let (ns, ts) = (floats(&row["samples_ns"]), floats(&row["samples_ts"]));
        assert_eq!((ns.len(), ts.len()), (3, 3));
        for (ns, ts) in ns.iter().zip(&ts) {
            assert!((tokens * 1e9 / ns / ts - 1.0).abs() < 1e-3, "{tokens} tokens in {ns} ns are not {ts} a second");
        }
        assert!(row["test_time"].as_str().unwrap().ends_with('Z') && row["avg_ts"].as_f64().unwrap() > 0.0);
    }
    let threads: Vec<_> = rows.iter().map(|r| r["n_threads"].as_u64().unwrap()).collect();
    assert_eq!(threads, [1, 1, 1, 2, 2, 2]);
}

#[test]
fn the_work_of_a_step_is_what_the_model_has() {
    let model = bedtime();
    let one = rows(&["-m", &model, "-p", "0", "-n", "1", "-r", "1"]).remove(0);
    let deep = rows(&["-m", &model, "-p", "0", "-n", "1", "-d", "256", "-r", "1"]).remove(0);
    let (one, deep) = (one["step_bytes"].as_f64().unwrap(), deep["step_bytes"].as_f64().unwrap());
    // All 248512 weights of four bytes and a row of the table.
    let weights = 248_512.0 * 4.0;
    assert!(one > weights && one < 1.05 * weights, "{one} bytes of a model of {weights}");
    // Five layers of four heads in f32, at 255 positions more: keys of eight, values padded from eight to sixteen.
    assert_eq!(deep - one, 5.0 * 4.0 * (8.0 + 16.0) * 4.0 * 255.0);
}

#[test]
fn a_device_that_does_not_measure_itself_has_no_shares() {
    let model = bedtime();
    let row = rows(&["-m", &model, "-p", "2", "-n", "0", "-r", "1", "--backend", "reference"]).remove(0);
    assert!(row["share_of_roofline"].is_null() && row["avg_ts"].as_f64().unwrap() > 0.0);
    let table = yirage(&["bench", "-m", &model, "-p", "2", "-n", "0", "-r", "1", "--backend", "reference"]).ran().out;
    assert!(table.lines().last().unwrap().ends_with("| - |"), "{table}");
}

#[test]
fn shares_are_of_this_machine() {
    let model = bedtime();
    let row = rows(&["-m", &model, "-p", "0", "-n", "8", "-r", "2"]).remove(0);
    for name in ["share_of_memory", "share_of_arithmetic", "share_of_roofline", "memory_bytes_per_second"] {
        assert!(row[name].as_f64().unwrap() > 0.0, "{name}");
    }
    assert!(["memory", "arithmetic"].contains(&row["bound"].as_str().unwrap()));
}

#[test]
fn several_models_are_separated_by_commas() {
    let both = format!("{},{}", bedtime(), yirage_testkit::bedtime::q8_0().display());
    let rows = rows(&["-m", &both, "-p", "4", "-n", "0", "-r", "1"]);
    let names: Vec<_> =
        rows.iter().map(|r| r["model_filename"].as_str().unwrap().rsplit('/').next().unwrap()).collect();
    assert_eq!(names, ["bedtime-f32.gguf", "bedtime-q8_0.gguf"]);
}

#[test]
fn what_makes_no_sense_is_refused_by_name() {
    let model = bedtime();
    for (arguments, part) in [
        (&["-p", "x"][..], "--n-prompt: expected numbers from 0 to"),
        (&["-n", "1,,2"], "--n-gen: expected numbers"),
        (&["-p", "0", "-n", "0"], "nothing to measure"),
        (&["-pg", "512"], "--pg: expected two numbers above 0 as in 512,128, not \"512\""),
        (&["-d", "100"], "--n-depth: pp512 @ d100: the cache keeps blocks of 32 positions"),
        (&["-r", "0"], "--repetitions: expected a number from 1 to"),
        (&["-t", "0"], "--threads: expected numbers from 1 to"),
        (&["-b", "0"], "--batch-size: expected numbers from 1 to"),
        (&["--sequences", "0"], "--sequences: expected numbers from 1 to"),
        (&["-o", "sql"], "sql"),
    ] {
        let ran = yirage(&[&["bench", "-m", &model], arguments].concat()).ran();
        assert!(
            ran.code == 2 && ran.err.contains(part) && ran.out.is_empty(),
            "{arguments:?}: {}: {}",
            ran.code,
            ran.err
        );
    }
}

/// Old rows that are slower, faster, or somebody else's; and files that are no rows.
pub(crate) fn compare(model: &str) {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("old.json");
    let path = file.to_str().unwrap();
    let bench = |more: &[&str]| {
        yirage(
            &[&["bench", "-m", model, "-p", "64", "-n", "0", "-r", "3", "-t", "1", "--compare", path], more].concat(),
        )
        .ran()
    };
    let old = |name: &str, ts: f64| {
        let samples = [ts, ts, ts];
        let row = serde_json::json!({"model_filename": format!("elsewhere/{name}"), "n_prompt": 64, "n_gen": 0, "n_depth": 0,
            "n_threads": 1, "n_batch": 2048, "avg_ts": ts, "samples_ts": samples});
        std::fs::write(&file, serde_json::to_string(&vec![row]).unwrap()).unwrap();
    };
    let name = model.rsplit('/').next().unwrap();
    old(name, 1e-3);
    let ran = bench(&["-o", "jsonl", "-q"]);
    let row: Value = serde_json::from_str(&ran.out).unwrap();
    // Runs beside others' work may vary by more than their mean, so whether this is beyond the noise is not said here.
    assert!(ran.code == 0 && row["compare"]["beyond_noise"].is_boolean(), "{} {}", ran.err, ran.out);
    assert!(row["compare"]["ratio"].as_f64().unwrap() > 1.0);
    old(name, 1e12);
    let ran = bench(&[]);
    assert!(ran.code == 5 && ran.out.contains("| before | ratio |") && ran.err.contains("slower"), "{}", ran.err);
    old("another.gguf", 1e12);
    let ran = bench(&[]);
    assert!(ran.code == 0 && ran.out.lines().last().unwrap().ends_with("| - | - |"), "{}", ran.out);
    std::fs::write(&file, "| a table |").unwrap();
    let ran = bench(&[]);
    assert!(ran.code == 1 && ran.err.contains("old.json: neither JSON") && ran.out.is_empty(), "{}", ran.err);
}

#[test]
fn doctor_shows_what_is_here() {
    let value = yirage(&["doctor", "--json"]).json();
    assert!(keys(&value).contains(&"devices") && value["unavailable"][0]["why"].is_string());
    assert_eq!(value["devices"][0]["backend"], "cpu");
    assert!(value["advice"][0]["backend"] == "cpu" && value["advice"][0]["advice"][0].is_string(), "{value}");
    assert!(value["folders"][0]["path"].is_string() && value["folders"][0]["state"].is_string());
    let text = yirage(&["doctor"]).ran().out;
    assert!(text.contains("computes with: fp32") && text.contains("advice for cpu 0:"), "{text}");
    assert!(text.contains("threads_reason: ") && text.contains("folders:") && !text.contains("limits"), "{text}");
}

#[test]
fn doctor_measures_and_predicts() {
    let model = bedtime();
    let value = yirage(&["doctor", "--roofline", "--model", &model, "--json", "-q"]).json();
    for limit in value["roofline"].as_array().unwrap() {
        let measured = limit["median"].as_f64().is_some_and(|m| m > 0.0) && limit["method"].is_string();
        assert!(measured || limit["why"].is_string(), "{limit}");
    }
    assert_eq!(value["roofline"][0]["limit"], "memory read");
    for test in value["model"]["tests"].as_array().unwrap() {
        assert!(test["predicted_ts"].as_f64().unwrap() > 0.0 && test["got"]["median_ts"].as_f64().unwrap() > 0.0);
    }
    let other = yirage(&["doctor", "--roofline", "--backend", "reference", "--json", "-q"]).json();
    assert!(other["roofline"].as_array().unwrap().iter().all(|l| l["why"].is_string()), "{other}");
    let ran = yirage(&["doctor", "--model", &model]).ran();
    assert!(ran.code == 0 && ran.err.contains("--model is not looked at without --roofline or --tune"), "{}", ran.err);
}
