//! Every link between the repository's documents leads somewhere: the file exists, and so does the heading.

use super::{RepoFile, RepoTree, TidyFinding};

pub(super) fn check(tree: &RepoTree, findings: &mut Vec<TidyFinding>) {
    for file in tree.files.iter().filter(|file| file.path.ends_with(".md")) {
        for (number, line) in prose(&file.text) {
            for target in targets(line) {
                if let Some(message) = broken(tree, file, target) {
                    findings.push(TidyFinding::new(&file.path, number, message));
                }
            }
        }
    }
}

/// The lines outside code fences, with their numbers.
fn prose(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let mut fenced = false;
    text.lines().enumerate().filter_map(move |(index, line)| {
        if line.trim_start().starts_with("```") {
            fenced = !fenced;
            return None;
        }
        (!fenced).then_some((index + 1, line))
    })
}

/// What stands between `](` and `)`.
fn targets(line: &str) -> impl Iterator<Item = &str> {
    line.split("](").skip(1).filter_map(|rest| rest.split([')', ' ']).next())
}

/// Why a link is broken, if it is.
fn broken(tree: &RepoTree, from: &RepoFile, target: &str) -> Option<String> {
    if target.contains("://") || target.starts_with("mailto:") {
        return None;
    }
    let (path, heading) = target.split_once('#').map_or((target, None), |(path, heading)| (path, Some(heading)));
    let full = if path.is_empty() { from.path.clone() } else { resolve(&from.path, path)? };
    if !full.is_empty() && !tree.paths.contains(&full) {
        return Some(format!("link to `{target}`: there is no {full}"));
    }
    let (heading, file) = (heading?, tree.file(&full)?);
    let found = prose(&file.text).any(|(_, line)| line.starts_with('#') && anchor(line) == heading);
    (!found).then(|| format!("link to `{target}`: no such heading in {full}"))
}

/// `path` as seen from the folder of `from`; `None` when it leaves the repository.
fn resolve(from: &str, path: &str) -> Option<String> {
    let mut parts: Vec<&str> = from.split('/').collect();
    parts.pop();
    for part in path.split('/') {
        match part {
            "" | "." => {}
            ".." => {
                parts.pop()?;
            }
            name => parts.push(name),
        }
    }
    Some(parts.join("/"))
}

/// A heading's anchor: lower case, spaces to hyphens, punctuation dropped.
fn anchor(heading: &str) -> String {
    let text = heading.trim_start_matches('#').trim().to_lowercase();
    let kept = text.chars().filter(|letter| letter.is_alphanumeric() || " -_".contains(*letter));
    kept.map(|letter| if letter == ' ' { '-' } else { letter }).collect()
}

#[cfg(test)]
mod tests {
    use super::super::run;
    use super::{anchor, check};

    #[test]
    fn links_and_headings() {
        let a =
            "# One, two!\n[b](docs/b.md) [c](docs/c.md) [d](docs) [e](#one-two) [f](docs/b.md#no) [g](https://x.y/z)\n";
        let b = "## Yes\n[up](../a.md#one-two)\n```\n[code](nowhere)\n```\n";
        let found = run(check, &[("a.md", a), ("docs/b.md", b)]);
        assert_eq!(
            found,
            [
                "a.md:2: link to `docs/c.md`: there is no docs/c.md",
                "a.md:2: link to `docs/b.md#no`: no such heading in docs/b.md",
            ]
        );
    }

    #[test]
    fn anchors() {
        assert_eq!(anchor("## `yirage run`: a first model"), "yirage-run-a-first-model");
    }
}
