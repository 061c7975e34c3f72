//! Unified diffs. A hunk is found by its lines alone, so that a patch outlives edits elsewhere in its file; they must
//! stand there exactly once.

/// What a diff does to one file.
#[derive(Debug)]
pub(crate) struct FilePatch {
    /// Path from the repository's root.
    pub(crate) path: String,
    hunks: Vec<Hunk>,
}

/// Lines and what becomes of them.
#[derive(Debug, Default)]
struct Hunk {
    before: String,
    after: String,
}

/// The changes of a diff whose paths begin with `a/` and `b/`.
///
/// # Errors
/// A line that has no place in a diff.
pub(crate) fn parse(diff: &str) -> Result<Vec<FilePatch>, String> {
    let mut changes: Vec<FilePatch> = Vec::new();
    for line in diff.lines() {
        if line.starts_with("--- ") {
            continue;
        }
        if let Some(path) = line.strip_prefix("+++ b/") {
            changes.push(FilePatch { path: path.to_owned(), hunks: Vec::new() });
            continue;
        }
        let change = changes.last_mut().ok_or_else(|| format!("`{line}` stands before any file"))?;
        if line.starts_with("@@ ") {
            change.hunks.push(Hunk::default());
            continue;
        }
        let hunk = change.hunks.last_mut().ok_or_else(|| format!("`{line}` stands before any hunk"))?;
        hunk.add(line)?;
    }
    Ok(changes)
}

impl Hunk {
    fn add(&mut self, line: &str) -> Result<(), String> {
        let (kind, text) = line.split_at_checked(1).unwrap_or((" ", ""));
        let (before, after) = match kind {
            " " => (true, true),
            "-" => (true, false),
            "+" => (false, true),
            _ => return Err(format!("`{line}` is no line of a diff")),
        };
        for (wanted, side) in [(before, &mut self.before), (after, &mut self.after)] {
            if wanted {
                side.push_str(text);
                side.push('\n');
            }
        }
        Ok(())
    }
}

impl FilePatch {
    /// `text` with the change.
    ///
    /// # Errors
    /// Lines that are not in the text, or not once.
    pub(crate) fn apply(&self, text: &str) -> Result<String, String> {
        let mut text = text.to_owned();
        for hunk in &self.hunks {
            // From a line's beginning on, so that indentation is not skipped.
            let places: Vec<usize> = starts(&text).filter(|&at| text[at..].starts_with(&hunk.before)).collect();
            let [at] = places[..] else {
                return Err(format!("these lines stand there {} times, not once:\n{}", places.len(), hunk.before));
            };
            text.replace_range(at..at + hunk.before.len(), &hunk.after);
        }
        Ok(text)
    }
}

/// Where the lines of `text` begin.
fn starts(text: &str) -> impl Iterator<Item = usize> {
    std::iter::once(0).chain(text.match_indices('\n').map(|(at, _)| at + 1))
}

#[cfg(test)]
mod tests {
    use super::parse;

    const DIFF: &str = "--- a/x.rs\n+++ b/x.rs\n@@ -1,3 +1,3 @@\n one\n-  two\n+  2\n+  3\n four\n";

    #[test]
    fn a_hunk_is_found_by_its_lines() {
        let change = parse(DIFF).unwrap().swap_remove(0);
        assert_eq!(change.path, "x.rs");
        assert_eq!(change.apply("zero\none\n  two\nfour\n").unwrap(), "zero\none\n  2\n  3\nfour\n");
        for text in ["one\ntwo\nfour\n", "one\n  two\nfour\none\n  two\nfour\n", "xone\n  two\nfour\n"] {
            assert!(change.apply(text).unwrap_err().contains("not once"));
        }
    }

    #[test]
    fn what_is_no_diff_is_an_error() {
        for diff in ["+one\n", "--- a/x\n+++ b/x\n+one\n", "--- a/x\n+++ b/x\n@@ -1 +1 @@\n?one\n"] {
            parse(diff).unwrap_err();
        }
    }
}
