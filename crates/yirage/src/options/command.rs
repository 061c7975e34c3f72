//! The commands, and what each is for.

use crate::failure::CliFailure;
use clap::{Arg, ArgMatches};
use clap_complete::Shell;

/// A command.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum CliCommand {
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
    /// One address for several servers.
    Route,
    /// Vectors of texts.
    Embed,
    /// How well texts answer a query.
    Rerank,
    /// Text to ids and back.
    Tokenize,
    /// What a model file holds.
    Inspect,
    /// Write a folder as one file.
    Convert,
    /// Find how much each input of a model's matrices counts.
    Imatrix,
    /// Write a model with fewer bits.
    Quantize,
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
    /// Compare a backend with the reference.
    Verify,
    /// Measure how fast a model runs.
    Bench,
    /// Tell how long steps take on several devices.
    Scale,
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

impl CliCommand {
    /// All commands, in the order of the help text.
    pub(crate) const ALL: &'static [CliCommand] = &[
        CliCommand::Run,
        CliCommand::Chat,
        CliCommand::Serve,
        CliCommand::Route,
        CliCommand::Logits,
        CliCommand::Perplexity,
        CliCommand::Embed,
        CliCommand::Rerank,
        CliCommand::Tokenize,
        CliCommand::Inspect,
        CliCommand::Convert,
        CliCommand::Imatrix,
        CliCommand::Quantize,
        CliCommand::Pull,
        CliCommand::List,
        CliCommand::Rm,
        CliCommand::Cache,
        CliCommand::Devices,
        CliCommand::Doctor,
        CliCommand::Verify,
        CliCommand::Bench,
        CliCommand::Scale,
        CliCommand::BenchGraph,
        CliCommand::BenchServe,
        CliCommand::BackendInfo,
        CliCommand::BackendOptimize,
        CliCommand::BackendBenchmark,
        CliCommand::BackendSet,
        CliCommand::BackendReset,
        CliCommand::BackendSave,
        CliCommand::BackendLoad,
        CliCommand::BackendShow,
        CliCommand::BackendTest,
        CliCommand::GraphRun,
        CliCommand::GraphShow,
        CliCommand::GraphCheck,
        CliCommand::PlanSave,
        CliCommand::PlanShow,
        CliCommand::PlanCheck,
        CliCommand::PlanRun,
        CliCommand::Explain,
        CliCommand::Completions,
        CliCommand::Version,
        CliCommand::ConfigExplain,
    ];

    /// The words before its own on the command line.
    pub(super) fn group(self) -> &'static [&'static str] {
        match self {
            CliCommand::ConfigExplain => CONFIG,
            CliCommand::BackendInfo
            | CliCommand::BackendOptimize
            | CliCommand::BackendBenchmark
            | CliCommand::BackendSet
            | CliCommand::BackendReset
            | CliCommand::BackendTest => BACKEND,
            CliCommand::BackendSave | CliCommand::BackendLoad | CliCommand::BackendShow => BACKEND_CONFIG,
            CliCommand::GraphRun | CliCommand::GraphShow | CliCommand::GraphCheck => GRAPH,
            CliCommand::PlanSave | CliCommand::PlanShow | CliCommand::PlanCheck | CliCommand::PlanRun => PLAN,
            _ => &[],
        }
    }

    /// Its own word on the command line, behind those of its group.
    pub(crate) fn name(self) -> &'static str {
        match self {
            CliCommand::Run => "run",
            CliCommand::Chat => "chat",
            CliCommand::Serve => "serve",
            CliCommand::Route => "route",
            CliCommand::Logits => "logits",
            CliCommand::Perplexity => "perplexity",
            CliCommand::Embed => "embed",
            CliCommand::Rerank => "rerank",
            CliCommand::Tokenize => "tokenize",
            CliCommand::Inspect => "inspect",
            CliCommand::Convert => "convert",
            CliCommand::Imatrix => "imatrix",
            CliCommand::Quantize => "quantize",
            CliCommand::Pull => "pull",
            CliCommand::List => "list",
            CliCommand::Rm => "rm",
            CliCommand::Cache => "cache",
            CliCommand::Devices => "devices",
            CliCommand::Doctor => "doctor",
            CliCommand::Verify => "verify",
            CliCommand::BenchServe => "bench-serve",
            CliCommand::Bench => "bench",
            CliCommand::Scale => "scale",
            CliCommand::BenchGraph => "bench-graph",
            CliCommand::BackendInfo => "info",
            CliCommand::BackendOptimize => "optimize",
            CliCommand::BackendBenchmark => "benchmark",
            CliCommand::BackendSet => "set",
            CliCommand::BackendReset => "reset",
            CliCommand::BackendSave => "save",
            CliCommand::BackendLoad => "load",
            CliCommand::BackendShow => "show",
            CliCommand::BackendTest => "test",
            CliCommand::GraphRun => "run",
            CliCommand::GraphShow => "show",
            CliCommand::GraphCheck => "check",
            CliCommand::PlanSave => "save",
            CliCommand::PlanShow => "show",
            CliCommand::PlanCheck => "check",
            CliCommand::PlanRun => "run",
            CliCommand::Completions => "completions",
            CliCommand::Version => "version",
            CliCommand::Explain | CliCommand::ConfigExplain => "explain",
        }
    }

    /// What it does.
    pub(super) fn about(self) -> &'static str {
        match self {
            CliCommand::Run => "Answer one prompt, or without one talk at a terminal",
            CliCommand::Chat => "Talk with a model; /help shows what can be done besides",
            CliCommand::Serve => "Serve models over HTTP to clients of OpenAI, Anthropic, llama.cpp, vLLM and ollama",
            CliCommand::Route => "Give each request to one of several servers, by its prompt's beginning and by load",
            CliCommand::Logits => "Print what a model computes for the given token ids",
            CliCommand::Perplexity => "Measure how well a model predicts a text",
            CliCommand::Embed => "Print vectors of texts by an encoder",
            CliCommand::Rerank => "Print how well texts answer a query by an encoder that scores",
            CliCommand::Tokenize => "Turn text into token ids, or ids back into text",
            CliCommand::Inspect => "Show header, tensors, template and flaws of a model",
            CliCommand::Convert => "Write a folder of safetensors as one GGUF file",
            CliCommand::Imatrix => "Find by a text how much each input of a model's matrices counts, for quantize",
            CliCommand::Quantize => "Write a GGUF file of floats anew, with few bits a weight",
            CliCommand::Pull => "Fetch a model into the cache",
            CliCommand::List => "Show the models in the cache and the catalogue",
            CliCommand::Rm => "Remove a model from the cache",
            CliCommand::Cache => "List, clear or verify the repacked weights on disk",
            CliCommand::Devices => "Show the devices here; -v says why others are unavailable",
            CliCommand::Doctor => "Show devices, folders and, with --roofline, what this machine can do at most",
            CliCommand::Verify => "Compare a backend with the reference: every op, every format, a whole model",
            CliCommand::Bench => "Measure how fast a model runs, and how much of the machine that is",
            CliCommand::Scale => "Tell how long a model's steps take on 2, 8 or 1,024 devices, here or elsewhere",
            CliCommand::BenchGraph => "Measure how fast the graphs of Mirage's benchmarks run",
            CliCommand::BenchServe => "Measure what clients of a server see: latencies, throughput, goodput",
            CliCommand::BackendInfo => "Show a backend's device and, with --measure, what it can do at most",
            CliCommand::BackendOptimize => "Show which settings suit a device and why; --apply keeps them",
            CliCommand::BackendBenchmark => "Time ops of a model's layer on every backend that is here",
            CliCommand::BackendSet => "Keep a backend as the default of later starts",
            CliCommand::BackendReset => "Forget the backend that was kept",
            CliCommand::BackendSave => "Write the settings that are kept to a file, TOML or *.json",
            CliCommand::BackendLoad => "Keep the settings of such a file, beside those that it does not name",
            CliCommand::BackendShow => "Show the settings that are kept",
            CliCommand::BackendTest => "Compare a device's results with the reference; exit code 1 if any is wrong",
            CliCommand::GraphRun => "Call a graph of a JSON file with arrays of .npy files",
            CliCommand::GraphShow => "Print a graph as text, as an SVG picture, or for graphviz",
            CliCommand::GraphCheck => "Show what a graph takes and gives, and which kernels a device has for it",
            CliCommand::PlanSave => "Compile a graph for a device and write its plan to a file",
            CliCommand::PlanShow => "Show what a plan file holds, which proves nothing of it",
            CliCommand::PlanCheck => "Prove the plan of a file for a device",
            CliCommand::PlanRun => "Prove the plan of a file and run it with arrays of .npy files",
            CliCommand::Completions => "Print the completion script for a shell",
            CliCommand::Version => "Show the version, and the backends that were built in",
            CliCommand::Explain => "Explain how a model, a graph or a plan file runs: reasons, kernels, limits, memory",
            CliCommand::ConfigExplain => "Show the value of every option and where it came from",
        }
    }

    /// Options of it that may as well stand without their names, in this order.
    pub(super) fn nameless(self) -> &'static [&'static str] {
        match self {
            CliCommand::Run => &["model", "prompt"],
            CliCommand::Tokenize => &["model", "text"],
            CliCommand::Convert => &["model", "outfile"],
            CliCommand::Imatrix => &["model", "file"],
            CliCommand::Quantize => &["model", "mix"],
            CliCommand::Chat
            | CliCommand::Logits
            | CliCommand::Perplexity
            | CliCommand::Embed
            | CliCommand::Rerank
            | CliCommand::Inspect
            | CliCommand::Explain
            | CliCommand::Scale
            | CliCommand::Bench => &["model"],
            CliCommand::Verify | CliCommand::BackendInfo | CliCommand::BackendOptimize | CliCommand::BackendTest => {
                &["backend"]
            }
            _ => &[],
        }
    }

    /// Its positional argument where that is no option.
    pub(super) fn positional(self) -> Option<Arg> {
        let model = Arg::new(POSITIONAL).value_name("MODEL").help("Catalogue name or hf:org/repo[:quant]");
        let name = Arg::new(POSITIONAL).value_name("NAME");
        let file = Arg::new(POSITIONAL).value_name("FILE").required(true);
        match self {
            CliCommand::BackendBenchmark => {
                Some(name.num_args(0..).help("Backends to time, instead of all that are here"))
            }
            CliCommand::BenchGraph => Some(name.num_args(0..).help("Workloads of --list to time, instead of all")),
            CliCommand::BackendSet => Some(name.required(true).help("Backend of `yirage devices`, or auto")),
            CliCommand::BackendSave => Some(file.help("File to write")),
            CliCommand::BackendLoad => Some(file.help("File to read")),
            CliCommand::GraphRun | CliCommand::GraphShow | CliCommand::GraphCheck => {
                Some(file.help("JSON file of the graph"))
            }
            CliCommand::PlanSave => Some(file.help("File of the graph, NAME.json or NAME.graph")),
            CliCommand::PlanShow | CliCommand::PlanCheck | CliCommand::PlanRun => Some(file.help("Plan file")),
            CliCommand::Serve => {
                let help = "GGUF files, safetensors folders, catalogue names, or hf:org/repo[:quant]";
                Some(Arg::new(POSITIONAL).value_name("MODEL").num_args(0..).help(help))
            }
            CliCommand::Route => {
                let help = "Servers of the same models, as in http://127.0.0.1:8081";
                Some(Arg::new(POSITIONAL).value_name("URL").num_args(1..).required(true).help(help))
            }
            CliCommand::Pull => Some(model),
            CliCommand::Rm => Some(model.required(true)),
            CliCommand::Cache => {
                let actions = ["list", "clear", "verify"];
                Some(Arg::new(POSITIONAL).value_name("ACTION").required(true).value_parser(actions))
            }
            CliCommand::Completions => {
                let shells = ["bash", "elvish", "fish", "powershell", "zsh"];
                Some(Arg::new(POSITIONAL).value_name("SHELL").required(true).value_parser(shells))
            }
            _ => None,
        }
    }
}

/// The command that was chosen, with its own matches.
pub(super) fn chosen(matches: &ArgMatches) -> Result<(CliCommand, &ArgMatches), CliFailure> {
    let (mut words, mut own) = (Vec::new(), matches);
    while let Some((word, matches)) = own.subcommand() {
        words.push(word);
        own = matches;
    }
    let is = |c: &CliCommand| words.split_last().is_some_and(|(last, group)| *last == c.name() && group == c.group());
    let missing = || CliFailure::Usage("no command was given; see `yirage --help`".into());
    Ok((CliCommand::ALL.iter().copied().find(is).ok_or_else(missing)?, own))
}

/// The shell called `name`.
///
/// # Errors
/// [`CliFailure::Usage`]; the command line itself allows known ones only.
pub(crate) fn shell(name: &str) -> Result<Shell, CliFailure> {
    name.parse().map_err(|why| CliFailure::Usage(format!("{name:?} is no shell: {why}")))
}
