//! The repository's text, read once.

use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::path::Path;

/// Folders that hold no source: build outputs, version control, fuzzing's own data.
const SKIPPED_FOLDERS: &[&str] = &["target", ".git", "corpus", "artifacts", "coverage", "node_modules"];
/// What is read as text, by extension; files without an extension under `.ci/` and the licences are text as well.
const TEXT_EXTENSIONS: &[&str] = &["rs", "toml", "md", "sh", "py", "pyi", "txt", "yml"];

/// Where records of verified devices lie, which alone of all JSON are text.
pub(super) const VERIFIED: &str = "docs/hardware/verified/";

/// One text file.
#[derive(Debug)]
pub(crate) struct RepoFile {
    /// Path from the root, with `/`.
    pub(crate) path: String,
    /// Its whole text.
    pub(crate) text: String,
}

impl RepoFile {
    /// Whether this is Rust source.
    pub(crate) fn is_rust(&self) -> bool {
        self.path.ends_with(".rs")
    }

    /// The crate folder this file lies in (`yirage-ir` for `crates/yirage-ir/src/lib.rs`).
    pub(crate) fn crate_name(&self) -> Option<&str> {
        self.path.strip_prefix("crates/")?.split('/').next()
    }

    /// The lines with their numbers from 1.
    pub(crate) fn lines(&self) -> impl Iterator<Item = (usize, &str)> {
        self.text.lines().enumerate().map(|(index, line)| (index + 1, line))
    }
}

/// All text files and all paths of a repository.
#[derive(Debug, Default)]
pub(crate) struct RepoTree {
    /// Text files, by path.
    pub(crate) files: Vec<RepoFile>,
    /// Every file and folder, text or not.
    pub(crate) paths: BTreeSet<String>,
}

impl RepoTree {
    /// Reads the repository at `root`.
    ///
    /// # Errors
    /// A folder or file could not be read.
    pub(crate) fn read(root: &Path) -> io::Result<Self> {
        let mut tree = Self::default();
        tree.walk(root, "")?;
        tree.files.sort_by(|a, b| a.path.cmp(&b.path));
        Ok(tree)
    }

    fn walk(&mut self, root: &Path, folder: &str) -> io::Result<()> {
        for entry in fs::read_dir(root.join(folder))? {
            let entry = entry?;
            let name = entry.file_name().to_string_lossy().into_owned();
            let path = if folder.is_empty() { name.clone() } else { format!("{folder}/{name}") };
            let kind = entry.file_type()?;
            if kind.is_dir() {
                if !SKIPPED_FOLDERS.contains(&name.as_str()) {
                    self.paths.insert(path.clone());
                    self.walk(root, &path)?;
                }
            } else if kind.is_file() {
                if is_text(&path) {
                    let text = String::from_utf8_lossy(&fs::read(entry.path())?).into_owned();
                    self.files.push(RepoFile { path: path.clone(), text });
                }
                self.paths.insert(path);
            }
        }
        Ok(())
    }

    /// The file at `path`.
    pub(crate) fn file(&self, path: &str) -> Option<&RepoFile> {
        self.files.iter().find(|file| file.path == path)
    }

    /// A tree from texts, for tests of rules.
    #[cfg(test)]
    pub(crate) fn of(files: &[(&str, &str)]) -> Self {
        let mut tree = Self::default();
        for (path, text) in files {
            tree.files.push(RepoFile { path: (*path).to_owned(), text: (*text).to_owned() });
            for (index, _) in path.match_indices('/') {
                tree.paths.insert(path[..index].to_owned());
            }
            tree.paths.insert((*path).to_owned());
        }
        tree
    }
}

fn is_text(path: &str) -> bool {
    let name = path.rsplit('/').next().unwrap_or(path);
    match name.rsplit_once('.') {
        Some((_, "json")) => path.starts_with(VERIFIED),
        Some((_, extension)) => TEXT_EXTENSIONS.contains(&extension),
        None => path.starts_with(".ci/") || name.starts_with("LICENSE"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_is_told_by_name() {
        assert!(is_text("a/b.rs") && is_text(".ci/run") && is_text("LICENSE-MIT"));
        assert!(!is_text("a/model.gguf") && !is_text("bin/tool") && !is_text("a/b.json"));
        assert!(is_text("docs/hardware/verified/cpu.json"));
    }

    #[test]
    fn the_repository_itself_is_read() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
        let tree = RepoTree::read(root).unwrap();
        assert!(tree.file("xtask/src/tidy/tree.rs").is_some());
        assert!(tree.paths.contains("xtask/src"));
        assert!(tree.files.iter().all(|file| !file.path.starts_with("target/")));
    }
}
