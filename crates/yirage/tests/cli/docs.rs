//! The examples of the documents for users, run as they stand there.
//!
//! In a `console` block, a line that begins with `$ ` is a command; the lines behind it are its standard output, in
//! which `...` stands for anything, also for whole lines.

use crate::support::{path, yirage};
use std::path::Path;
use yirage_testkit::encoders;

/// Pages with examples, and how many there are at least.
const PAGES: [(&str, usize); 3] = [("cli.md", 33), ("guide.md", 16), ("backends.md", 3)];

pub(crate) fn page(name: &str) -> String {
    std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs").join(name)).unwrap()
}

#[test]
fn examples_give_what_they_show() {
    PAGES.iter().for_each(|(name, least)| check(&page(name), *least));
}

fn check(text: &str, least: usize) {
    let models = yirage_testkit::bedtime::folder();
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("story.txt"), "One day, a little cat named Tom went to the park.").unwrap();
    std::fs::write(folder.path().join("talk.txt"), "In the deep forest\n/exit\n").unwrap();
    std::fs::write(folder.path().join("h200-nodes.json"), page("benchmarks/fleets/h200-nodes.json")).unwrap();
    crate::graph::files(folder.path());
    let mut examples = 0;
    for (command, shown) in commands(text) {
        let words = words(&command);
        let (program, arguments) = words.split_first().unwrap();
        assert_eq!(program, "yirage", "{command}");
        let (arguments, input) = match arguments.iter().position(|w| w == "<") {
            Some(at) => (&arguments[..at], std::fs::read_to_string(folder.path().join(&arguments[at + 1])).unwrap()),
            None => (arguments, String::new()),
        };
        let arguments: Vec<String> = arguments.iter().map(|a| in_folder(a, folder.path())).collect();
        let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
        let cache = folder.path().to_str().unwrap();
        let run = yirage(&arguments).env("YIRAGE_MODELS", models.to_str().unwrap()).env("HF_HUB_CACHE", cache);
        let ran = run.env("XDG_CONFIG_HOME", cache).input(&input).ran();
        assert_eq!(ran.code, 0, "{command}: {}", ran.err);
        assert!(fits(&shown, &ran.out), "{command}\nshown:\n{shown}\nis:\n{}", ran.out);
        examples += 1;
    }
    assert!(examples >= least, "only {examples} examples were found");
}

#[test]
fn every_option_is_documented() {
    let text = page("cli.md");
    let explained = yirage(&["config", "explain", "--json"]).json();
    for option in explained["options"].as_array().unwrap() {
        let name = option["name"].as_str().unwrap();
        assert!(text.contains(&format!("`--{name}`")), "--{name} is not in docs/cli.md");
    }
}

/// Example files lie in a folder of their own, encoders and the folder of the small model are made.
fn in_folder(argument: &str, folder: &Path) -> String {
    let path = match argument {
        "tiny-encoder" => return path(&encoders::model("embed")),
        "tiny-reranker" => return path(&encoders::model("score")),
        "bedtime-hf" => return path(&yirage_testkit::bedtime::safetensors_with_tokenizer()),
        file => folder.join(file),
    };
    // Arrays are written there as well as read.
    if let Some((name, file)) = argument.split_once('=').filter(|(_, file)| file.ends_with(".npy")) {
        return format!("{name}={}", folder.join(file).display());
    }
    // So are plans and importances.
    let written = argument.ends_with(".plan") || argument.ends_with("-imatrix.gguf");
    if path.is_file() || written { path.to_str().unwrap().to_owned() } else { argument.to_owned() }
}

pub(crate) fn commands(text: &str) -> Vec<(String, String)> {
    let mut found: Vec<(String, String)> = Vec::new();
    let mut inside = false;
    for line in text.lines() {
        match (inside, line) {
            (false, "```console") => inside = true,
            (true, "```") => inside = false,
            (true, line) => match (line.strip_prefix("$ "), found.last_mut()) {
                (Some(command), _) => found.push((command.to_owned(), String::new())),
                (None, Some((_, shown))) => {
                    shown.push_str(line);
                    shown.push('\n');
                }
                (None, None) => panic!("output before any command: {line}"),
            },
            (false, _) => {}
        }
    }
    found
}

/// Splits like a shell, as far as the examples need it.
pub(crate) fn words(command: &str) -> Vec<String> {
    let mut words = Vec::new();
    let mut quoted = None;
    let mut word = String::new();
    for c in command.chars() {
        match (c, quoted) {
            ('"' | '\'', None) => quoted = Some(c),
            (c, Some(quote)) if c == quote => quoted = None,
            (' ', None) => words.push(std::mem::take(&mut word)),
            (c, _) => word.push(c),
        }
    }
    words.push(word);
    words.retain(|w| !w.is_empty());
    words
}

/// Whether `text` is `pattern` with each `...` replaced by something.
pub(crate) fn fits(pattern: &str, text: &str) -> bool {
    let parts: Vec<&str> = pattern.split("...").collect();
    let [first, .., last] = parts.as_slice() else { return pattern == text };
    let Some(mut rest) = text.strip_prefix(first).and_then(|t| t.strip_suffix(last)) else { return false };
    for part in &parts[1..parts.len() - 1] {
        let Some(at) = rest.find(part) else { return false };
        rest = &rest[at + part.len()..];
    }
    true
}
