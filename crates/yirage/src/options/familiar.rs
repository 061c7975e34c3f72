//! Names that llama.cpp, ollama, vLLM and others have for what is here: they work, or the error says what to type.

use super::command::CliCommand;

/// Further long flags of options.
const FLAGS: &[(&str, &[&str])] = &[
    ("temperature", &["temp"]),
    ("max-tokens", &["n-predict", "predict", "num-predict", "max-new-tokens"]),
    ("context", &["ctx-size", "num-ctx", "max-model-len"]),
    ("chunk", &["ubatch-size"]),
    ("repetition-penalty", &["repeat-penalty"]),
    ("typical", &["typical-p"]),
    ("top-nsigma", &["top-n-sigma"]),
    ("system", &["system-prompt"]),
    ("prompt-file", &["file"]),
    ("draft-model", &["model-draft"]),
    ("max-seqs", &["max-num-seqs", "parallel"]),
    ("served-model-name", &["alias"]),
    ("tp", &["tensor-parallel-size"]),
    ("ep", &["expert-parallel-size", "ep-size"]),
    ("pp", &["pipeline-parallel-size", "pp-size"]),
];

/// Further names of commands.
const COMMANDS: &[(&str, &[&str])] = &[
    ("run", &["generate"]),
    ("list", &["ls", "models"]),
    ("rm", &["remove", "delete"]),
    ("inspect", &["show"]),
    ("pull", &["download"]),
    ("bench", &["benchmark"]),
    ("embed", &["embeddings"]),
    ("doctor", &["info"]),
];

/// Commands that others have, and what to type here.
const REMEDIES: &[(&str, &str)] = &[
    ("ps", "a server says which models it has loaded: GET /api/ps; `yirage list` shows those on disk"),
    ("stop", "Ctrl-C or SIGTERM ends `yirage serve`; --idle-unload unloads models that nobody asks"),
    ("start", "`yirage serve MODEL` is the server"),
    ("server", "`yirage serve MODEL` is the server"),
    ("create", "there is no Modelfile here: options stand on the command line or in ~/.config/yirage/config.toml"),
    ("push", "models are fetched and not published: `yirage pull`"),
    ("cp", "`yirage serve --served-model-name NAME=MODEL` gives a model another name"),
    ("login", "set HF_TOKEN for models that need a token"),
    ("search", "`yirage list` shows the models that have a short name; others are hf:ORG/REPO[:QUANT]"),
];

/// Options that others have, and what to type here.
const OPTION_REMEDIES: &[(&[&str], &str)] = &[
    (&["enable-expert-parallel"], "--ep N, with as many ranks as --tp, gives each rank experts of its own"),
    (&["dp", "data-parallel-size"], "`yirage route` stands before several servers of a model"),
    (
        &["split-mode", "tensor-split"],
        "--tp N divides every layer by devices, --pp N gives each device some layers, equally",
    ),
    (&["main-gpu"], "--backend and --device name the device"),
    (&["gpu-memory-utilization"], "--kv-memory says how much memory the KV cache may take"),
    (
        &["speculative-config", "speculative-algorithm", "speculative-algo", "spec-type"],
        "--speculate says who guesses: lookup (n-grams), draft (--draft-model), mtp (the model's own layer for that, NEXTN)",
    ),
    (
        &["speculative-num-steps", "speculative-num-draft-tokens", "spec-draft-n-max", "num-speculative-tokens"],
        "--draft-max N lets a step verify N guessed tokens at most",
    ),
    (&["mlock", "no-mmap"], "weights are kept repacked and mapped from there; `yirage cache list` shows them"),
];

/// An option of others that asks for nothing here.
pub(super) struct Unused {
    pub(super) name: &'static str,
    pub(super) others: &'static [&'static str],
    /// Why it asks for nothing, and what to type.
    pub(super) why: &'static str,
}

/// Options of commands that load a model and ask for nothing here.
pub(super) const UNUSED: &[Unused] = &[Unused {
    name: "n-gpu-layers",
    others: &["gpu-layers", "ngl"],
    why: "a model is on one device as a whole, which --backend names",
}];

/// llama.cpp's way to name a repository of the hub.
pub(super) const HUB_REPO: &str = "hf-repo";

/// Words of several letters behind one dash, which are letters to clap.
pub(super) const DASHED: &[(&str, &str)] = &[("-ngl", "--n-gpu-layers"), ("-hf", "--hf-repo"), ("-pg", "--pg")];

/// Further long flags of the option called `name`.
pub(super) fn flags(name: &str) -> &'static [&'static str] {
    FLAGS.iter().find(|(own, _)| *own == name).map(|(_, others)| *others).unwrap_or_default()
}

/// Further names of a command.
pub(super) fn commands(command: CliCommand) -> &'static [&'static str] {
    let own = |(name, _): &&(&str, _)| command.group().is_empty() && *name == command.name();
    COMMANDS.iter().find(own).map(|(_, others)| *others).unwrap_or_default()
}

/// What to type instead of a command that is not here.
pub(super) fn remedy(word: &str) -> Option<&'static str> {
    REMEDIES.iter().find(|(theirs, _)| *theirs == word).map(|(_, remedy)| *remedy)
}

/// What to type instead of an option that is not here.
pub(super) fn option_remedy(flag: &str) -> Option<&'static str> {
    let name = flag.strip_prefix("--")?.split('=').next()?;
    OPTION_REMEDIES.iter().find(|(theirs, _)| theirs.contains(&name)).map(|(_, remedy)| *remedy)
}

#[cfg(test)]
mod tests {
    use super::super::table::OPTIONS;
    use super::*;

    #[test]
    fn what_is_named_again_is_there() {
        for (name, _) in FLAGS {
            assert!(OPTIONS.iter().any(|spec| spec.name == *name), "{name}");
        }
        for (name, others) in COMMANDS {
            assert!(CliCommand::ALL.iter().any(|c| c.group().is_empty() && c.name() == *name), "{name}");
            assert!(others.iter().all(|other| remedy(other).is_none()), "{others:?}");
        }
        let theirs = OPTION_REMEDIES.iter().flat_map(|(names, _)| *names);
        let is_here = |name: &str| OPTIONS.iter().any(|spec| spec.name == name || flags(spec.name).contains(&name));
        for name in theirs {
            assert!(!is_here(name), "--{name}");
        }
    }
}
