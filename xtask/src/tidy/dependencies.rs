//! Every third-party crate has a line in `docs/dependencies.md` that says why it is the best of its kind.

use super::{RepoTree, TidyFinding, manifest};
use toml::Value;

const LIST: &str = "docs/dependencies.md";
const WORKSPACE: &str = "Cargo.toml";

pub(super) fn check(tree: &RepoTree, findings: &mut Vec<TidyFinding>) {
    let Some(root) = tree.file(WORKSPACE) else { return };
    let Some(table) = manifest::parse(root, findings) else { return };
    let names = table
        .get("workspace")
        .and_then(|workspace| workspace.get("dependencies"))
        .and_then(Value::as_table)
        .into_iter()
        .flat_map(|table| table.iter().filter(|(_, value)| value.get("path").is_none()).map(|(name, _)| name));
    let list = tree.file(LIST).map_or("", |file| file.text.as_str());
    let names: Vec<&String> = names.collect();
    for name in &names {
        if !list.lines().any(|line| row(line) == Some(name.as_str())) {
            findings.push(TidyFinding::new(WORKSPACE, 0, format!("`{name}` has no line in {LIST}")));
        }
    }
    for (index, line) in list.lines().enumerate() {
        if let Some(name) = row(line).filter(|name| !names.iter().any(|known| known == name)) {
            findings.push(TidyFinding::new(
                LIST,
                index + 1,
                format!("`{name}` is no dependency of the workspace any more"),
            ));
        }
    }
    for manifest in manifest::members(tree, &mut Vec::new()) {
        for name in manifest.dependencies() {
            let own = name == "yirage" || name.starts_with("yirage-");
            if !own && !names.contains(&&name) {
                let message =
                    format!("`{name}` is not taken from the workspace: add it to its [workspace.dependencies]");
                findings.push(TidyFinding::new(manifest.path, 0, message));
            }
        }
    }
}

/// The crate a table row is about: the first cell, in backquotes.
fn row(line: &str) -> Option<&str> {
    line.strip_prefix("| `")?.split('`').next()
}

#[cfg(test)]
mod tests {
    use super::super::run;
    use super::check;

    #[test]
    fn the_list_and_the_manifest_agree() {
        let root = "[workspace.dependencies]\nyirage-ir = { path = \"x\" }\nhalf = \"2\"\nserde = \"1\"\n";
        let list = "| crate | why |\n|---|---|\n| `half` | f16 |\n| `old` | gone |\n";
        let member = "[dependencies]\nhalf.workspace = true\nrand = \"1\"\n";
        let found =
            run(check, &[("Cargo.toml", root), ("docs/dependencies.md", list), ("crates/a/Cargo.toml", member)]);
        assert_eq!(
            found,
            [
                "Cargo.toml:0: `serde` has no line in docs/dependencies.md",
                "docs/dependencies.md:4: `old` is no dependency of the workspace any more",
                "crates/a/Cargo.toml:0: `rand` is not taken from the workspace: add it to its [workspace.dependencies]",
            ]
        );
    }
}
