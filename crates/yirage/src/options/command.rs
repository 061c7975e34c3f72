//! The commands, and what each is for.

use crate::failure::Failure;
use clap::{Arg, ArgMatches};
use clap_complete::Shell;

/// A command.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Command {
    /// One prompt, one answer.
    Run,
    /// A conversation.
    Chat,
    /// Logits of given ids.
    Logits,
    /// How well a model predicts a text.
    Perplexity,
    /// Models over HTTP.
    Serve,
    /// Vectors of texts.
    Embed,
    /// How well texts answer a query.
    Rerank,
    /// Text to ids and back.
    Tokenize,
    /// What a model file holds.
    Inspect,
    /// Fetch a model.
    Pull,
    /// Show the models here.
    List,
    /// Remove a model.
    Rm,
    /// Look after repacked weights.
    Cache,
    /// Show devices.
    Devices,
    /// Show what this machine has and can do.
    Doctor,
    /// Measure how fast a model runs.
    Bench,
    /// Measure how fast the graphs of Mirage's benchmarks run.
    BenchGraph,
    /// Measure what clients of a server see.
    BenchServe,
    /// Show one device, and what it can do at most.
    BackendInfo,
    /// Show which settings suit a device.
    BackendOptimize,
    /// Time ops on backends.
    BackendBenchmark,
    /// Keep a backend as the default.
    BackendSet,
    /// Forget the backend that was kept.
    BackendReset,
    /// Write the kept settings to a file.
    BackendSave,
    /// Keep the settings of a file.
    BackendLoad,
    /// Show the kept settings.
    BackendShow,
    /// Compare a device with the reference.
    BackendTest,
    /// Call a graph with arrays.
    GraphRun,
    /// Show a graph.
    GraphShow,
    /// Show what a graph takes and gives, and its kernels.
    GraphCheck,
    /// Write the plan of a graph to a file.
    PlanSave,
    /// Show what a plan file holds.
    PlanShow,
    /// Prove the plan of a file for a device.
    PlanCheck,
    /// Run the plan of a file with arrays.
    PlanRun,
    /// Explain the plan of a model, a graph or a plan file.
    Explain,
    /// Completions for a shell.
    Completions,
    /// Show the version, and what was built in.
    Version,
    /// Show every option with its origin.
    ConfigExplain,
}

/// The name of positional arguments.
pub(super) const POSITIONAL: &str = "positional";
/// The words that stand before those of some commands, and what these commands have in common.
pub(super) const GROUPS: &[(&[&str], &str)] = &[
    (CONFIG, "Show options"),
    (BACKEND, "Look at, choose, tune, time and test backends"),
    (BACKEND_CONFIG, "Save, load or show the settings that are kept"),
    (GRAPH, "Run, show and check graphs in files"),
    (PLAN, "Save, show, check and run plans in files"),
];
const CONFIG: &[&str] = &["config"];
const BACKEND: &[&str] = &["backend"];
const GRAPH: &[&str] = &["graph"];
const PLAN: &[&str] = &["plan"];
const BACKEND_CONFIG: &[&str] = &["backend", "config"];

