//! A mutant's file: what it breaks, the tests that must fail, and a unified diff.

use crate::patch::{self, FilePatch};
use std::fs;
use std::path::Path;

/// Begins the header lines that name tests.
const NOTICED_BY: &str = "noticed by: ";

/// One mistake.
#[derive(Debug)]
pub(crate) struct Mutant {
    /// The file's name without its extension.
    pub(crate) name: String,
    /// The crate in whose folder it lies.
    pub(crate) package: String,
    /// Full names of the crate's unit tests that must fail.
    pub(crate) tests: Vec<String>,
    /// What it does to each file.
    pub(crate) changes: Vec<FilePatch>,
}

impl Mutant {
    fn parse(name: &str, package: &str, text: &str) -> Result<Mutant, String> {
        let (header, diff) = text.split_once("--- ").ok_or("holds no diff")?;
        let mut lines = header.lines().filter(|line| !line.is_empty());
        let breaks = lines.next().ok_or("its first line must say what it breaks")?;
        if breaks.starts_with(NOTICED_BY) {
            return Err(format!("its first line must say what it breaks, not `{breaks}`"));
        }
        let test = |line: &str| line.strip_prefix(NOTICED_BY).map(str::to_owned).ok_or_else(|| line.to_owned());
        let tests: Vec<String> =
            lines.map(test).collect::<Result<_, _>>().map_err(|line| format!("`{line}` is no `{NOTICED_BY}TEST`"))?;
        if tests.is_empty() {
            return Err(format!("no `{NOTICED_BY}TEST` says which tests must fail"));
        }
        let changes = patch::parse(&format!("--- {diff}"))?;
        Ok(Mutant { name: name.to_owned(), package: package.to_owned(), tests, changes })
    }

    /// The changed files below `root`, each with its path and its text as the mistake makes it.
    ///
    /// # Errors
    /// A file that is not there, and a diff that no longer fits one.
    pub(crate) fn sources(&self, root: &Path) -> Result<Vec<(String, String)>, String> {
        let source = |change: &FilePatch| {
            let text = fs::read_to_string(root.join(&change.path));
            let text = text.map_err(|error| format!("{}: {}: {error}", self.name, change.path))?;
            let changed = change.apply(&text).map_err(|why| format!("{}: {}: {why}", self.name, change.path))?;
            Ok((change.path.clone(), changed))
        };
        self.changes.iter().map(source).collect()
    }
}

/// Every mutant of every crate, by crate and name.
///
/// # Errors
/// A folder or file that cannot be read, and what is wrong with a mutant's file.
pub(crate) fn read_all(root: &Path) -> Result<Vec<Mutant>, String> {
    let mut mutants = Vec::new();
    for package in names(&root.join("crates"))? {
        let folder = root.join("crates").join(&package).join("mutants");
        if !folder.is_dir() {
            continue;
        }
        for file in names(&folder)? {
            let path = folder.join(&file);
            let at = |why: String| format!("{}: {why}", path.display());
            let name = file.strip_suffix(".patch").ok_or_else(|| at("is no .patch".to_owned()))?;
            let text = fs::read_to_string(&path).map_err(|error| at(error.to_string()))?;
            mutants.push(Mutant::parse(name, &package, &text).map_err(at)?);
        }
    }
    Ok(mutants)
}

/// Names in a folder, sorted.
fn names(folder: &Path) -> Result<Vec<String>, String> {
    let at = |error: std::io::Error| format!("{}: {error}", folder.display());
    let name = |entry: std::io::Result<fs::DirEntry>| Ok(entry?.file_name().to_string_lossy().into_owned());
    let names: std::io::Result<Vec<String>> = fs::read_dir(folder).map_err(at)?.map(name).collect();
    let mut names = names.map_err(at)?;
    names.sort_unstable();
    Ok(names)
}

#[cfg(test)]
mod tests {
    use super::Mutant;

    const DIFF: &str = "--- a/x.rs\n+++ b/x.rs\n@@ -1 +1 @@\n-one\n+two\n";

    #[test]
    fn a_header_says_what_and_who() {
        let text = format!("One is two.\nnoticed by: a::b\nnoticed by: c\n{DIFF}");
        let mutant = Mutant::parse("m", "p", &text).unwrap();
        assert_eq!(mutant.tests, ["a::b", "c"]);
        assert_eq!(mutant.changes[0].apply("one\n"), Ok("two\n".to_owned()));
    }

    #[test]
    fn a_header_without_either_is_an_error() {
        for (header, why) in [
            ("", "what it breaks"),
            ("noticed by: a\n", "what it breaks"),
            ("One is two.\n", "which tests must fail"),
            ("One is two.\nby a\n", "`by a`"),
        ] {
            let error = Mutant::parse("m", "p", &format!("{header}{DIFF}")).unwrap_err();
            assert!(error.contains(why), "{error}");
        }
        assert!(Mutant::parse("m", "p", "One is two.\n").unwrap_err().contains("no diff"));
    }
}
