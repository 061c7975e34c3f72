//! The configuration file: TOML with one key an option.

use super::layers::{Layers, OptionOrigin};
use super::spec::{OptionKind, Spec};
use super::table::OPTIONS;
use crate::failure::CliFailure;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use toml::{Table, Value};
use yirage_mmap::{FileError, read_text, read_text_if_there};

/// Longest configuration file, in bytes.
const MAX_BYTES: u64 = 1 << 20;

/// A configuration file.
pub(super) struct ConfigFile {
    pub(super) path: PathBuf,
    /// What it holds; none where it is not there.
    pub(super) text: Option<String>,
}

impl ConfigFile {
    /// The file of `--config` (or its variable), else the user's own. None where the environment names no place for it.
    ///
    /// # Errors
    /// [`CliFailure::File`] for one that is named and not there, or that cannot be read.
    pub(super) fn read(
        environment: &[(OsString, OsString)],
        layers: &Layers,
    ) -> Result<Option<ConfigFile>, CliFailure> {
        if let Some(given) = layers.raw_value("config") {
            let path = PathBuf::from(given.values.concat());
            let text = Some(read_text(&path, MAX_BYTES)?);
            return Ok(Some(ConfigFile { path, text }));
        }
        let Some(path) = usual(environment) else { return Ok(None) };
        let wrong = |e: FileError| {
            CliFailure::Other(format!("{e}; this configuration is read at every start where --config names no other"))
        };
        let text = read_text_if_there(&path, MAX_BYTES).map_err(wrong)?;
        Ok(Some(ConfigFile { path, text }))
    }
}

/// The text of a file of settings that somebody names.
///
/// # Errors
/// [`CliFailure::File`].
pub(super) fn read_settings(path: &Path) -> Result<String, CliFailure> {
    Ok(read_text(path, MAX_BYTES)?)
}

/// Puts the file's values into `layers`: the file of `--config` (or its variable), else the user's own, if it is there.
pub(super) fn collect(environment: &[(OsString, OsString)], layers: &mut Layers) -> Result<(), CliFailure> {
    match ConfigFile::read(environment, layers)? {
        Some(ConfigFile { path, text: Some(text) }) => parse(&text, &path, layers),
        _ => Ok(()),
    }
}

/// The user's own file; none where the environment names no place for it.
fn usual(environment: &[(OsString, OsString)]) -> Option<PathBuf> {
    let variable = |name: &str| environment.iter().find(|(k, v)| k == name && !v.is_empty()).map(|(_, v)| v);
    let folder = match variable("XDG_CONFIG_HOME") {
        Some(folder) => PathBuf::from(folder),
        None => Path::new(variable("HOME")?).join(".config"),
    };
    Some(folder.join("yirage/config.toml"))
}

/// The option that a key stands for, in either spelling.
pub(super) fn option_of(key: &str) -> Option<&'static Spec> {
    OPTIONS.iter().find(|s| s.name != "config" && (s.key() == key || s.name == key))
}

fn parse(text: &str, path: &Path, layers: &mut Layers) -> Result<(), CliFailure> {
    let table: Table = text.parse().map_err(|e| CliFailure::Usage(format!("{}: {e}", path.display())))?;
    add(&table, path, layers)
}

/// Puts the values of a table into `layers`, as those of the file `path`.
///
/// # Errors
/// [`CliFailure::Usage`] for a key that is no option, and for a value that no option takes.
pub(super) fn add(table: &Table, path: &Path, layers: &mut Layers) -> Result<(), CliFailure> {
    let at = path.display();
    for (key, value) in table {
        let spec = option_of(key).ok_or_else(|| {
            CliFailure::Usage(format!("{at}: there is no option {key:?}; `yirage config explain` lists all"))
        })?;
        let values = match (value, spec.kind) {
            (Value::Array(items), OptionKind::Texts(_) | OptionKind::Repeated(_)) => items.iter().map(scalar).collect(),
            // Token ids read well as an array, too.
            (Value::Array(items), OptionKind::Text("IDS")) => {
                items.iter().map(scalar).collect::<Option<Vec<_>>>().map(|ids| vec![ids.join(",")])
            }
            _ => scalar(value).map(|v| vec![v]),
        };
        let values = values.ok_or_else(|| {
            CliFailure::Usage(format!("{at}: {key}: a value of type {} does not fit this option", value.type_str()))
        })?;
        layers.add(spec.name, OptionOrigin::File(path.to_path_buf()), values);
    }
    Ok(())
}

fn scalar(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => Some(text.clone()),
        Value::Integer(n) => Some(n.to_string()),
        Value::Float(x) => Some(x.to_string()),
        Value::Boolean(b) => Some(b.to_string()),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(text: &str) -> Result<Layers, String> {
        let mut layers = Layers::default();
        parse(text, Path::new("c.toml"), &mut layers).map_err(|e| e.to_string())?;
        Ok(layers)
    }

    #[test]
    fn every_scalar_and_both_spellings() {
        let layers =
            parsed("max_tokens = 5\ntop-p = 0.5\nraw = true\nmodel = \"a b\"\nstop = [\"x\", \"y\"]\nids = [1, 2]\n");
        let layers = layers.unwrap();
        let value = |name| layers.raw_value(name).map(|g| g.values.clone()).unwrap();
        assert_eq!(value("max-tokens"), ["5"]);
        assert_eq!(value("top-p"), ["0.5"]);
        assert_eq!(value("raw"), ["true"]);
        assert_eq!(value("model"), ["a b"]);
        assert_eq!(value("stop"), ["x", "y"]);
        assert_eq!(value("ids"), ["1,2"]);
    }

    #[test]
    fn errors_name_file_and_key() {
        for (text, part) in
            [("sede = 1", "\"sede\""), ("seed = [1]", "seed: a value of type array"), ("seed = ", "line 1")]
        {
            let message = parsed(text).unwrap_err();
            assert!(message.starts_with("c.toml: ") && message.contains(part), "{message}");
        }
        assert!(parsed("config = \"other.toml\"").is_err());
    }

    #[test]
    fn the_usual_place_follows_the_environment() {
        let set = |pairs: &[(&str, &str)]| -> Vec<(OsString, OsString)> {
            pairs.iter().map(|(k, v)| (k.into(), v.into())).collect()
        };
        assert_eq!(usual(&set(&[("HOME", "/h")])), Some("/h/.config/yirage/config.toml".into()));
        assert_eq!(usual(&set(&[("HOME", "/h"), ("XDG_CONFIG_HOME", "/x")])), Some("/x/yirage/config.toml".into()));
        assert_eq!(usual(&[]), None);
    }
}