impl Command {
    /// All commands, in the order of the help text.
    pub(crate) const ALL: &'static [Command] = &[
        Command::Run,
        Command::Chat,
        Command::Serve,
        Command::Logits,
        Command::Perplexity,
        Command::Embed,
        Command::Rerank,
        Command::Tokenize,
        Command::Inspect,
        Command::Pull,
        Command::List,
        Command::Rm,
        Command::Cache,
        Command::Devices,
        Command::Doctor,
        Command::Bench,
        Command::BenchGraph,
        Command::BenchServe,
        Command::BackendInfo,
        Command::BackendOptimize,
        Command::BackendBenchmark,
        Command::BackendSet,
        Command::BackendReset,
        Command::BackendSave,
        Command::BackendLoad,
        Command::BackendShow,
        Command::BackendTest,
        Command::GraphRun,
        Command::GraphShow,
        Command::GraphCheck,
        Command::PlanSave,
        Command::PlanShow,
        Command::PlanCheck,
        Command::PlanRun,
        Command::Explain,
        Command::Completions,
        Command::Version,
        Command::ConfigExplain,
    ];

    /// The words before its own on the command line.
    pub(super) fn group(self) -> &'static [&'static str] {
        match self {
            Command::ConfigExplain => CONFIG,
            Command::BackendInfo
            | Command::BackendOptimize
            | Command::BackendBenchmark
            | Command::BackendSet
            | Command::BackendReset
            | Command::BackendTest => BACKEND,
            Command::BackendSave | Command::BackendLoad | Command::BackendShow => BACKEND_CONFIG,
            Command::GraphRun | Command::GraphShow | Command::GraphCheck => GRAPH,
            Command::PlanSave | Command::PlanShow | Command::PlanCheck | Command::PlanRun => PLAN,
            _ => &[],
        }
    }

    /// Its own word on the command line, behind those of its group.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Command::Run => "run",
            Command::Chat => "chat",
            Command::Serve => "serve",
            Command::Logits => "logits",
            Command::Perplexity => "perplexity",
            Command::Embed => "embed",
            Command::Rerank => "rerank",
            Command::Tokenize => "tokenize",
            Command::Inspect => "inspect",
            Command::Pull => "pull",
            Command::List => "list",
            Command::Rm => "rm",
            Command::Cache => "cache",
            Command::Devices => "devices",
            Command::Doctor => "doctor",
            Command::BenchServe => "bench-serve",
            Command::Bench => "bench",
            Command::BenchGraph => "bench-graph",
            Command::BackendInfo => "info",
            Command::BackendOptimize => "optimize",
            Command::BackendBenchmark => "benchmark",
            Command::BackendSet => "set",
            Command::BackendReset => "reset",
            Command::BackendSave => "save",
            Command::BackendLoad => "load",
            Command::BackendShow => "show",
            Command::BackendTest => "test",
            Command::GraphRun => "run",
            Command::GraphShow => "show",
            Command::GraphCheck => "check",
            Command::PlanSave => "save",
            Command::PlanShow => "show",
            Command::PlanCheck => "check",
            Command::PlanRun => "run",
            Command::Completions => "completions",
            Command::Version => "version",
            Command::Explain | Command::ConfigExplain => "explain",
        }
    }

    /// What it does.
    pub(super) fn about(self) -> &'static str {
        match self {
            Command::Run => "Answer one prompt, or without one talk at a terminal",
            Command::Chat => "Talk with a model; /help shows what can be done besides",
            Command::Serve => "Serve models over HTTP to clients of OpenAI, Anthropic, llama.cpp, vLLM and ollama",
            Command::Logits => "Print what a model computes for the given token ids",
            Command::Perplexity => "Measure how well a model predicts a text",
            Command::Embed => "Print vectors of texts by an encoder",
            Command::Rerank => "Print how well texts answer a query by an encoder that scores",
            Command::Tokenize => "Turn text into token ids, or ids back into text",
            Command::Inspect => "Show header, tensors, template and flaws of a model",
            Command::Pull => "Fetch a model into the cache",
            Command::List => "Show the models in the cache and the catalogue",
            Command::Rm => "Remove a model from the cache",
            Command::Cache => "List, clear or verify the repacked weights on disk",
            Command::Devices => "Show the devices here; -v says why others are unavailable",
            Command::Doctor => "Show devices, folders and, with --roofline, what this machine can do at most",
            Command::Bench => "Measure how fast a model runs, and how much of the machine that is",
            Command::BenchGraph => "Measure how fast the graphs of Mirage's benchmarks run",
            Command::BenchServe => "Measure what clients of a server see: latencies, throughput, goodput",
            Command::BackendInfo => "Show a backend's device and, with --measure, what it can do at most",
            Command::BackendOptimize => "Show which settings suit a device and why; --apply keeps them",
            Command::BackendBenchmark => "Time ops of a model's layer on every backend that is here",
            Command::BackendSet => "Keep a backend as the default of later starts",
            Command::BackendReset => "Forget the backend that was kept",
            Command::BackendSave => "Write the settings that are kept to a file, TOML or *.json",
            Command::BackendLoad => "Keep the settings of such a file, beside those that it does not name",
            Command::BackendShow => "Show the settings that are kept",
            Command::BackendTest => "Compare a device's results with the reference; exit code 1 if any is wrong",
            Command::GraphRun => "Call a graph of a JSON file with arrays of .npy files",
            Command::GraphShow => "Print a graph as text, as an SVG picture, or for graphviz",
            Command::GraphCheck => "Show what a graph takes and gives, and which kernels a device has for it",
            Command::PlanSave => "Compile a graph for a device and write its plan to a file",
            Command::PlanShow => "Show what a plan file holds, which proves nothing of it",
            Command::PlanCheck => "Prove the plan of a file for a device",
            Command::PlanRun => "Prove the plan of a file and run it with arrays of .npy files",
            Command::Completions => "Print the completion script for a shell",
            Command::Version => "Show the version, and the backends that were built in",
            Command::Explain => "Explain how a model, a graph or a plan file runs: reasons, kernels, limits, memory",
            Command::ConfigExplain => "Show the value of every option and where it came from",
        }
    }

    /// Options of it that may as well stand without their names, in this order.
    pub(super) fn nameless(self) -> &'static [&'static str] {
        match self {
            Command::Run => &["model", "prompt"],
            Command::Tokenize => &["model", "text"],
            Command::Chat
            | Command::Logits
            | Command::Perplexity
            | Command::Embed
            | Command::Rerank
            | Command::Inspect
            | Command::Explain
            | Command::Bench => &["model"],
            Command::BackendInfo | Command::BackendOptimize | Command::BackendTest => &["backend"],
            _ => &[],
        }
    }

    /// Its positional argument where that is no option.
    pub(super) fn positional(self) -> Option<Arg> {
        let model = Arg::new(POSITIONAL).value_name("MODEL").help("Catalogue name or hf:org/repo[:quant]");
        let name = Arg::new(POSITIONAL).value_name("NAME");
        let file = Arg::new(POSITIONAL).value_name("FILE").required(true);
        match self {
            Command::BackendBenchmark => {
                Some(name.num_args(0..).help("Backends to time, instead of all that are here"))
            }
            Command::BenchGraph => Some(name.num_args(0..).help("Workloads of --list to time, instead of all")),
            Command::BackendSet => Some(name.required(true).help("Backend of `yirage devices`, or auto")),
            Command::BackendSave => Some(file.help("File to write")),
            Command::BackendLoad => Some(file.help("File to read")),
            Command::GraphRun | Command::GraphShow | Command::GraphCheck => Some(file.help("JSON file of the graph")),
            Command::PlanSave => Some(file.help("File of the graph, NAME.json or NAME.graph")),
            Command::PlanShow | Command::PlanCheck | Command::PlanRun => Some(file.help("Plan file")),
            Command::Serve => {
                let help = "GGUF files, safetensors folders, catalogue names, or hf:org/repo[:quant]";
                Some(Arg::new(POSITIONAL).value_name("MODEL").num_args(0..).help(help))
            }
            Command::Pull => Some(model),
            Command::Rm => Some(model.required(true)),
            Command::Cache => {
                let actions = ["list", "clear", "verify"];
                Some(Arg::new(POSITIONAL).value_name("ACTION").required(true).value_parser(actions))
            }
            Command::Completions => {
                let shells = ["bash", "elvish", "fish", "powershell", "zsh"];
                Some(Arg::new(POSITIONAL).value_name("SHELL").required(true).value_parser(shells))
            }
            _ => None,
        }
    }
}

/// The command that was chosen, with its own matches.
pub(super) fn chosen(matches: &ArgMatches) -> Result<(Command, &ArgMatches), Failure> {
    let (mut words, mut own) = (Vec::new(), matches);
    while let Some((word, matches)) = own.subcommand() {
        words.push(word);
        own = matches;
    }
    let is = |c: &Command| words.split_last().is_some_and(|(last, group)| *last == c.name() && group == c.group());
    let missing = || Failure::Usage("no command was given; see `yirage --help`".into());
    Ok((Command::ALL.iter().copied().find(is).ok_or_else(missing)?, own))
}

/// The shell called `name`.
///
/// # Errors
/// [`Failure::Usage`]; the command line itself allows known ones only.
pub(crate) fn shell(name: &str) -> Result<Shell, Failure> {
    name.parse().map_err(|why| Failure::Usage(format!("{name:?} is no shell: {why}")))
}
