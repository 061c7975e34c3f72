//! Changing the configuration file: its lines, comments and order stay, and it is whole at any time.

use super::file::{ConfigFile, add, option_of, read_settings};
use super::layers::Layers;
use super::spec::OptionKind;
use super::table::OPTIONS;
use crate::failure::CliFailure;
use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use tempfile::NamedTempFile;
use toml::{Table, Value};
use toml_edit::DocumentMut;

/// The settings that are kept between starts.
pub(crate) struct ConfigEditor {
    path: PathBuf,
    document: DocumentMut,
}

/// Settings of a file that somebody saved.
pub(crate) struct SavedSettings {
    /// Those that are options.
    pub(crate) settings: Table,
    /// Keys that are none.
    pub(crate) unknown: Vec<String>,
    /// The same as options.
    pub(crate) layers: Layers,
}

impl ConfigEditor {
    /// The configuration file of these options; an empty one where it is not there yet.
    ///
    /// # Errors
    /// [`CliFailure`] where it cannot be read, or the environment names no place for it.
    pub(crate) fn open(layers: &Layers) -> Result<ConfigEditor, CliFailure> {
        let environment: Vec<_> = std::env::vars_os().collect();
        let nowhere = "there is no place for a configuration file: neither HOME nor XDG_CONFIG_HOME is set; name one \
                       with --config";
        let file = ConfigFile::read(&environment, layers)?.ok_or_else(|| CliFailure::Other(nowhere.into()))?;
        let document = file.text.unwrap_or_default().parse::<DocumentMut>();
        let document = document.map_err(|e| CliFailure::Usage(format!("{}: {e}", file.path.display())))?;
        Ok(ConfigEditor { path: file.path, document })
    }

    /// Where they are kept.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// All of them.
    ///
    /// # Errors
    /// [`CliFailure::Usage`] for a file that is no TOML.
    pub(crate) fn settings(&self) -> Result<Table, CliFailure> {
        let table = self.document.to_string().parse::<Table>();
        table.map_err(|e| CliFailure::Usage(format!("{}: {e}", self.path.display())))
    }

    /// Sets the value of an option, which has another spelling in the file where somebody wrote it so.
    ///
    /// # Errors
    /// [`CliFailure::Other`] for a value that TOML cannot write.
    pub(crate) fn set(&mut self, option: &str, value: &Value) -> Result<(), CliFailure> {
        let written = value.to_string().parse::<toml_edit::Value>();
        let written = written.map_err(|e| CliFailure::Other(format!("{option}: {value} cannot be kept: {e}")))?;
        let key = self.spelling(option).unwrap_or_else(|| option.replace('-', "_"));
        match self.document.get_mut(&key).and_then(|item| item.as_value_mut()) {
            Some(old) => {
                let around = old.decor().clone();
                *old = written;
                *old.decor_mut() = around;
            }
            None => drop(self.document.insert(&key, toml_edit::Item::Value(written))),
        }
        Ok(())
    }

    /// Removes the value of an option; gives whether there was one.
    pub(crate) fn remove(&mut self, option: &str) -> bool {
        self.spelling(option).is_some_and(|key| self.document.remove(&key).is_some())
    }

    /// Writes the file: a new one takes the place of the old in one step.
    ///
    /// # Errors
    /// [`CliFailure::Io`].
    pub(crate) fn write(&self) -> Result<(), CliFailure> {
        replace(&self.path, &self.document.to_string()).map_err(|e| CliFailure::io(&self.path, e))
    }

    /// How the file spells an option that it has.
    fn spelling(&self, option: &str) -> Option<String> {
        let is = |key: &&str| option_of(key).is_some_and(|spec| spec.name == option || spec.key() == option);
        self.document.iter().map(|(key, _)| key).find(is).map(str::to_owned)
    }
}

