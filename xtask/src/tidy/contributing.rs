//! What `CONTRIBUTING.md` shows can be done: its diffs fit the files as they are, and its commands name what there is.
//!
//! A diff's context and the lines that it takes out stand in the file once, one after the other; a file that it makes does not
//! exist. In blocks for a shell, `-p` is followed by a crate, `--test` by one of that crate's tests, `cargo xtask` by a command.

use super::{RepoTree, TidyFinding};

const PAGE: &str = "CONTRIBUTING.md";
const COMMANDS: &str = "xtask/src/main.rs";

pub(super) fn check(tree: &RepoTree, findings: &mut Vec<TidyFinding>) {
    let Some(page) = tree.file(PAGE) else { return };
    let mut language = None;
    let mut diff = Diff::default();
    for (line, text) in page.lines() {
        if let Some(name) = text.strip_prefix("```") {
            findings.extend(diff.hunk_that_does_not_fit(tree));
            language = (language.is_none()).then_some(name);
            diff = Diff::default();
        } else if language == Some("diff") {
            findings.extend(diff.take(tree, line, text));
        } else if language == Some("sh") {
            findings.extend(unknown(tree, text).map(|message| TidyFinding::new(PAGE, line, message)));
        }
    }
}

/// The part of a diff that is being read.
#[derive(Default)]
struct Diff<'a> {
    from: &'a str,
    path: &'a str,
    /// Where the hunk begins, and what it wants to find.
    hunk: usize,
    wanted: Vec<&'a str>,
}

impl<'a> Diff<'a> {
    /// The next line; what is over by it is a finding where it does not fit.
    fn take(&mut self, tree: &RepoTree, line: usize, text: &'a str) -> Option<TidyFinding> {
        if let Some(from) = text.strip_prefix("--- ") {
            let finding = self.hunk_that_does_not_fit(tree);
            *self = Diff { from, ..Diff::default() };
            return finding;
        }
        if let Some(path) = text.strip_prefix("+++ b/") {
            self.path = path;
        } else if text.starts_with("@@ ") {
            let finding = self.hunk_that_does_not_fit(tree);
            (self.hunk, self.wanted) = (line, Vec::new());
            return finding;
        } else if let Some(wanted) = text.strip_prefix([' ', '-']) {
            self.wanted.push(wanted);
        } else if text.is_empty() {
            self.wanted.push("");
        }
        None
    }

    fn hunk_that_does_not_fit(&self, tree: &RepoTree) -> Option<TidyFinding> {
        if self.hunk == 0 {
            return None;
        }
        let message = match (self.from == "/dev/null", tree.file(self.path)) {
            (true, Some(_)) => format!("makes {}, which is there", self.path),
            (false, None) => format!("changes {}, which is not there", self.path),
            (false, Some(file)) if !self.fits(&file.text) => {
                format!("does not fit {} as it is: make the diff anew", self.path)
            }
            _ => return None,
        };
        Some(TidyFinding::new(PAGE, self.hunk, message))
    }

    fn fits(&self, text: &str) -> bool {
        let lines: Vec<&str> = text.lines().collect();
        self.wanted.is_empty() || lines.windows(self.wanted.len()).filter(|lines| *lines == self.wanted).count() == 1
    }
}

/// What of a line for a shell does not exist.
fn unknown(tree: &RepoTree, line: &str) -> Option<String> {
    let words: Vec<&str> = line.split('#').next().unwrap_or(line).split_whitespace().collect();
    let after = |option: &str| words.iter().position(|word| *word == option).and_then(|at| words.get(at + 1));
    let folder = match after("-p") {
        Some(name) if *name == "xtask" => "xtask".to_owned(),
        Some(name) => format!("crates/{name}"),
        None => String::new(),
    };
    if !folder.is_empty() && !tree.paths.contains(&folder) {
        return Some(format!("there is no {folder}"));
    }
    if let Some(test) = after("--test") {
        let there = |path: String| tree.paths.contains(&path);
        let test = format!("{folder}/tests/{test}");
        if !there(format!("{test}.rs")) && !there(format!("{test}/main.rs")) {
            return Some(format!("there is no {test}.rs"));
        }
    }
    let command = after("xtask").filter(|_| words.first() == Some(&"cargo") && folder.is_empty())?;
    let known = tree.file(COMMANDS).is_some_and(|file| file.text.contains(&format!("[\"{command}\"")));
    (!known).then(|| format!("there is no `cargo xtask {command}`"))
}

#[cfg(test)]
mod tests {
    use super::super::run;
    use super::check;

    fn found(page: &str) -> Vec<String> {
        let files = [
            ("CONTRIBUTING.md", page),
            ("crates/a/src/lib.rs", "one\ntwo\n\nthree\nfive\nfive\n"),
            ("crates/a/tests/all.rs", ""),
            ("crates/a/tests/more/main.rs", ""),
            ("xtask/src/main.rs", "[\"tidy\"] => x"),
        ];
        run(check, &files)
    }

    #[test]
    fn a_diff_fits_the_file_as_it_is() {
        let fits = "```diff\n--- a/crates/a/src/lib.rs\n+++ b/crates/a/src/lib.rs\n@@ -1,3 +1,4 @@\n one\n-two\n+2\n \n\
                    @@ -4 +5,2 @@\n three\n+four\n--- /dev/null\n+++ b/crates/a/src/new.rs\n@@ -0,0 +1 @@\n+new\n```\n";
        assert!(found(fits).is_empty(), "{:?}", found(fits));
        let stale = fits.replace(" three", " drei").replace("/new.rs", "/lib.rs");
        assert_eq!(
            found(&stale),
            [
                "CONTRIBUTING.md:9: does not fit crates/a/src/lib.rs as it is: make the diff anew",
                "CONTRIBUTING.md:14: makes crates/a/src/lib.rs, which is there",
            ]
        );
        let twice = fits.replace(" three", " five");
        assert_eq!(
            found(&twice)[0],
            "CONTRIBUTING.md:9: does not fit crates/a/src/lib.rs as it is: make the diff anew"
        );
        let gone = fits.replace("b/crates/a/src/lib.rs", "b/crates/a/src/gone.rs");
        assert_eq!(found(&gone)[0], "CONTRIBUTING.md:4: changes crates/a/src/gone.rs, which is not there");
    }

    #[test]
    fn commands_name_what_there_is() {
        let fine = "```sh\ncargo test -p a\ncargo test -p a --test all\ncargo test -p a --test more   # -p none\n\
                    cargo xtask tidy\ncargo test -p xtask\n```\ncargo test -p gone\n";
        assert!(found(fine).is_empty(), "{:?}", found(fine));
        let wrong = "```sh\ncargo test -p b\ncargo test -p a --test none\ncargo xtask fly\n```\n";
        assert_eq!(
            found(wrong),
            [
                "CONTRIBUTING.md:2: there is no crates/b",
                "CONTRIBUTING.md:3: there is no crates/a/tests/none.rs",
                "CONTRIBUTING.md:4: there is no `cargo xtask fly`",
            ]
        );
    }
}
