//! How help texts are arranged: commands by what they are for, options by what they are about, and what `-h` leaves out.

use super::command::{CliCommand, GROUPS};
use super::spec::Spec;
use super::table::OPTIONS;
use std::fmt::Write;

/// Commands and groups of them by their first word, under what they are for.
const SECTIONS: &[(&str, &[&str])] = &[
    ("Talk with a model", &["run", "chat"]),
    ("Serve models", &["serve", "route", "bench-serve"]),
    ("Get and look at models", &["pull", "list", "rm", "inspect", "convert", "imatrix", "quantize"]),
    ("Texts", &["embed", "rerank", "tokenize", "perplexity", "logits"]),
    ("This machine", &["devices", "doctor", "verify", "backend"]),
    ("Measure and explain", &["bench", "scale", "bench-graph", "explain"]),
    ("Graphs and plans", &["graph", "plan"]),
    ("Settings and the rest", &["config", "cache", "completions", "version"]),
];

/// The option with which a part of the table begins, and what that part is about.
const HEADINGS: &[(&str, &str)] = &[
    ("config", GENERAL),
    ("model", "Model and device"),
    ("prompt", "Prompt"),
    ("max-tokens", "Choosing tokens"),
    ("speculate", "Faster, with the same text"),
    ("ids", "Texts and token ids"),
    ("n-prompt", "What is measured"),
    ("host", "Server"),
    ("health-time", "Router"),
    ("endpoint-type", "Load"),
    ("batch", "Graphs that are measured"),
    ("input", "Graphs in files"),
    ("tune", "Measuring this machine"),
    ("plan", "Plans, and what is explained"),
    ("devices", "Several devices"),
    ("quick", "What is verified"),
    ("mix", "Quantising"),
    ("outtype", "Converting"),
    ("force", "The file that is written"),
];
/// What options of no command in particular are about: those come last.
pub(super) const GENERAL: &str = "Any command";

/// Options that `-h` leaves out and `--help` has.
const RARE: &[&str] = &[
    "config",
    "log-level",
    "models",
    "python",
    "device",
    "launch",
    "rank-time",
    "keep-stalled",
    "isa",
    "variant",
    "executor",
    "kv-type",
    "chunk",
    "prefix-cache",
    "weight-cache",
    "weight-cache-dir",
    "weight-cache-limit",
    "prompt-ids",
    "chat-template",
    "min-p",
    "presence-penalty",
    "frequency-penalty",
    "samplers",
    "dry-multiplier",
    "dry-base",
    "dry-allowed-length",
    "dry-penalty-last-n",
    "dry-sequence-breaker",
    "xtc-probability",
    "xtc-threshold",
    "typical",
    "top-nsigma",
    "dynatemp-range",
    "dynatemp-exp",
    "mirostat",
    "mirostat-lr",
    "mirostat-ent",
    "speculate",
    "draft-max",
    "ignore-eos",
    "parse-special",
    "fuse",
    "profile",
    "allowed-host",
    "allowed-origin",
    "max-queued",
    "max-queued-tokens",
    "max-step-ms",
    "models-memory",
    "slot-save-path",
    "prefill-server",
    "prefill-least",
    "prefill-key-file",
    "idle-unload",
    "request-time",
    "drain-time",
    "stuck-after",
    "insecure",
    "tls-key",
    "extra-body",
    "header",
    "custom-output-len",
    "num-warmups",
    "random-prefix-len",
    "random-range-ratio",
    "burstiness",
    "ready-check-timeout-sec",
    "percentile-metrics",
    "metric-percentiles",
    "save-detailed",
    "append-result",
    "result-dir",
    "result-filename",
    "label",
    "metadata",
    "paced",
];

/// The template of the program's own help: clap has no headings for commands.
pub(super) const TEMPLATE: &str =
    "{about-with-newline}\n{usage-heading} {usage}\n\n{before-help}Options:\n{options}{after-help}";

const FIRST_STEPS: &str = "First steps: `yirage run` talks with a small model, `yirage run MODEL` with your own;\n\
    `yirage doctor` says what is here. `yirage COMMAND -h` shows a command's options, `--help` all.";
const EXIT_CODES: &str = "Exit codes: 0 ok, 1 failure, 2 wrong usage, 3 not supported here, 4 would not fit in memory, 5 slower or worse\n\
    than before, 6 results differ from the reference, 130 interrupted, 141 nobody reads it.\n\
    Every option can also be an environment variable (--max-tokens: YIRAGE_MAX_TOKENS) or a line of\n\
    ~/.config/yirage/config.toml (max_tokens = 100); flags win over variables, variables over the file.";

/// What stands below the options of `yirage -h`.
pub(super) fn after() -> &'static str {
    FIRST_STEPS
}

/// What stands below the options of `yirage --help`.
pub(super) fn long_after() -> String {
    format!("{FIRST_STEPS}\n\n{EXIT_CODES}")
}

/// All commands by what they are for; `all` shows those of groups as well.
pub(super) fn commands(all: bool) -> String {
    let mut text = String::new();
    for (heading, words) in SECTIONS {
        // Text cannot refuse more text.
        let _ = writeln!(text, "{heading}:");
        for word in *words {
            let _ = writeln!(text, "  {word:<12} {}", about(word));
            let inner = CliCommand::ALL.iter().filter(|command| all && command.group().first() == Some(word));
            for command in inner {
                let name = [&command.group()[1..], &[command.name()]].concat().join(" ");
                let _ = writeln!(text, "    {name:<14} {}", command.about());
            }
        }
        text.push('\n');
    }
    text.trim_end().to_owned()
}

fn about(word: &str) -> &'static str {
    let command = CliCommand::ALL.iter().find(|command| command.group().is_empty() && command.name() == word);
    let group = || GROUPS.iter().find(|(words, _)| *words == [word]).map(|(_, about)| *about);
    command.map(|command| command.about()).or_else(group).unwrap_or_default()
}

/// Every option with what it is about, in the order of the table.
pub(super) fn with_headings() -> impl Iterator<Item = (&'static Spec, &'static str)> {
    OPTIONS.iter().scan(GENERAL, |heading, spec| {
        *heading = HEADINGS.iter().find(|(first, _)| *first == spec.name).map_or(*heading, |(_, about)| *about);
        Some((spec, *heading))
    })
}

/// Whether `-h` leaves an option out.
pub(super) fn is_rare(spec: &Spec) -> bool {
    RARE.contains(&spec.name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_command_stands_in_one_section() {
        for command in CliCommand::ALL {
            let word = command.group().first().copied().unwrap_or(command.name());
            let sections = SECTIONS.iter().filter(|(_, words)| words.contains(&word)).count();
            assert_eq!(sections, 1, "{word}");
        }
        for word in SECTIONS.iter().flat_map(|(_, words)| *words) {
            assert!(!about(word).is_empty(), "{word} is no command");
        }
    }

    #[test]
    fn headings_and_rare_options_are_in_the_table() {
        // Longer lines are broken on usual terminals, and stand below the wrong column.
        let long = commands(true).lines().find(|line| line.len() >= 100).map(str::to_owned);
        assert_eq!(long, None);
        let there = |name: &&str| OPTIONS.iter().any(|spec| spec.name == *name);
        assert!(HEADINGS.iter().map(|(first, _)| first).all(there) && RARE.iter().all(there));
        assert_eq!(OPTIONS[0].name, HEADINGS[0].0);
        let of = |name: &str| with_headings().find(|(spec, _)| spec.name == name).unwrap().1;
        assert_eq!([of("seed"), of("json"), of("port")], ["Choosing tokens", GENERAL, "Server"]);
    }
}