impl SavedSettings {
    /// Reads a file: JSON by its name, else TOML.
    ///
    /// # Errors
    /// [`CliFailure`] for a file that cannot be read, and for values that no option takes.
    pub(crate) fn read(path: &Path) -> Result<SavedSettings, CliFailure> {
        let text = read_settings(path)?;
        let wrong = |why: String| CliFailure::Usage(format!("{}: {why}", path.display()));
        let all: Table = match is_json(path) {
            true => of_json(serde_json::from_str(&text).map_err(|e| wrong(e.to_string()))?).map_err(wrong)?,
            false => text.parse().map_err(|e: toml::de::Error| wrong(e.to_string()))?,
        };
        let (settings, unknown): (Vec<_>, Vec<_>) = all.into_iter().partition(|(key, _)| option_of(key).is_some());
        let settings: Table = settings.into_iter().collect();
        let mut layers = Layers::default();
        add(&settings, path, &mut layers)?;
        check_words(&layers)?;
        Ok(SavedSettings { settings, unknown: unknown.into_iter().map(|(key, _)| key).collect(), layers })
    }
}

/// A table of JSON as one of TOML, which has no null and no numbers beyond 64 bits.
fn of_json(map: serde_json::Map<String, serde_json::Value>) -> Result<Table, String> {
    map.into_iter().map(|(key, value)| Ok((key.clone(), value_of_json(&key, value)?))).collect()
}

fn value_of_json(key: &str, value: serde_json::Value) -> Result<toml::Value, String> {
    Ok(match value {
        serde_json::Value::Null => return Err(format!("{key}: expected a value, got null; leave the key out")),
        serde_json::Value::Bool(switch) => switch.into(),
        serde_json::Value::Number(number) => match (number.as_i64(), number.as_f64()) {
            (Some(whole), _) => whole.into(),
            (None, Some(number)) => number.into(),
            (None, None) => return Err(format!("{key}: expected a number of 64 bits, got {number}")),
        },
        serde_json::Value::String(text) => text.into(),
        serde_json::Value::Array(list) => {
            toml::Value::Array(list.into_iter().map(|one| value_of_json(key, one)).collect::<Result<_, String>>()?)
        }
        serde_json::Value::Object(map) => toml::Value::Table(of_json(map)?),
    })
}

/// Writes settings to a file: JSON by its name, else TOML.
///
/// # Errors
/// [`CliFailure::Io`].
pub(crate) fn save(settings: &Table, path: &Path) -> Result<(), CliFailure> {
    let text = match is_json(path) {
        true => serde_json::to_string_pretty(settings).map(|text| text + "\n").map_err(|e| e.to_string()),
        false => toml::to_string(settings).map_err(|e| e.to_string()),
    };
    let text = text.map_err(|why| CliFailure::Other(format!("{}: {why}", path.display())))?;
    replace(path, &text).map_err(|e| CliFailure::io(path, e))
}

fn is_json(path: &Path) -> bool {
    path.extension().is_some_and(|extension| extension.eq_ignore_ascii_case("json"))
}

/// Refuses words that no option takes. Numbers are for the commands to judge, each of which has limits of its own.
fn check_words(layers: &Layers) -> Result<(), CliFailure> {
    for spec in OPTIONS {
        match spec.kind {
            OptionKind::Choice(_) => {
                layers.maybe_choice(spec.name)?;
            }
            OptionKind::Switch => {
                layers.maybe_switch(spec.name)?;
            }
            OptionKind::Number(_) | OptionKind::Text(_) | OptionKind::Texts(_) | OptionKind::Repeated(_) => {}
        }
    }
    layers.refuse_empty_names()
}

/// Puts a text in the place of a file. Whoever reads finds the old text or the new one, also after a crash.
fn replace(path: &Path, text: &str) -> io::Result<()> {
    // A link stays one.
    let path = match fs::canonicalize(path) {
        Err(e) if e.kind() == io::ErrorKind::NotFound => path.to_path_buf(),
        path => path?,
    };
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    fs::create_dir_all(folder)?;
    let mut fresh = NamedTempFile::new_in(folder)?;
    fresh.write_all(text.as_bytes())?;
    match fs::metadata(&path) {
        Ok(old) => fresh.as_file().set_permissions(old.permissions())?,
        Err(e) if e.kind() == io::ErrorKind::NotFound => {}
        Err(e) => return Err(e),
    }
    fresh.as_file().sync_all()?;
    fresh.persist(&path)?;
    sync_folder(folder)
}

