//! What a file calls the keys that are read here under one name, so that an error speaks of the file that its reader has.

use std::collections::BTreeMap;

/// Keys of a current `config.json`, and what the file at hand calls them where it says otherwise.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(super) struct ConfigKeyNames(BTreeMap<String, String>);

/// Those of a file in which every key has its own name.
pub(super) static AS_WRITTEN: ConfigKeyNames = ConfigKeyNames(BTreeMap::new());

impl ConfigKeyNames {
    /// Says that the file calls `key` so.
    pub(super) fn add(&mut self, key: impl Into<String>, called: impl Into<String>) {
        self.0.insert(key.into(), called.into());
    }

    /// What the file calls `key`.
    pub(super) fn of(&self, key: &str) -> String {
        self.0.get(key).map_or(key, String::as_str).to_owned()
    }

    /// `text` with each word that is a key replaced by what the file calls it.
    pub(super) fn in_text(&self, text: &str) -> String {
        text.split(' ').map(|word| self.of(word)).collect::<Vec<_>>().join(" ")
    }
}
