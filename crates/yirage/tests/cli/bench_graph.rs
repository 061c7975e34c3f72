//! `yirage bench-graph`: every workload is listed and timed, fused and not; what makes no sense is told.

use crate::support::{keys, yirage};
use serde_json::Value;

fn lines(out: &str) -> Vec<Value> {
    out.lines().map(|line| serde_json::from_str(line).unwrap_or_else(|e| panic!("{e}: {line}"))).collect()
}

#[test]
fn every_workload_is_listed() {
    let listed = lines(&yirage(&["bench-graph", "--list", "--json"]).ran().out);
    assert_eq!(listed.len(), 9);
    assert!(listed.iter().all(|w| keys(w) == ["workload", "about"]));
    let shown = yirage(&["bench-graph", "--list"]).ran().out;
    assert!(listed.iter().all(|w| shown.contains(&format!("{}: ", w["workload"].as_str().unwrap()))));
}

#[test]
fn a_row_says_time_work_and_limit() {
    let arguments =
        ["bench-graph", "norm_transformer", "lora", "--dtype", "f32,bf16", "--repetitions", "1", "--json", "-q"];
    let rows = lines(&yirage(&arguments).ran().out);
    let named = |row: &Value| format!("{} {} {}", row["workload"], row["batch"], row["dtype"]).replace('"', "");
    let names = ["norm_transformer 1 f32", "norm_transformer 1 bf16", "lora 1 f32", "lora 1 bf16"];
    assert_eq!(rows.iter().map(named).collect::<Vec<_>>(), names);
    for row in &rows {
        let number = |key: &str| row[key].as_f64().unwrap_or_else(|| panic!("{key} of {row}"));
        let (low, high) = (number("lowest_seconds"), number("highest_seconds"));
        assert!(0.0 < low && low <= number("seconds") && number("seconds") <= high && number("unfused_seconds") > 0.0);
        let kernels = row["kernels"].as_array().unwrap().len();
        assert!(0 < kernels && kernels as u64 <= row["unfused_kernels"].as_u64().unwrap());
        assert!((number("share") - number("limit_seconds") / number("seconds")).abs() < 1e-9 * number("share"));
        assert!(["memory", "arithmetic"].contains(&row["bound"].as_str().unwrap()) && row["rounds"] == 1);
    }
    // Half of the bytes, the same operations.
    assert_eq!(rows[0]["bytes"].as_f64(), rows[1]["bytes"].as_f64().map(|bytes| 2.0 * bytes));
    assert_eq!((rows[2]["ops"].as_f64(), rows[2]["ops"] == rows[3]["ops"]), (Some(35_782_656.0), true));
}

/// Workload, batch and type of each row.
fn cases(more: &[&str]) -> Vec<String> {
    let rows = lines(
        &yirage(&[&["bench-graph", "norm_transformer", "--repetitions", "1", "--json", "-q"], more].concat()).ran().out,
    );
    rows.iter().map(|row| format!("{} {}", row["batch"], row["dtype"]).replace('"', "")).collect()
}

pub(crate) fn batch() {
    assert_eq!(cases(&["--batch", "1,2"]), ["1 f32", "2 f32"]);
}

pub(crate) fn dtype() {
    assert_eq!(cases(&["--dtype", "f16"]), ["1 f16"]);
}

pub(crate) fn superoptimize() {
    let row = |more: &[&str]| {
        let arguments = ["bench-graph", "norm_transformer", "--repetitions", "1", "--json", "-q"];
        lines(&yirage(&[&arguments, more].concat()).ran().out).remove(0)
    };
    assert!(row(&[])["superoptimized"].is_null());
    let found = &row(&["--superoptimize"])["superoptimized"];
    let number = |key: &str| found[key].as_f64().unwrap_or_else(|| panic!("{key} of {found}"));
    assert!(["seconds", "search_seconds", "kept_seconds"].iter().all(|key| number(key) > 0.0), "{found}");
    assert!(!found["kernels"].as_array().unwrap().is_empty() && number("candidates") > 0.0, "{found}");
}

#[test]
fn a_paced_graph_waits_for_lines() {
    let arguments = ["bench-graph", "norm_transformer", "--paced", "--json", "-q"];
    let rows = lines(&yirage(&arguments).input("\n\n").ran().out);
    assert!(rows.len() == 2 && rows.iter().all(|row| row["rounds"] == 1), "{rows:?}");
    assert_eq!(yirage(&arguments).input("").ran().out, "");
}

#[test]
fn what_makes_no_sense_is_told() {
    for (arguments, wanted) in [
        (&["gqa"][..], "no workload is called \"gqa\"; there is: group_query_attention, "),
        (&["--batch", "0"], "--batch: expected numbers from 1 to 256"),
        (&["--batch", "1,x"], "not \"x\""),
        (&["--dtype", "f64"], "--dtype: expected f32, f16 or bf16"),
        (&["--repetitions", "0"], "--repetitions: expected a number from 1"),
        (&["--paced"], "--paced times one graph, and 9 are asked for"),
        (&["lora", "--backend", "nothing"], "nothing"),
    ] {
        let ran = yirage(&[&["bench-graph"], arguments].concat()).ran();
        assert_eq!(ran.code, 2, "{arguments:?}: {}", ran.err);
        assert!(ran.err.contains(wanted), "`{wanted}` is not in: {}", ran.err);
    }
}