/// The new name is on disk, too.
#[cfg(unix)]
fn sync_folder(folder: &Path) -> io::Result<()> {
    fs::File::open(folder)?.sync_all()
}

/// The system writes names by itself.
#[cfg(not(unix))]
fn sync_folder(_: &Path) -> io::Result<()> {
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn editor_of(text: &str) -> ConfigEditor {
        ConfigEditor { path: "c.toml".into(), document: text.parse().unwrap() }
    }

    #[test]
    fn the_rest_of_the_file_stays_as_it_is() {
        let mut file = editor_of("# mine\ntop-p = 0.5 # close\nbackend = \"cpu\" # once\nseed = 1\n");
        file.set("backend", &"auto".into()).unwrap();
        file.set("top-p", &0.25.into()).unwrap();
        file.set("max-tokens", &3.into()).unwrap();
        let wanted = "# mine\ntop-p = 0.25 # close\nbackend = \"auto\" # once\nseed = 1\nmax_tokens = 3\n";
        assert_eq!(file.document.to_string(), wanted);
        assert!(file.remove("backend") && !file.remove("backend") && !file.remove("raw"));
        assert_eq!(file.document.to_string(), "# mine\ntop-p = 0.25 # close\nseed = 1\nmax_tokens = 3\n");
    }

    #[test]
    fn what_was_saved_is_read_again_in_both_forms() {
        let folder = tempfile::tempdir().unwrap();
        let settings = editor_of("seed = 3\nstop = [\"x\", \"y\"]\nraw = true\ntop_p = 0.5\n").settings().unwrap();
        for name in ["s.toml", "s.json"] {
            let path = folder.path().join(name);
            save(&settings, &path).unwrap();
            let saved = SavedSettings::read(&path).unwrap();
            assert_eq!((&saved.settings, saved.unknown.len()), (&settings, 0), "{name}");
            assert_eq!(saved.layers.raw_value("stop").unwrap().values, ["x", "y"]);
        }
    }

    #[test]
    fn unknown_keys_are_told_and_wrong_values_refused() {
        let folder = tempfile::tempdir().unwrap();
        let read = |name: &str, text: &str| {
            let path = folder.path().join(name);
            fs::write(&path, text).unwrap();
            SavedSettings::read(&path).map(|saved| (saved.settings.len(), saved.unknown)).map_err(|e| e.to_string())
        };
        assert_eq!(read("a.toml", "workers = 3\nseed = 1\n").unwrap(), (1, vec!["workers".to_owned()]));
        assert_eq!(read("a.json", "{\"workers\": [3], \"seed\": 1}").unwrap(), (1, vec!["workers".to_owned()]));
        for (name, text, part) in [
            ("b.toml", "precision = \"blurry\"", "precision: expected fast, exact"),
            ("b.toml", "raw = \"maybe\"", "true or false"),
            ("b.toml", "seed = {}", "type table"),
            ("b.toml", "seed = ", "line 1"),
            ("b.json", "[1]", "b.json"),
        ] {
            let message = read(name, text).unwrap_err();
            assert!(message.contains(part), "{text}: {message}");
        }
    }

    #[test]
    fn a_file_is_replaced_and_nothing_else_is_left() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("deep/c.toml");
        replace(&path, "a").unwrap();
        replace(&path, "b").unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), "b");
        assert_eq!(fs::read_dir(folder.path().join("deep")).unwrap().count(), 1);
    }

    #[cfg(unix)]
    #[test]
    fn a_link_and_permissions_stay() {
        use std::os::unix::fs::PermissionsExt;
        let folder = tempfile::tempdir().unwrap();
        let (link, target) = (folder.path().join("link"), folder.path().join("target"));
        fs::write(&target, "a").unwrap();
        fs::set_permissions(&target, fs::Permissions::from_mode(0o640)).unwrap();
        std::os::unix::fs::symlink(&target, &link).unwrap();
        replace(&link, "b").unwrap();
        assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
        assert_eq!(fs::metadata(&target).unwrap().permissions().mode() & 0o777, 0o640);
        assert_eq!(fs::read_to_string(&target).unwrap(), "b");
    }
}
