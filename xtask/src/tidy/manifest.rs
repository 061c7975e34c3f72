//! What the rules ask of a `Cargo.toml`: the names in its dependency tables.

use super::{RepoFile, RepoTree, TidyFinding};
use toml::Table;

/// A crate's manifest.
pub(super) struct Manifest<'a> {
    /// Its path in the tree.
    pub(super) path: &'a str,
    /// The crate's folder name.
    pub(super) folder: &'a str,
    table: Table,
}

impl Manifest<'_> {
    /// Names under `[dependencies]` and `[build-dependencies]`, for all targets and for single ones.
    pub(super) fn dependencies(&self) -> Vec<String> {
        let mut names = Vec::new();
        let targets = self.table.get("target").and_then(toml::Value::as_table);
        let parts = targets.into_iter().flat_map(|targets| targets.values().filter_map(toml::Value::as_table));
        for part in std::iter::once(&self.table).chain(parts) {
            for key in ["dependencies", "build-dependencies"] {
                let table = part.get(key).and_then(toml::Value::as_table);
                names.extend(table.into_iter().flat_map(|table| table.keys().cloned()));
            }
        }
        names
    }
}

/// Parses a manifest; one that is not TOML is a finding.
pub(super) fn parse(file: &RepoFile, findings: &mut Vec<TidyFinding>) -> Option<Table> {
    match file.text.parse::<Table>() {
        Ok(table) => Some(table),
        Err(error) => {
            findings.push(TidyFinding::new(&file.path, 0, format!("not TOML: {}", error.message())));
            None
        }
    }
}

/// The manifests of `crates/*` and `xtask`.
pub(super) fn members<'a>(tree: &'a RepoTree, findings: &mut Vec<TidyFinding>) -> Vec<Manifest<'a>> {
    let mut manifests = Vec::new();
    for file in &tree.files {
        let Some(folder) = file.path.strip_suffix("/Cargo.toml") else { continue };
        let name = folder.strip_prefix("crates/").unwrap_or(folder);
        if (folder == "xtask" || folder != name)
            && !name.contains('/')
            && let Some(table) = parse(file, findings)
        {
            manifests.push(Manifest { path: &file.path, folder: name, table });
        }
    }
    manifests
}
