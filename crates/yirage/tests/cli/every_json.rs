//! `--json` of every command: results are objects, one a line, and errors are one object on standard error.

use crate::support::{TINY, bedtime, path, yirage};
use serde_json::Value;
use std::path::Path;
use yirage_testkit::encoders;

/// Commands that answer nothing by themselves, and the tests that look at what they print with `--json`.
const ELSEWHERE: [(&str, &str); 8] = [
    ("serve", "serve::"),
    ("route", "route::"),
    ("bench-serve", "bench_serve::"),
    ("pull", "hub::"),
    ("rm", "hub::"),
    ("scale", "scale::"),
    ("verify", "verify::"),
    ("backend test", "backend::"),
];

/// A line for each command: its words, then what it needs to have a result. `{}` is a folder of the test's own.
const COMMANDS: [(&str, &str); 33] = [
    ("run", "TINY --prompt-ids 1 -n 1"),
    ("chat", "BEDTIME -n 1"),
    ("inspect", "TINY"),
    ("list", ""),
    ("convert", "FOLDER --dry-run"),
    ("imatrix", "TINY --ids 1,2 -o {}/importances.gguf"),
    ("quantize", "BEDTIME Q8_0 --dry-run"),
    ("embed", "EMBED --text cat"),
    ("rerank", "SCORE --query cat --text dog"),
    ("tokenize", "BEDTIME cat"),
    ("perplexity", "TINY --ids 1,2"),
    ("logits", "TINY --ids 1"),
    ("devices", ""),
    ("doctor", ""),
    ("backend info", ""),
    ("backend optimize", ""),
    ("backend benchmark", "cpu --duration 0.1"),
    ("backend set", "cpu"),
    ("backend config save", "{}/settings.toml"),
    ("backend config load", "{}/settings.toml"),
    ("backend config show", ""),
    ("backend reset", ""),
    ("bench", "TINY -p 4 -n 1 -r 1"),
    ("bench-graph", "--list"),
    ("explain", "TINY"),
    ("graph run", "{}/gate.json --input {}/x.npy --input {}/w.npy"),
    ("graph show", "{}/gate.json"),
    ("graph check", "{}/gate.json"),
    ("plan save", "{}/gate.json --plan {}/gate.plan"),
    ("plan show", "{}/gate.plan"),
    ("plan check", "{}/gate.plan"),
    ("plan run", "{}/gate.plan --input {}/x.npy --input {}/w.npy"),
    ("cache", "list"),
];

/// Those whose words need no model and no file.
const PLAIN: [(&str, &str); 3] = [("completions", "bash"), ("version", ""), ("config explain", "")];

fn arguments(words: &str, needs: &str, folder: &Path) -> Vec<String> {
    let hf = path(&yirage_testkit::bedtime::safetensors());
    let models = [("TINY", TINY.to_owned()), ("BEDTIME", bedtime()), ("FOLDER", hf)];
    let encoders = [("EMBED", path(&encoders::model("embed"))), ("SCORE", path(&encoders::model("score")))];
    let named = |word: &str| {
        let model = models.iter().chain(&encoders).find(|(name, _)| *name == word);
        model.map_or_else(|| word.replace("{}", folder.to_str().unwrap()), |(_, path)| path.clone())
    };
    words.split(' ').chain(needs.split_whitespace()).map(named).collect()
}

/// The commands of `yirage help`, each with the words that it is called by.
fn listed() -> Vec<String> {
    let help = yirage(&["help"]).ran().out;
    let before = help.split("\nOptions:").next().unwrap();
    let mut commands: Vec<String> = Vec::new();
    for line in before.lines().filter(|line| line.starts_with("  ")) {
        let words = line.trim_start().split("  ").next().unwrap();
        if line.starts_with("    ") {
            let above = commands.iter().rposition(|one| !one.contains(' ')).unwrap();
            let name = format!("{} {words}", commands[above]);
            commands.push(name);
        } else {
            commands.push(words.to_owned());
        }
    }
    let leaves = |one: &&String| !commands.iter().any(|other| other.starts_with(&format!("{one} ")));
    commands.iter().filter(leaves).cloned().collect()
}

#[test]
fn every_command_is_looked_at() {
    let looked: Vec<&str> = ELSEWHERE.iter().chain(&COMMANDS).chain(&PLAIN).map(|(words, _)| *words).collect();
    let commands = listed();
    assert!(commands.len() >= 40, "{commands:?}");
    for command in &commands {
        assert!(looked.contains(&command.as_str()), "{command}: with what does it print JSON?");
    }
    for words in looked {
        assert!(commands.iter().any(|command| command == words), "{words} is no command: {commands:?}");
    }
}

#[test]
fn results_are_objects_one_a_line() {
    let folder = tempfile::tempdir().unwrap();
    crate::graph::files(folder.path());
    for (words, needs) in COMMANDS.iter().chain(&PLAIN) {
        let arguments = arguments(words, needs, folder.path());
        let arguments: Vec<&str> = arguments.iter().map(String::as_str).chain(["--json"]).collect();
        let home = folder.path().to_str().unwrap();
        let run = yirage(&arguments).env("XDG_CONFIG_HOME", home).env("HF_HOME", home).current_dir(folder.path());
        let ran = run.input("Once\n").ran();
        assert_eq!(ran.code, 0, "{arguments:?}: {}", ran.err);
        let objects: Vec<Value> = ran.out.lines().filter_map(|line| serde_json::from_str(line).ok()).collect();
        assert_eq!(objects.len(), ran.out.lines().count(), "{arguments:?}: {}", ran.out);
        assert!(!objects.is_empty() && objects.iter().all(Value::is_object), "{arguments:?}: {}", ran.out);
    }
}

#[test]
fn an_error_of_any_command_is_one_object() {
    for words in listed() {
        let ran = yirage(&[&words.split(' ').collect::<Vec<_>>()[..], &["--json", "--no-such-option"]].concat()).ran();
        assert!(ran.code == 2 && ran.out.is_empty(), "{words}: {} {}", ran.code, ran.out);
        let error: Value = serde_json::from_str(&ran.err).unwrap_or_else(|e| panic!("{words}: {e}: {}", ran.err));
        let error = &error["error"];
        assert_eq!((&error["code"], &error["kind"]), (&2.into(), &"usage".into()), "{words}: {error}");
        assert!(error["message"].as_str().unwrap().contains("--no-such-option"), "{words}: {error}");
    }
}
