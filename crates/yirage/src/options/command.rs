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
    /// Completions for a shell.
    Completions,
    /// Show every option with its origin.
    Explain,
}

/// The name of positional arguments.
pub(super) const POSITIONAL: &str = "positional";
/// The command that [`Command::Explain`] is a part of.
pub(super) const CONFIG: &str = "config";

impl Command {
    /// All commands, in the order of the help text.
    pub(crate) const ALL: &'static [Command] = &[
        Command::Run,
        Command::Chat,
        Command::Logits,
        Command::Perplexity,
        Command::Tokenize,
        Command::Inspect,
        Command::Pull,
        Command::List,
        Command::Rm,
        Command::Cache,
        Command::Devices,
        Command::Doctor,
        Command::Bench,
        Command::Completions,
        Command::Explain,
    ];

    /// The word on the command line; for [`Command::Explain`], the one behind `config`.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Command::Run => "run",
            Command::Chat => "chat",
            Command::Logits => "logits",
            Command::Perplexity => "perplexity",
            Command::Tokenize => "tokenize",
            Command::Inspect => "inspect",
            Command::Pull => "pull",
            Command::List => "list",
            Command::Rm => "rm",
            Command::Cache => "cache",
            Command::Devices => "devices",
            Command::Doctor => "doctor",
            Command::Bench => "bench",
            Command::Completions => "completions",
            Command::Explain => "explain",
        }
    }

    /// What it does.
    pub(super) fn about(self) -> &'static str {
        match self {
            Command::Run => "Answer one prompt; the text streams to standard output",
            Command::Chat => "Talk with a model; /help shows what can be done besides",
            Command::Logits => "Print what a model computes for the given token ids",
            Command::Perplexity => "Measure how well a model predicts a text",
            Command::Tokenize => "Turn text into token ids, or ids back into text",
            Command::Inspect => "Show header, tensors, template and flaws of a model",
            Command::Pull => "Fetch a model into the cache",
            Command::List => "Show the models in the cache and the catalogue",
            Command::Rm => "Remove a model from the cache",
            Command::Cache => "List, clear or verify the repacked weights on disk",
            Command::Devices => "Show the devices here, and why others are unavailable",
            Command::Doctor => "Show devices, folders and, with --roofline, what this machine can do at most",
            Command::Bench => "Measure how fast a model runs, and how much of the machine that is",
            Command::Completions => "Print the completion script for a shell",
            Command::Explain => "Show the value of every option and where it came from",
        }
    }

    /// Options of it that may as well stand without their names, in this order.
    pub(super) fn nameless(self) -> &'static [&'static str] {
        match self {
            Command::Run => &["model", "prompt"],
            Command::Tokenize => &["model", "text"],
            Command::Chat | Command::Logits | Command::Perplexity | Command::Inspect | Command::Bench => &["model"],
            _ => &[],
        }
    }

    /// Its positional argument where that is no option.
    pub(super) fn positional(self) -> Option<Arg> {
        let model = Arg::new(POSITIONAL).value_name("MODEL").help("Catalogue name or hf:org/repo[:quant]");
        match self {
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
    let missing = || Failure::Usage("no command was given; see `yirage --help`".into());
    let (name, own) = matches.subcommand().ok_or_else(missing)?;
    let (name, own) = if name == CONFIG { own.subcommand().ok_or_else(missing)? } else { (name, own) };
    let command = Command::ALL.iter().copied().find(|c| c.name() == name).ok_or_else(missing)?;
    Ok((command, own))
}

/// The shell called `name`.
///
/// # Errors
/// [`Failure::Usage`]; the command line itself allows known ones only.
pub(crate) fn shell(name: &str) -> Result<Shell, Failure> {
    name.parse().map_err(|why| Failure::Usage(format!("{name:?} is no shell: {why}")))
}
