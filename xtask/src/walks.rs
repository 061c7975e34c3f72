//! The walks of `CONTRIBUTING.md`, done as the page says: their diffs are applied one after the other to a copy of the
//! workspace, and their commands run there. It knows the page's form, and nothing of what a walk adds.

use crate::patch;
use crate::workspace_copy::WorkspaceCopy;
use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::Instant;

/// How the command is called.
pub(crate) const USAGE: &str =
    "       cargo xtask walks    add to a copy of the sources what CONTRIBUTING.md walks through, and run its commands
";

const PAGE: &str = "CONTRIBUTING.md";
/// What the heading of a walk begins with.
const HEADING: &str = "## Walk: ";

/// A walk of the page.
#[derive(Debug, PartialEq, Eq)]
struct PageWalk<'a> {
    name: &'a str,
    steps: Vec<Step<'a>>,
}

/// What is done next.
#[derive(Debug, PartialEq, Eq)]
enum Step<'a> {
    /// A diff is applied.
    Diff(String),
    /// A command is run, without what a comment says of it.
    Run(&'a str),
}

/// Runs the command.
///
/// # Errors
/// A diff that does not fit, a command that fails, a page without walks, and whatever reading, writing or building says.
pub(crate) fn run(root: &Path) -> Result<(), String> {
    let page = fs::read_to_string(root.join(PAGE)).map_err(|error| format!("{PAGE}: {error}"))?;
    let walks = walks(&page);
    if walks.is_empty() {
        return Err(format!("{PAGE}: expected headings that begin with `{HEADING}`, got none"));
    }
    // Walks build on those before them, so what they change stays to the end.
    let copy = WorkspaceCopy::of(root, "walks")?;
    for walk in &walks {
        let begun = Instant::now();
        println!("walk: {}", walk.name);
        for step in &walk.steps {
            step.done(&copy).map_err(|why| format!("{PAGE}, `{HEADING}{}`: {why}", walk.name))?;
        }
        println!("walk: {}, {} s with its builds", walk.name, begun.elapsed().as_secs());
    }
    Ok(())
}

/// The walks of a page.
fn walks(page: &str) -> Vec<PageWalk<'_>> {
    let mut walks: Vec<PageWalk<'_>> = Vec::new();
    let (mut is_walk, mut language) = (false, None);
    for line in page.lines() {
        if let Some(name) = line.strip_prefix("```") {
            language = language.is_none().then_some(name);
            if let (Some("diff"), true, Some(walk)) = (language, is_walk, walks.last_mut()) {
                walk.steps.push(Step::Diff(String::new()));
            }
        } else if language.is_none() && line.starts_with("## ") {
            let name = line.strip_prefix(HEADING);
            walks.extend(name.map(|name| PageWalk { name, steps: Vec::new() }));
            is_walk = name.is_some();
        } else if let (true, Some(walk)) = (is_walk, walks.last_mut()) {
            walk.take(language, line);
        }
    }
    walks
}

impl<'a> PageWalk<'a> {
    /// A line of the walk, in a block of this language.
    fn take(&mut self, language: Option<&str>, line: &'a str) {
        match (language, self.steps.last_mut()) {
            (Some("diff"), Some(Step::Diff(diff))) => diff.extend([line, "\n"]),
            (Some("sh"), _) => {
                let command = line.split('#').next().unwrap_or(line).trim();
                self.steps.extend((!command.is_empty()).then_some(Step::Run(command)));
            }
            _ => {}
        }
    }
}

impl Step<'_> {
    fn done(&self, copy: &WorkspaceCopy) -> Result<(), String> {
        match self {
            Step::Diff(diff) => apply(copy, diff),
            Step::Run(command) => run_command(copy, command),
        }
    }
}

/// Applies a diff to the copy. Files that it makes were empty before.
fn apply(copy: &WorkspaceCopy, diff: &str) -> Result<(), String> {
    for change in patch::parse(diff)? {
        let path = copy.root.join(&change.path);
        let before =
            if path.exists() { fs::read_to_string(&path).map_err(|error| error.to_string())? } else { String::new() };
        let after = change.apply(&before).map_err(|why| format!("{}: {why}", change.path))?;
        copy.write(&[(change.path, after)])?;
    }
    Ok(())
}

fn run_command(copy: &WorkspaceCopy, command: &str) -> Result<(), String> {
    let mut words = command.split_whitespace();
    let program = words.next().filter(|&program| program == "cargo").map(|_| env!("CARGO"));
    let program = program.ok_or_else(|| format!("expected a command of cargo, got `{command}`"))?;
    println!("$ {command}");
    let mut call = Command::new(program);
    call.args(words).current_dir(&copy.root).env("CARGO_TARGET_DIR", &copy.target);
    let status = call.status().map_err(|error| format!("{command}: {error}"))?;
    if status.success() { Ok(()) } else { Err(format!("`{command}` ended with {status}")) }
}

#[cfg(test)]
mod tests {
    use super::{HEADING, PAGE, PageWalk, Step, walks};

    #[test]
    fn a_walk_is_its_diffs_and_commands_in_their_order() {
        let page = "# Page\n```sh\ncargo test\n```\n## Walk: a thing\ntext\n```diff\n--- /dev/null\n+++ b/x\n@@ -0,0 +1 @@\n\
                    +## Walk: none\n```\n```text\nnothing\n```\n```sh\ncargo test -p x   # and why\n\n# nothing\n```\n\
                    ## Style\n```sh\ncargo xtask tidy\n```\n";
        let diff = Step::Diff("--- /dev/null\n+++ b/x\n@@ -0,0 +1 @@\n+## Walk: none\n".to_owned());
        assert_eq!(walks(page), [PageWalk { name: "a thing", steps: vec![diff, Step::Run("cargo test -p x")] }]);
    }

    #[test]
    fn the_page_has_three() {
        let page = std::fs::read_to_string(crate::root().join(PAGE)).unwrap();
        let walks = walks(&page);
        assert_eq!(walks.len(), 3, "{HEADING}");
        for walk in walks {
            let diffs = walk.steps.iter().filter(|step| matches!(step, Step::Diff(_))).count();
            assert!(diffs > 0 && diffs < walk.steps.len(), "{walk:?}");
        }
    }
}
