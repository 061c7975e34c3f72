//! Flag over variable over file over default, as `yirage config explain` and the options themselves see it.

use crate::support::{bedtime, yirage};
use serde_json::Value;

fn option<'a>(explained: &'a Value, name: &str) -> &'a Value {
    explained["options"].as_array().unwrap().iter().find(|o| o["name"] == name).unwrap()
}

#[test]
fn each_layer_beats_the_one_below() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("c.toml");
    std::fs::write(&file, "max_tokens = 3\nseed = 4\nstop = [\"x\", \"y\"]\n").unwrap();
    let file = file.to_str().unwrap();
    let ask = |arguments: &[&str], variables: &[(&str, &str)]| {
        let run = yirage(&[&["config", "explain", "--json"], arguments].concat());
        variables.iter().fold(run, |run, (k, v)| run.env(k, v)).json()
    };
    let seed = |v: &Value| (option(v, "seed")["value"].clone(), option(v, "seed")["origin"].clone());
    let told = |value: &str, origin: &str| (Value::from(value), Value::from(origin));
    assert_eq!(seed(&ask(&[], &[])), told("0", "default"));
    let with_file = ask(&["--config", file], &[]);
    assert_eq!(seed(&with_file), told("4", "file"));
    assert_eq!(option(&with_file, "seed")["source"], file);
    assert_eq!(option(&with_file, "stop")["value"], serde_json::json!(["x", "y"]));
    let by_variables = ask(&[], &[("YIRAGE_CONFIG", file), ("YIRAGE_SEED", "5")]);
    assert_eq!(seed(&by_variables), told("5", "env"));
    assert_eq!(option(&by_variables, "seed")["source"], "YIRAGE_SEED");
    assert_eq!(option(&by_variables, "max-tokens")["origin"], "file");
    assert_eq!(seed(&ask(&["--seed", "6", "--config", file], &[("YIRAGE_SEED", "5")])), told("6", "flag"));
}

#[test]
fn layers_reach_the_engine() {
    let model = bedtime();
    let folder = tempfile::tempdir().unwrap();
    std::fs::create_dir(folder.path().join("yirage")).unwrap();
    std::fs::write(folder.path().join("yirage/config.toml"), format!("model = {model:?}\nmax_tokens = 3\n")).unwrap();
    let home = folder.path().to_str().unwrap();
    let count = |run: crate::support::Run| run.env("XDG_CONFIG_HOME", home).json()["tokens"].as_array().unwrap().len();
    assert_eq!(count(yirage(&["run", "--json"])), 3);
    assert_eq!(count(yirage(&["run", "--json"]).env("YIRAGE_MAX_TOKENS", "4")), 4);
    assert_eq!(count(yirage(&["run", "--json", "-n", "5"]).env("YIRAGE_MAX_TOKENS", "4")), 5);
}

#[test]
fn broken_files_are_named() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("c.toml");
    for (content, part) in [("sede = 1\n", "sede"), ("seed = \n", "line 1"), ("seed = {}\n", "table")] {
        std::fs::write(&file, content).unwrap();
        let ran = yirage(&["config", "explain", "--config", file.to_str().unwrap()]).ran();
        assert!(ran.code == 2 && ran.err.contains("c.toml") && ran.err.contains(part), "{}", ran.err);
    }
    let ran = yirage(&["config", "explain", "--config", "no/such.toml"]).ran();
    assert!(ran.code == 1 && ran.err.contains("no/such.toml"), "{}", ran.err);
}

#[test]
fn a_mistyped_variable_is_noticed() {
    let ran = yirage(&["config", "explain"]).env("YIRAGE_SEDE", "1").ran();
    assert!(ran.code == 0 && ran.err.contains("YIRAGE_SEDE"), "{}", ran.err);
}
