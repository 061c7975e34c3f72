//! Raw values of options with their origins: flag over variable over file over default.

use super::spec::{Default, OptionKind, Spec};
use super::table::OPTIONS;
use crate::failure::CliFailure;
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fmt;
use std::path::PathBuf;

/// Where a value above the default came from; later ones beat earlier ones.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum OptionOrigin {
    /// The configuration file.
    File(PathBuf),
    /// This environment variable.
    Variable(String),
    /// The command line.
    Flag,
}

impl OptionOrigin {
    /// How far up it stands, from 1 for the file to 3 for flags; the default would be 0.
    pub(crate) fn rank(&self) -> u8 {
        match self {
            OptionOrigin::File(_) => 1,
            OptionOrigin::Variable(_) => 2,
            OptionOrigin::Flag => 3,
        }
    }

    /// The name of the layer.
    pub(crate) fn word(&self) -> &'static str {
        match self {
            OptionOrigin::File(_) => "file",
            OptionOrigin::Variable(_) => "env",
            OptionOrigin::Flag => "flag",
        }
    }
}

/// A raw value that won.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct OptionValue {
    /// Where it came from.
    pub(crate) origin: OptionOrigin,
    /// The raw texts; one, except for lists.
    pub(crate) values: Vec<String>,
}

/// The options of one invocation.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(crate) struct Layers {
    raw_values: BTreeMap<&'static str, OptionValue>,
}

impl Layers {
    /// Adds a value; it holds unless one from a higher layer is there.
    pub(super) fn add(&mut self, name: &'static str, origin: OptionOrigin, values: Vec<String>) {
        let beaten = self.raw_values.get(name).is_some_and(|g| g.origin.rank() >= origin.rank());
        if !beaten {
            self.raw_values.insert(name, OptionValue { origin, values });
        }
    }

    /// What was said about an option above its default.
    pub(crate) fn raw_value(&self, name: &str) -> Option<&OptionValue> {
        self.raw_values.get(name)
    }

    /// Whether there is an option of this name.
    pub(crate) fn knows(&self, name: &str) -> bool {
        OPTIONS.iter().any(|s| s.name == name)
    }

    /// How errors call the option `name` as it was given.
    pub(crate) fn label(&self, name: &str) -> impl fmt::Display {
        match self.raw_value(name).map(|g| &g.origin) {
            Some(OptionOrigin::Variable(variable)) => variable.clone(),
            Some(OptionOrigin::File(path)) => format!("{}: {}", path.display(), spec(name).key()),
            _ => format!("--{}", spec(name).flag.unwrap_or(name)),
        }
    }
}

/// The option called `name`.
///
/// # Panics
/// For a name the table lacks: names are written in this program only, and each is read by some test.
pub(crate) fn spec(name: &str) -> &'static Spec {
    OPTIONS.iter().find(|s| s.name == name).unwrap_or_else(|| panic!("the table of options has no {name:?}"))
}

/// The default of `name` where it is a value.
pub(super) fn default_of(name: &str) -> Option<&'static str> {
    match spec(name).default {
        Default::Value(value) => Some(value),
        Default::Described(_) => None,
    }
}

/// Variables that are read elsewhere and are no option: which libraries are loaded is said by whoever starts the program, and not by
/// a file of settings.
const OTHER_VARIABLES: [&str; 2] = ["YIRAGE_PLUGINS", "YIRAGE_KERNEL_CACHE"];

/// Puts environment variables into `layers`; gives notes about variables that look like options but are none.
///
/// # Errors
/// [`CliFailure::Usage`] for an option's variable that is no text.
pub(super) fn environment(variables: &[(OsString, OsString)], layers: &mut Layers) -> Result<Vec<String>, CliFailure> {
    let mut notes = Vec::new();
    for (variable, value) in variables {
        let variable = variable.to_string_lossy();
        // An empty variable is how shells and service files unset one.
        if !variable.starts_with("YIRAGE_") || value.is_empty() {
            continue;
        }
        let found = OPTIONS.iter().find(|s| s.variable() == *variable || s.other_variable == Some(&variable));
        match found {
            Some(spec) => {
                let no_text = || {
                    CliFailure::Usage(format!("{variable} is {value:?}, which is not UTF-8; write it so, or unset it"))
                };
                let value = value.to_str().ok_or_else(no_text)?;
                let values = match spec.kind {
                    OptionKind::Texts(_) => value.lines().map(str::to_owned).collect(),
                    _ => vec![value.to_owned()],
                };
                layers.add(spec.name, OptionOrigin::Variable(variable.into_owned()), values);
            }
            None if OTHER_VARIABLES.contains(&&*variable) => {}
            None => notes.push(format!("{variable} is set, but there is no such option; see `yirage config explain`")),
        }
    }
    Ok(notes)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn variables(pairs: &[(&str, &str)]) -> Vec<(OsString, OsString)> {
        pairs.iter().map(|(k, v)| (k.into(), v.into())).collect()
    }

    #[test]
    fn flags_beat_variables_beat_files() {
        let mut layers = Layers::default();
        layers.add("seed", OptionOrigin::File("c.toml".into()), vec!["1".into()]);
        assert_eq!(layers.label("seed").to_string(), "c.toml: seed");
        layers.add("seed", OptionOrigin::Variable("YIRAGE_SEED".into()), vec!["2".into()]);
        layers.add("seed", OptionOrigin::File("c.toml".into()), vec!["3".into()]);
        assert_eq!(layers.raw_value("seed").unwrap().values, ["2"]);
        layers.add("seed", OptionOrigin::Flag, vec!["4".into()]);
        assert_eq!(layers.raw_value("seed").unwrap().values, ["4"]);
        assert_eq!(layers.label("seed").to_string(), "--seed");
    }

    #[test]
    fn variables_are_named_after_options() {
        let mut layers = Layers::default();
        let set = [("YIRAGE_MAX_TOKENS", "5"), ("YIRAGE_TOP_K", ""), ("YIRAGE_STOP", "a\nb"), ("YIRAGE_SEDE", "1")];
        let notes = environment(&variables(&set), &mut layers).unwrap();
        assert_eq!(layers.raw_value("max-tokens").unwrap().values, ["5"]);
        assert_eq!(layers.raw_value("top-k"), None);
        assert_eq!(layers.raw_value("stop").unwrap().values, ["a", "b"]);
        assert!(notes.len() == 1 && notes[0].contains("YIRAGE_SEDE"), "{notes:?}");
    }

    #[test]
    fn the_second_variable_counts_too() {
        let mut layers = Layers::default();
        environment(&variables(&[("YIRAGE_CPU_ISA", "scalar")]), &mut layers).unwrap();
        assert_eq!(layers.label("isa").to_string(), "YIRAGE_CPU_ISA");
    }
}
