//! The command line's part of the table: clap's arguments, and what they matched.

use super::command::{self, CliCommand};
use super::familiar::{self, Unused};
use super::help;
use super::layers::{Layers, OptionOrigin};
use super::spec::{Default, OptionKind, Spec};
use super::table::OPTIONS;
use crate::failure::CliFailure;
use clap::builder::PossibleValuesParser;
use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{Arg, ArgAction, ArgMatches};
use std::ffi::OsString;

/// The whole command line.
pub(crate) fn root() -> clap::Command {
    root_with(&|_| true)
}

/// The command line with the options of those commands alone whose word is among the arguments. No other can be meant, and
/// to describe what all of them take is most of what a start would do.
pub(super) fn root_for(arguments: &[OsString]) -> clap::Command {
    root_with(&|command| {
        let is_named = |word: &str| arguments.iter().any(|argument| argument == word);
        is_named(command.name()) || familiar::commands(command).iter().any(|word| is_named(word))
    })
}

/// The command line, with the options of the commands for which `described` holds.
fn root_with(described: &dyn Fn(CliCommand) -> bool) -> clap::Command {
    let root = clap::Command::new("yirage")
        .version(env!("CARGO_PKG_VERSION"))
        .about("One LLM engine for every accelerator")
        .help_template(help::TEMPLATE)
        .before_help(help::commands(false))
        .before_long_help(help::commands(true))
        .after_help(help::after())
        .after_long_help(help::long_after());
    with_commands(root, &[], described)
}

