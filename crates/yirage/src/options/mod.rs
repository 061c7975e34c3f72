//! Options: one table, from which flags, environment variables, keys of the configuration file, help texts and
//! `yirage config explain` come.
//!
//! Parsing gives [`Layers`] of raw strings with their origins. What they mean is for `settings` to say: nothing raw
//! gets past it.

mod choosing;
mod command;
mod config_editor;
mod familiar;
mod file;
mod flags;
mod help;
mod layers;
mod read;
mod spec;
mod table;
mod takers;
mod writing;

pub(crate) use command::{CliCommand, shell};
pub(crate) use config_editor::{ConfigEditor, SavedSettings, save};
pub(crate) use flags::root;
pub(crate) use layers::{Layers, OptionOrigin, spec};
pub(crate) use spec::{Default, OptionKind, Spec};
pub(crate) use table::OPTIONS;

use crate::failure::CliFailure;
use std::ffi::OsString;

/// What was asked for.
pub(crate) struct Invocation {
    /// The command.
    pub(crate) command: CliCommand,
    /// Its positional arguments.
    pub(crate) positional: Vec<String>,
    /// All options with their origins.
    pub(crate) layers: Layers,
    /// What the user should know about how options were given.
    pub(crate) notes: Vec<String>,
}

/// Parses a command line, the process's environment and the configuration file.
///
/// # Errors
/// [`CliFailure::Clap`] and [`CliFailure::Usage`] for what makes no sense, [`CliFailure::Io`] for an unreadable file.
pub(crate) fn parse(arguments: Vec<OsString>) -> Result<Invocation, CliFailure> {
    let arguments = flags::with_long_names(arguments);
    let word = arguments.get(1).and_then(|a| a.to_str()).unwrap_or_default().to_owned();
    let matches =
        flags::root_for(&arguments).try_get_matches_from(arguments).map_err(|e| flags::with_remedy(e, &word))?;
    let (command, matches) = command::chosen(&matches)?;
    let environment: Vec<(OsString, OsString)> = std::env::vars_os().collect();
    let mut layers = Layers::default();
    flags::collect(matches, &mut layers)?;
    let mut notes = flags::unused(matches);
    notes.extend(layers::environment(&environment, &mut layers)?);
    // Before the file: its own name is one of them.
    layers.refuse_empty_names()?;
    file::collect(&environment, &mut layers)?;
    layers.refuse_empty_names()?;
    let positional = matches.try_get_many::<String>(command::POSITIONAL).ok().flatten();
    let positional = positional.map(|values| values.cloned().collect()).unwrap_or_default();
    Ok(Invocation { command, positional, layers, notes })
}

/// Whether a command line that could not be parsed asked for JSON.
pub(crate) fn wants_json(mut arguments: impl Iterator<Item = OsString>) -> bool {
    arguments.any(|a| a == "--json")
}
