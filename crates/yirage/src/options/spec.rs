//! What an option is.

use super::command::CliCommand;

/// One option: the only definition of its flag, variable, key and help.
#[derive(Clone, Copy)]
pub(crate) struct Spec {
    /// The long flag without dashes; variable and key are derived from it.
    pub(crate) name: &'static str,
    /// The long flag where another option has it at another command; it has its name as a flag as well.
    pub(crate) flag: Option<&'static str>,
    /// The short flag.
    pub(crate) short: Option<char>,
    /// What values it takes.
    pub(crate) kind: OptionKind,
    /// What holds when nobody says anything.
    pub(crate) default: Default,
    /// A second environment variable, for the sake of other programs.
    pub(crate) other_variable: Option<&'static str>,
    /// The commands that take it.
    pub(crate) commands: &'static [CliCommand],
    /// One sentence for `--help`.
    pub(crate) help: &'static str,
}

/// What values an option takes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum OptionKind {
    /// On or off; `--no-NAME` is the opposite.
    Switch,
    /// One of these words.
    Choice(&'static [&'static str]),
    /// A number; the word stands for it in help texts.
    Number(&'static str),
    /// Any text, also with a leading dash.
    Text(&'static str),
    /// Several texts: the flag again and again, lines of the variable, an array in the file.
    Texts(&'static str),
    /// Several texts of any lines: the flag again and again, the whole variable, an array in the file.
    Repeated(&'static str),
}

/// What holds when nobody says anything.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Default {
    /// This value.
    Value(&'static str),
    /// What these words describe.
    Described(&'static str),
}

impl Spec {
    /// The environment variable: `YIRAGE_MAX_TOKENS` for `max-tokens`.
    pub(crate) fn variable(&self) -> String {
        format!("YIRAGE_{}", self.key().to_ascii_uppercase())
    }

    /// The key in the configuration file: `max_tokens` for `max-tokens`.
    pub(crate) fn key(&self) -> String {
        self.name.replace('-', "_")
    }
}

/// An option of its name alone.
pub(super) const fn option(
    name: &'static str,
    kind: OptionKind,
    default: Default,
    commands: &'static [CliCommand],
    help: &'static str,
) -> Spec {
    Spec { name, flag: None, short: None, kind, default, other_variable: None, commands, help }
}

/// The option with a letter as well.
pub(super) const fn short(letter: char, spec: Spec) -> Spec {
    Spec { short: Some(letter), ..spec }
}

/// The option, by another name on command lines than in files.
pub(super) const fn flag(long: &'static str, spec: Spec) -> Spec {
    Spec { flag: Some(long), ..spec }
}
