//! Dependencies point one import_path: the table of crates in `ARCHITECTURE.md` is what is checked, so that it cannot be wrong.
//!
//! A row names a crate, its one job, and in its last cell the crates that it is built from, by their names without
//! `yirage-`: `–` is none, `all above but a, b` is every crate of the rows above without these. A crate is built from crates
//! of the rows above its own, so there is no circle. Only what a crate is built from counts: its tests may use anything (a
//! compiler test may run its plan).

use super::{RepoFile, RepoTree, TidyFinding, manifest};
use std::collections::BTreeSet;

const TABLE: &str = "ARCHITECTURE.md";
const NONE: &str = "–";
const ALL: &str = "all above but ";

/// One crate's row.
struct Row<'a> {
    line: usize,
    name: &'a str,
    built_from: BTreeSet<String>,
}

pub(super) fn check(tree: &RepoTree, findings: &mut Vec<TidyFinding>) {
    let Some(table) = tree.file(TABLE) else { return };
    let rows = rows(table, findings);
    for manifest in manifest::members(tree, findings) {
        let Some(row) = rows.iter().find(|row| row.name == manifest.folder) else {
            let message =
                format!("crate `{}` is not in the table of {TABLE}: add it with its one job", manifest.folder);
            findings.push(TidyFinding::new(manifest.path, 0, message));
            continue;
        };
        let built_from: BTreeSet<String> = manifest.dependencies().into_iter().collect();
        for name in &built_from {
            if rows.iter().any(|ours| ours.name == name) && !row.built_from.contains(name) {
                let message = format!("`{}` must not depend on `{name}`", manifest.folder);
                findings.push(TidyFinding::new(manifest.path, 0, message));
            }
        }
        for name in row.built_from.difference(&built_from) {
            let message = format!("`{}` is not built from `{name}`: take it out of the row", row.name);
            findings.push(TidyFinding::new(TABLE, row.line, message));
        }
    }
}

/// The rows of the table, each with the names of its last cell; a name that is in no row above is a finding.
fn rows<'a>(table: &'a RepoFile, findings: &mut Vec<TidyFinding>) -> Vec<Row<'a>> {
    let mut rows: Vec<Row<'a>> = Vec::new();
    for (line, text) in table.lines() {
        let Some((name, cell)) = cells(text) else { continue };
        let (all, names) = cell.strip_prefix(ALL).map_or((false, cell), |names| (true, names));
        let mut named = BTreeSet::new();
        for short in names.split(", ").filter(|short| *short != NONE) {
            let full = |row: &&Row<'_>| row.name == short || row.name.strip_prefix("yirage-") == Some(short);
            match rows.iter().find(full) {
                Some(row) => {
                    named.insert(row.name.to_owned());
                }
                None => {
                    let message = format!("`{short}` is no crate of a row above `{name}`");
                    findings.push(TidyFinding::new(TABLE, line, message));
                }
            }
        }
        let above = || rows.iter().map(|row| row.name.to_owned()).collect::<BTreeSet<_>>();
        let built_from = if all { &above() - &named } else { named };
        rows.push(Row { line, name, built_from });
    }
    rows
}

/// The crate's name and the last cell of its row: a row begins with `` | [`NAME`](PATH) | ``.
fn cells(line: &str) -> Option<(&str, &str)> {
    let row = line.strip_prefix("| [`")?.strip_suffix(" |")?;
    let (name, rest) = row.split_once("`](")?;
    Some((name, rest.rsplit(" | ").next()?))
}

#[cfg(test)]
mod tests {
    use super::super::run;
    use super::check;

    const TABLE: (&str, &str) = (
        "ARCHITECTURE.md",
        "# A\n| crate | one job | built from |\n|---|---|---|\n| [`yirage-ir`](a) | graphs | – |\n\
         | [`yirage-hal`](a) | devices | ir |\n| [`yirage-compile`](a) | plans | ir |\n\
         | [`yirage`](a) | all of it | all above but hal |\n",
    );
    const IR: (&str, &str) = ("crates/yirage-ir/Cargo.toml", "[dependencies]\nhalf = \"2\"\n");
    const COMPILE: &str = "crates/yirage-compile/Cargo.toml";

    #[test]
    fn a_compiler_that_knows_devices_is_found() {
        let tested = "[dependencies]\nyirage-ir = \"1\"\n[dev-dependencies]\nyirage-hal = \"1\"";
        assert!(run(check, &[TABLE, IR, (COMPILE, tested)]).is_empty());
        let built = "[dependencies]\nyirage-ir = \"1\"\n[target.'cfg(unix)'.dependencies]\nyirage-hal = \"1\"";
        let found = run(check, &[TABLE, IR, (COMPILE, built)]);
        assert_eq!(found, ["crates/yirage-compile/Cargo.toml:0: `yirage-compile` must not depend on `yirage-hal`"]);
    }

    #[test]
    fn all_above_but_some_are_the_others() {
        let manifest = "[dependencies]\nyirage-ir = \"1\"\nyirage-hal = \"1\"\n";
        let found = run(check, &[TABLE, ("crates/yirage/Cargo.toml", manifest)]);
        assert_eq!(
            found,
            [
                "crates/yirage/Cargo.toml:0: `yirage` must not depend on `yirage-hal`",
                "ARCHITECTURE.md:7: `yirage` is not built from `yirage-compile`: take it out of the row",
            ]
        );
    }

    #[test]
    fn an_arrow_that_nobody_uses_and_one_upward_are_found() {
        let found = run(check, &[TABLE, ("crates/yirage-hal/Cargo.toml", "")]);
        assert_eq!(found, ["ARCHITECTURE.md:5: `yirage-hal` is not built from `yirage-ir`: take it out of the row"]);
        let upward = "| [`yirage-ir`](a) | graphs | plan |\n| [`yirage-plan`](a) | plans | – |\n";
        let found = run(check, &[("ARCHITECTURE.md", upward)]);
        assert_eq!(found, ["ARCHITECTURE.md:1: `plan` is no crate of a row above `yirage-ir`"]);
    }

    #[test]
    fn a_crate_without_a_place_and_a_broken_manifest_are_found() {
        let found = run(check, &[TABLE, ("crates/yirage-misc/Cargo.toml", ""), ("xtask/Cargo.toml", "[")]);
        assert_eq!(found.len(), 2, "{found:?}");
        assert!(found[0].contains("not TOML") && found[1].contains("not in the table of"), "{found:?}");
    }
}
