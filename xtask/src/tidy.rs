//! The tidy rules: each is a function from the repository's text to findings, one file a rule, tested on small trees.

mod arrows;
mod checklist;
mod circles;
mod contributing;
pub(crate) mod count;
mod dependencies;
mod hosts;
mod links;
mod manifest;
pub(crate) mod map;
mod messages;
mod paths;
pub(crate) mod proofs;
mod pure;
mod safety;
mod size;
pub(crate) mod stubs;
pub(crate) mod support;
mod tree;
mod type_names;
mod unfinished;
mod unsafe_code;
mod vendors;

use std::fmt;
use std::io;
use std::path::Path;
pub(crate) use tree::{RepoFile, RepoTree};

/// One broken rule at one place.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct TidyFinding {
    /// Path from the repository's root, with `/`.
    pub(crate) path: String,
    /// Line, counted from 1; 0 for the file as a whole.
    pub(crate) line: usize,
    /// What is wrong and what to do.
    pub(crate) message: String,
}

impl TidyFinding {
    fn new(path: &str, line: usize, message: impl Into<String>) -> Self {
        Self { path: path.to_owned(), line, message: message.into() }
    }
}

impl fmt::Display for TidyFinding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}: {}", self.path, self.line, self.message)
    }
}

/// A rule: looks at the whole tree and adds what it finds.
type TidyRule = fn(&RepoTree, &mut Vec<TidyFinding>);

/// Every rule, by name.
pub(crate) const RULES: &[(&str, TidyRule)] = &[
    ("files are small", size::check),
    ("no vendor word in device-free crates", vendors::check),
    ("dependencies follow the arrows", arrows::check),
    ("modules import one way", circles::check),
    ("unsafe is forbidden where it is not needed", unsafe_code::check),
    ("a SAFETY comment names its promise", safety::check),
    ("pure crates do no I/O", pure::check),
    ("nothing unfinished", unfinished::check),
    ("no machine's own paths", paths::check),
    ("the hub's address stands in one file", hosts::check),
    ("a verified plan lists what its checks prove", proofs::check),
    ("links resolve", links::check),
    ("the checklist names tests that run", checklist::check),
    ("what CONTRIBUTING.md shows can be done", contributing::check),
    ("errors speak in one style", messages::check),
    ("every dependency is explained", dependencies::check),
    ("a type name stands for one type", type_names::check),
    ("the map is what the modules say", map::check),
    ("stubs of layers are what their rows say", stubs::check),
    ("the page of support is what its records say", support::check),
];

/// Runs every rule over the repository at `root`; findings come sorted by place.
///
/// # Errors
/// The repository could not be read.
pub(crate) fn check(root: &Path) -> io::Result<Vec<TidyFinding>> {
    let tree = RepoTree::read(root)?;
    let mut findings = Vec::new();
    for (_, rule) in RULES {
        rule(&tree, &mut findings);
    }
    findings.sort();
    Ok(findings)
}

#[cfg(test)]
fn run(rule: TidyRule, files: &[(&str, &str)]) -> Vec<String> {
    let mut findings = Vec::new();
    rule(&RepoTree::of(files), &mut findings);
    findings.iter().map(TidyFinding::to_string).collect()
}