/// The commands behind these words, and the groups of further ones, in the order of the first of their commands.
fn with_commands(
    mut out: clap::Command,
    words: &[&'static str],
    described: &dyn Fn(CliCommand) -> bool,
) -> clap::Command {
    let mut groups: Vec<&[&'static str]> = Vec::new();
    for &command in CliCommand::ALL {
        let Some(further) = command.group().strip_prefix(words) else { continue };
        let group = &command.group()[..words.len() + further.len().min(1)];
        if further.is_empty() {
            out = out.subcommand(subcommand(command, described(command)));
        } else if !groups.contains(&group) {
            groups.push(group);
            let about = command::GROUPS.iter().find(|(words, _)| *words == group).map(|(_, about)| *about);
            let parent = clap::Command::new(further[0]).about(about.unwrap_or_default());
            out = out.subcommand(with_commands(parent, group, described));
        }
    }
    out.subcommand_required(true).arg_required_else_help(true)
}

fn subcommand(command: CliCommand, described: bool) -> clap::Command {
    let out = clap::Command::new(command.name()).about(command.about()).args_override_self(true);
    let out = out.aliases(familiar::commands(command));
    if described { with_options(out, command) } else { out }
}

fn with_options(mut out: clap::Command, command: CliCommand) -> clap::Command {
    if let Some(positional) = command.positional() {
        out = out.arg(positional);
    }
    for name in command.nameless() {
        let help = format!("The same as --{name}");
        out = out.arg(Arg::new(nameless_id(name)).value_name(name.to_ascii_uppercase()).help(help));
    }
    let takes = |spec: &Spec| command == CliCommand::ConfigExplain || spec.commands.contains(&command);
    let taken = help::with_headings().filter(|(spec, _)| takes(spec));
    let (general, own): (Vec<_>, Vec<_>) = taken.partition(|(_, heading)| *heading == help::GENERAL);
    for (spec, heading) in own.iter().chain(&general) {
        out = out.arg(argument(spec, command).help_heading(*heading));
        if spec.kind == OptionKind::Switch {
            out = out.arg(opposite(spec).help_heading(*heading));
        }
    }
    if own.iter().any(|(spec, _)| spec.name == "model") && command != CliCommand::ConfigExplain {
        out = out.arg(Arg::new(familiar::HUB_REPO).long(familiar::HUB_REPO).alias("hf").hide(true));
        for unused in familiar::UNUSED {
            out = out.arg(Arg::new(unused.name).long(unused.name).aliases(unused.others).hide(true));
        }
    }
    out
}

fn nameless_id(name: &str) -> String {
    format!("nameless-{name}")
}

fn argument(spec: &Spec, command: CliCommand) -> Arg {
    let shown = match spec.default {
        Default::Value(v) => v,
        Default::Described(words) => words,
    };
    let long_help = format!("{} [default: {shown}] [env: {}]", spec.help, spec.variable());
    let arg = match spec.flag {
        // Where all options stand together, each has its own name.
        Some(flag) if command != CliCommand::ConfigExplain => Arg::new(spec.name).long(flag).alias(spec.name),
        _ => Arg::new(spec.name).long(spec.name),
    };
    // Keys of the configuration file are tried as flags as well.
    let arg = if spec.name.contains('-') { arg.alias(spec.key()) } else { arg };
    // Where all options stand together, the names of others are those of several.
    let arg = if command == CliCommand::ConfigExplain { arg } else { arg.aliases(familiar::flags(spec.name)) };
    let arg = arg.help(spec.help).long_help(long_help).hide_short_help(help::is_rare(spec));
    let arg = if let Some(letter) = letter(spec, command) { arg.short(letter) } else { arg };
    match spec.kind {
        OptionKind::Switch => arg.action(ArgAction::SetTrue).overrides_with(opposite_id(spec)),
        OptionKind::Choice(words) => arg.value_parser(PossibleValuesParser::new(words)),
        OptionKind::Number(word) => arg.value_name(word).allow_negative_numbers(true),
        OptionKind::Text(word) => arg.value_name(word).allow_hyphen_values(true),
        OptionKind::Texts(word) | OptionKind::Repeated(word) => {
            arg.value_name(word).allow_hyphen_values(true).action(ArgAction::Append)
        }
    }
}

/// The option's letter. Where all options stand together, a letter is that of the first of them that has it.
fn letter(spec: &Spec, command: CliCommand) -> Option<char> {
    let first = || OPTIONS.iter().find(|s| s.short == spec.short).is_some_and(|s| s.name == spec.name);
    spec.short.filter(|_| command != CliCommand::ConfigExplain || first())
}

/// `--no-NAME`, shown only where it says something: for switches that are on by themselves.
fn opposite(spec: &Spec) -> Arg {
    let id = opposite_id(spec);
    let shown = spec.default != Default::Value("false");
    let help = format!("The opposite of --{}", spec.name);
    let arg = Arg::new(id.clone()).long(id).help(help).hide(!shown).action(ArgAction::SetTrue);
    arg.overrides_with(spec.name).hide_short_help(help::is_rare(spec))
}

fn opposite_id(spec: &Spec) -> String {
    format!("no-{}", spec.name)
}

/// llama.cpp's words of several letters behind one dash as long flags: clap would take `-pg` for `-p g`.
pub(super) fn with_long_names(mut arguments: Vec<OsString>) -> Vec<OsString> {
    for argument in &mut arguments {
        if let Some((_, long)) = familiar::DASHED.iter().find(|(dashed, _)| *dashed == *argument) {
            *argument = long.into();
        }
    }
    arguments
}

/// What the user should know of options that ask for nothing here.
pub(super) fn unused(matches: &ArgMatches) -> Vec<String> {
    let given = |unused: &&Unused| matches.try_get_one::<String>(unused.name).ok().flatten().is_some();
    let note = |unused: &Unused| format!("--{} is not used: {}", unused.name, unused.why);
    familiar::UNUSED.iter().filter(given).map(note).collect()
}

/// A stray argument behind the model is a prompt most of the time, or its second word: says how that is given.
pub(super) fn with_remedy(mut error: clap::Error, command: &str) -> clap::Error {
    let takes = |option: &str| {
        let mut takers = OPTIONS.iter().filter(|s| s.name == option).flat_map(|s| s.commands);
        takers.any(|c| c.group().is_empty() && c.name() == command)
    };
    let stray = |value: &ContextValue| matches!(value, ContextValue::String(text) if !text.starts_with('-'));
    let is_stray = error.kind() == ErrorKind::UnknownArgument && error.get(ContextKind::InvalidArg).is_some_and(stray);
    if is_stray && takes("model") {
        let tip = match takes("prompt") {
            true => "the model stands first, then the prompt, in quotes where it has several words".into(),
            false => "only the model stands without the name of its option".into(),
        };
        error.insert(ContextKind::Suggested, ContextValue::StyledStrs(vec![tip]));
    }
    if error.kind() == ErrorKind::UnknownArgument
        && let Some(ContextValue::String(flag)) = error.get(ContextKind::InvalidArg)
        && let Some(tip) = familiar::option_remedy(flag)
    {
        error.remove(ContextKind::SuggestedArg);
        error.insert(ContextKind::Suggested, ContextValue::StyledStrs(vec![tip.into()]));
    }
    let is_known = error.get(ContextKind::SuggestedSubcommand).is_some();
    if error.kind() == ErrorKind::InvalidSubcommand
        && let Some(ContextValue::String(word)) = error.get(ContextKind::InvalidSubcommand)
        && let Some(tip) =
            familiar::remedy(word).map(str::to_owned).or_else(|| of_swapped_letters(word).filter(|_| !is_known))
    {
        error.insert(ContextKind::Suggested, ContextValue::StyledStrs(vec![tip.into()]));
    }
    error
}

/// The command that a word is with its letters in another order: clap finds other slips, but none in so short a word.
fn of_swapped_letters(word: &str) -> Option<String> {
    let sorted = |word: &str| {
        let mut letters: Vec<char> = word.chars().collect();
        letters.sort_unstable();
        letters
    };
    let mut commands = CliCommand::ALL.iter().filter(|command| command.group().is_empty());
    let meant = commands.find(|command| sorted(command.name()) == sorted(word))?;
    Some(format!("a command of these letters exists: '{}'", meant.name()))
}

/// Puts what was given on the command line into `layers`.
///
/// # Errors
/// [`CliFailure::Usage`] for an option that is given with its name and, differently, without.
pub(super) fn collect(matches: &ArgMatches, layers: &mut Layers) -> Result<(), CliFailure> {
    if let Some(repo) = matches.try_get_one::<String>(familiar::HUB_REPO).ok().flatten() {
        let named = ["model", &nameless_id("model")].map(|id| matches.try_get_one::<String>(id).ok().flatten());
        if let Some(other) = named.into_iter().flatten().next() {
            let what = format!("two models: -hf {repo:?} and {other:?}; give one of them, and a prompt with -p");
            return Err(CliFailure::Usage(what));
        }
        layers.add("model", OptionOrigin::Flag, vec![format!("hf:{repo}")]);
    }
    for spec in OPTIONS {
        let values = match spec.kind {
            OptionKind::Switch => switch(matches, spec),
            _ => matches.try_get_many::<String>(spec.name).ok().flatten().map(|v| v.cloned().collect()),
        };
        let nameless = matches.try_get_one::<String>(&nameless_id(spec.name)).ok().flatten();
        let values = match (values, nameless) {
            (Some(named), Some(other)) if named != [other.clone()] => {
                let (name, named) = (spec.name, named.concat());
                let what =
                    format!("two values for --{name}: {named:?}, and {other:?} without its name; give one of them");
                return Err(CliFailure::Usage(what));
            }
            (named, other) => named.or_else(|| Some(vec![other?.clone()])),
        };
        if let Some(values) = values {
            layers.add(spec.name, OptionOrigin::Flag, values);
        }
    }
    Ok(())
}

fn switch(matches: &ArgMatches, spec: &Spec) -> Option<Vec<String>> {
    let given = |id: &str| matches.try_get_one::<bool>(id).ok().flatten().copied() == Some(true);
    match (given(spec.name), given(&opposite_id(spec))) {
        (true, _) => Some(vec!["true".into()]),
        (_, true) => Some(vec!["false".into()]),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clap_accepts_the_definitions() {
        root().debug_assert();
    }

    /// The command behind these words, as clap has it.
    fn behind<'a>(root: &'a mut clap::Command, words: &[&str]) -> &'a mut clap::Command {
        words.iter().fold(root, |command, word| command.find_subcommand_mut(word).unwrap())
    }

    #[test]
    fn a_command_that_is_named_has_its_options_and_no_other_is_described() {
        let options = |command: &clap::Command| command.get_arguments().count();
        for &command in CliCommand::ALL {
            for word in [&[command.name()], familiar::commands(command)].concat() {
                let words = [command.group(), &[word]].concat();
                let arguments: Vec<OsString> = ["yirage"].iter().chain(&words).map(Into::into).collect();
                let (mut whole, mut part) = (root(), root_for(&arguments));
                let (whole, own) = (behind(&mut whole, &words), behind(&mut part, &words));
                assert_eq!(options(own), options(whole), "{words:?}");
                assert_eq!(own.render_long_help().to_string(), whole.render_long_help().to_string(), "{words:?}");
            }
        }
        let mut version = root_for(&["yirage".into(), "version".into()]);
        assert_eq!(options(behind(&mut version, &["run"])), 0);
        assert_ne!(options(behind(&mut version, &["version"])), 0);
    }
}
