//! `yirage scale`: what follows from figures, and what is refused. No test looks at a time.

use crate::support::{bedtime, keys, path, yirage};
use serde_json::{Value, json};
use std::path::PathBuf;
use tempfile::TempDir;
use yirage_testkit::tiny;

/// A fleet whose figures are round.
fn fleet() -> Value {
    json!({
        "name": "round",
        "memory_bytes": 1e9,
        "device": {"bytes_per_second": 1e9, "ops_per_second": 1e12, "step_seconds": 1e-3, "kernel_seconds": 1e-5},
        "node_devices": 2,
        "node_link": {"seconds": 1e-4, "bytes_per_second": 1e9},
        "network_link": {"seconds": 1e-2, "bytes_per_second": 1e8},
    })
}

fn written(folder: &TempDir, text: &str) -> PathBuf {
    let file = folder.path().join("fleet.json");
    std::fs::write(&file, text).unwrap();
    file
}

/// The rows of a fleet.
fn rows(fleet: &Value, more: &[&str]) -> Vec<Value> {
    let folder = tempfile::tempdir().unwrap();
    let file = path(&written(&folder, &fleet.to_string()));
    let model = bedtime();
    let ran = yirage(&[&["scale", "-m", &model, "--fleet", &file, "--json", "-q"], more].concat()).ran();
    assert_eq!(ran.code, 0, "{}", ran.err);
    ran.out.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

fn number(row: &Value, name: &str) -> f64 {
    row[name].as_f64().unwrap_or_else(|| panic!("{name} of {row}"))
}

#[test]
fn each_number_of_devices_has_its_fastest_step() {
    let rows = rows(&fleet(), &["--devices", "4,1,16", "--sequences", "2", "-d", "32"]);
    assert_eq!(rows.iter().map(|row| number(row, "devices")).collect::<Vec<_>>(), [1.0, 4.0, 16.0]);
    for row in &rows {
        let all = ["tp", "pp", "replicas"].map(|name| number(&row["division"], name)).iter().product::<f64>();
        assert_eq!(all, number(row, "devices_at_work"), "{row}");
        let parts: f64 = row["predicted"].as_object().unwrap().values().map(|part| part.as_f64().unwrap()).sum();
        assert!((parts / number(row, "predicted_seconds") - 1.0).abs() < 1e-9, "{row}");
        let tokens = 2.0 / number(row, "predicted_seconds");
        assert!((tokens / number(row, "tokens_per_second") - 1.0).abs() < 1e-9, "{row}");
    }
    // A small model is nowhere faster than on one device, so there is one for each of the two sequences.
    let ways = rows.iter().map(|row| ["tp", "pp", "replicas", "sequences"].map(|name| number(&row["division"], name)));
    assert_eq!(ways.collect::<Vec<_>>(), [[1.0, 1.0, 1.0, 2.0], [1.0, 1.0, 2.0, 1.0], [1.0, 1.0, 2.0, 1.0]]);
}

#[test]
fn figures_decide_how_a_model_is_divided() {
    let mut slow = fleet();
    slow["device"]["bytes_per_second"] = json!(1e6);
    let fastest = |fleet: &Value, devices: &str| {
        let all = rows(fleet, &["--devices", devices]);
        ["tp", "pp"].map(|name| number(&all[0]["division"], name))
    };
    assert_eq!(fastest(&slow, "2"), [2.0, 1.0], "reading is slow, and the link within a node is not");
    assert_eq!(fastest(&slow, "8"), [2.0, 1.0], "beyond a node it is: 6 of 8 have nothing to do");
    let whole = number(&rows(&fleet(), &["--devices", "1"])[0], "device_bytes");
    let mut small = fleet();
    small["memory_bytes"] = json!(whole * 0.6);
    let [tp, pp] = fastest(&small, "8");
    assert!(tp * pp > 1.0, "no device has room for all: {tp} x {pp}");
    small["memory_bytes"] = json!(10.0);
    let none = rows(&small, &["--devices", "8"]);
    assert!(none.len() == 1 && none[0]["division"].is_null() && number(&none[0], "device_bytes") > 10.0, "{none:?}");
}

#[test]
fn what_is_wrong_with_a_fleet_is_named() {
    let model = bedtime();
    let folder = tempfile::tempdir().unwrap();
    let refused = |text: &str| {
        let file = path(&written(&folder, text));
        let ran = yirage(&["scale", "-m", &model, "--fleet", &file]).ran();
        assert_eq!(ran.code, 1, "{text}: {}", ran.out);
        assert!(ran.err.contains("fleet.json: "), "{}", ran.err);
        ran.err
    };
    let with = |field: [&str; 2], value: Value| {
        let mut fleet = fleet();
        match field {
            [of, ""] => fleet[of] = value,
            [of, field] => fleet[of][field] = value,
        }
        fleet.to_string()
    };
    let error = refused(&with(["device", "bytes_per_second"], json!("fast")));
    assert!(error.contains("`device.bytes_per_second`: invalid type: string"), "{error}");
    let error = refused(&with(["device", "bytes_per_second"], json!(0)));
    assert!(error.contains("`device.bytes_per_second`: expected a number above 0, got 0"), "{error}");
    let error = refused(&with(["network_link", "seconds"], json!(-1)));
    assert!(error.contains("`network_link.seconds`: expected seconds, 0 or more, got -1"), "{error}");
    let error = refused(&with(["colour", ""], json!(1)));
    assert!(error.contains("unknown field `colour`"), "{error}");
    assert!(refused("{}").contains("missing field"));
    assert!(refused(&format!("{}x", fleet())).contains("trailing characters"));
    let absent = yirage(&["scale", "-m", &model, "--fleet", "/nowhere/fleet.json"]).ran();
    assert!(absent.code == 1 && absent.err.contains("/nowhere/fleet.json"), "{}", absent.err);
    for (option, value) in [("--devices", "0"), ("--devices", "1,x"), ("-n", "1,2"), ("--sequences", "0")] {
        let ran = yirage(&["scale", "-m", &model, option, value]).ran();
        let named = if option == "-n" { "--n-gen" } else { option };
        assert!(ran.code == 2 && ran.err.contains(named), "{option} {value}: {}", ran.err);
    }
}

#[cfg(target_os = "linux")]
#[test]
fn ranks_of_this_machine_are_measured_and_told_beside_what_follows() {
    let model = bedtime();
    let run = ["scale", "-m", &model, "--devices", "1,2,3", "-n", "4", "-r", "1", "--threads", "1"];
    let ran = yirage(&[&run[..], &["--json"]].concat()).ran();
    assert_eq!(ran.code, 0, "{}", ran.err);
    assert!(ran.err.contains("3 ranks: left out, as the model's heads do not divide among them"), "{}", ran.err);
    let rows: Vec<Value> = ran.out.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(rows.iter().map(|row| number(row, "ranks")).collect::<Vec<_>>(), [1.0, 2.0]);
    for row in &rows {
        assert!(keys(row).contains(&"ratio") && number(row, "measured_seconds") > 0.0, "{row}");
        assert_eq!(row["link"].is_null(), number(row, "ranks") == 1.0);
        let ratio = number(row, "predicted_seconds") / number(row, "measured_seconds");
        assert!((ratio / number(row, "ratio") - 1.0).abs() < 1e-9, "{row}");
    }
    let [one, two] = [&rows[0], &rows[1]].map(|row| number(&row["device"], "kernel_seconds"));
    assert_eq!(one, two, "what a step of a plan takes is told by one rank");
    let table = yirage(&[&run[..], &["-q"]].concat()).ran();
    assert_eq!(table.out.lines().count(), 4, "a head, a rule and two rows: {}", table.out);
}

#[test]
fn a_model_whose_head_all_queries_share_is_divided_as_well() {
    let folder = tempfile::tempdir().unwrap();
    let file = path(&written(&folder, &fleet().to_string()));
    for family in ["mixtral", "deepseek-v3", "gpt2"] {
        let model = path(&tiny::model(family));
        let ran = yirage(&["scale", "-m", &model, "--fleet", &file, "--devices", "2"]).ran();
        assert_eq!(ran.code, 0, "{family}: {}", ran.err);
        assert!(ran.out.contains("\n| 2 | "), "{family}: {}", ran.out);
    }
}
