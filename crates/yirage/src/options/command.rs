//! The commands, and what each is for.

use crate::failure::Failure;
use clap::{Arg, ArgMatches};

/// A command.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Command {
    /// One prompt, one answer.
    Run,
    /// Logits of given ids.
    Logits,
    /// How well a model predicts a text.
    Perplexity,
    /// Text to ids and back.
    Tokenize,
}

/// The name of positional arguments.
pub(super) const POSITIONAL: &str = "positional";

impl Command {
    /// All commands, in the order of the help text.
    pub(crate) const ALL: &'static [Command] =
        &[Command::Run, Command::Logits, Command::Perplexity, Command::Tokenize];

    /// The word on the command line.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Command::Run => "run",
            Command::Logits => "logits",
            Command::Perplexity => "perplexity",
            Command::Tokenize => "tokenize",
        }
    }

    /// What it does.
    pub(super) fn about(self) -> &'static str {
        match self {
            Command::Run => "Answer one prompt; the text streams to standard output",
            Command::Logits => "Print what a model computes for the given token ids",
            Command::Perplexity => "Measure how well a model predicts a text",
            Command::Tokenize => "Turn text into token ids, or ids back into text",
        }
    }

    /// Its positional argument.
    pub(super) fn positional(self) -> Option<Arg> {
        None
    }
}

/// The command that was chosen, with its own matches.
pub(super) fn chosen(matches: &ArgMatches) -> Result<(Command, &ArgMatches), Failure> {
    let missing = || Failure::Usage("no command was given; see `yirage --help`".into());
    let (name, own) = matches.subcommand().ok_or_else(missing)?;
    let command = Command::ALL.iter().copied().find(|c| c.name() == name).ok_or_else(missing)?;
    Ok((command, own))
}
