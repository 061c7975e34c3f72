//! Modules import one way: of the files and folders of one folder, none imports another that leads back to it.
//!
//! What is looked at are paths that begin with `crate::` or `super::` and name a module; comments are passed over. A
//! module's own `mod` lines and the items it shows of its children are no imports.

use super::{RepoFile, RepoTree, TidyFinding};
use std::collections::{BTreeMap, BTreeSet};

/// Folders whose modules still have a circle, with the reason. None is to be added.
const TIED: &[(&str, &str)] = &[
    (
        "crates/yirage-ir/src",
        "a node holds an op or a region of nodes, and a region's meaning is that of its ops: the data are recursive",
    ),
    (
        "crates/yirage-model/src/chat/jinja",
        "a value prints itself by the filters, which take values: the language is recursive",
    ),
    ("crates/yirage/src", "options report by failures, which are printed by the console, whose colours are an option"),
];

/// For each folder its members, and for each member the ones it imports.
type Imports = BTreeMap<Vec<String>, BTreeMap<String, BTreeSet<String>>>;

pub(super) fn check(tree: &RepoTree, findings: &mut Vec<TidyFinding>) {
    let found = tied(tree);
    for (place, circle) in found.iter().filter(|(place, _)| !TIED.iter().any(|(tied, _)| tied == place)) {
        let circle = circle.join(" → ");
        let message = format!("modules import each other: {circle}; move what both need into one of its own");
        findings.push(TidyFinding::new(place, 0, message));
    }
    let is_there = |folder: &str| tree.files.iter().any(|file| file.path.starts_with(folder));
    for (folder, _) in TIED.iter().filter(|(folder, _)| !found.contains_key(*folder) && is_there(folder)) {
        let message = "has no circle any more: take it off the list in xtask/src/tidy/circles.rs";
        findings.push(TidyFinding::new(folder, 0, message));
    }
}

/// Folders whose modules have a circle, with one.
pub(super) fn tied(tree: &RepoTree) -> BTreeMap<String, Vec<String>> {
    let roots: BTreeSet<&str> = tree.files.iter().filter_map(root).collect();
    let mut found = BTreeMap::new();
    for root in roots {
        for (folder, members) in imports(tree, root) {
            let place = [root.trim_end_matches('/')].into_iter().chain(folder.iter().map(String::as_str));
            if let Some(circle) = circle(&members) {
                found.insert(place.collect::<Vec<_>>().join("/"), circle);
            }
        }
    }
    found
}

/// The folder of the sources of the crate that a file is a source of.
fn root(file: &RepoFile) -> Option<&str> {
    let sources = if file.path.starts_with("crates/") { 2 } else { 1 };
    let (end, _) = file.path.match_indices('/').nth(sources)?;
    let root = &file.path[..=end];
    (file.is_rust() && root.ends_with("/src/")).then_some(root)
}

fn imports(tree: &RepoTree, root: &str) -> Imports {
    let files: Vec<&RepoFile> =
        tree.files.iter().filter(|file| file.is_rust() && file.path.starts_with(root)).collect();
    let modules: BTreeSet<Vec<String>> = files.iter().map(|file| module(root, file)).collect();
    let mut imports = Imports::new();
    for file in files {
        let from = module(root, file);
        for to in paths(&from, &file.text) {
            add(&mut imports, &modules, &from, &to);
        }
    }
    imports
}

/// The path of a file's module from the crate's root, which is empty for `lib.rs`.
fn module(root: &str, file: &RepoFile) -> Vec<String> {
    let path = file.path.strip_prefix(root).and_then(|path| path.strip_suffix(".rs")).unwrap_or_default();
    let mut parts: Vec<String> = path.split('/').map(str::to_owned).collect();
    if matches!(parts.last().map(String::as_str), Some("mod" | "lib" | "main")) {
        parts.pop();
    }
    parts
}

/// Paths from the crate's root that the text of module `of` names.
fn paths(of: &[String], text: &str) -> Vec<Vec<String>> {
    let code = text.lines().filter(|line| !line.trim_start().starts_with("//")).collect::<Vec<_>>().join("\n");
    let mut found = Vec::new();
    for (start, parents) in [("crate::", of.len()), ("super::", 1)] {
        for (at, _) in code.match_indices(start) {
            // The rest of a longer path: `super::super::` is found at its beginning.
            if code[..at].ends_with("::") || code[..at].ends_with(|c: char| c.is_alphanumeric() || c == '_') {
                continue;
            }
            let (mut base, mut rest) = (of[..of.len().saturating_sub(parents)].to_vec(), &code[at + start.len()..]);
            while let Some(further) = rest.strip_prefix("super::") {
                base.pop();
                rest = further;
            }
            found.extend(named(rest).into_iter().map(|names| [base.clone(), names].concat()));
        }
    }
    found
}

/// The names that a path goes through; of a group at its end, the path of each member.
fn named(rest: &str) -> Vec<Vec<String>> {
    if let Some(group) = rest.strip_prefix('{') {
        let mut depth = 0;
        let end = group.find(|c| {
            depth += i32::from(c == '{') - i32::from(c == '}');
            depth < 0
        });
        let mut depth = 0;
        let members = group[..end.unwrap_or(group.len())].split(|c| {
            depth += i32::from(c == '{') - i32::from(c == '}');
            c == ',' && depth == 0
        });
        return members.flat_map(|member| named(member.trim())).collect();
    }
    let length = rest.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(rest.len());
    let (name, rest) = rest.split_at(length);
    let further = rest.strip_prefix("::").map_or_else(|| vec![Vec::new()], named);
    further.into_iter().map(|names| [vec![name.to_owned()], names].concat()).collect()
}

/// Notes that `from` names the path `to`, where the two lead into different modules of one folder.
fn add(imports: &mut Imports, modules: &BTreeSet<Vec<String>>, from: &[String], to: &[String]) {
    let common = from.iter().zip(to).take_while(|(a, b)| a == b).count();
    if common < from.len() && common < to.len() && modules.contains(&to[..=common]) {
        let folder = imports.entry(to[..common].to_vec()).or_default();
        folder.entry(from[common].clone()).or_default().insert(to[common].clone());
    }
}

/// A circle among the members of a folder, its first member at both ends.
fn circle(members: &BTreeMap<String, BTreeSet<String>>) -> Option<Vec<String>> {
    members.keys().find_map(|start| {
        // For each member that is reached, from where.
        let mut came: BTreeMap<&String, &String> = BTreeMap::new();
        let mut open = vec![start];
        while let Some(at) = open.pop() {
            for to in members.get(at).into_iter().flatten() {
                if to == start {
                    return Some(import_path(&came, start, at));
                }
                if !came.contains_key(to) {
                    came.insert(to, at);
                    open.push(to);
                }
            }
        }
        None
    })
}

/// From `start` to `last` and back.
fn import_path(came: &BTreeMap<&String, &String>, start: &String, last: &String) -> Vec<String> {
    let mut way = vec![start.clone()];
    let mut at = last;
    while at != start {
        way.push(at.clone());
        at = came[at];
    }
    way.push(start.clone());
    way.reverse();
    way
}

#[cfg(test)]
mod tests {
    use super::super::run;
    use super::check;

    #[test]
    fn circles_of_files_and_of_folders_are_found() {
        let found = run(
            check,
            &[
                ("crates/yirage-hal/src/lib.rs", "mod load;\nmod options;\nmod packed;"),
                ("crates/yirage-hal/src/options.rs", "use crate::packed::PackedOptions;"),
                ("crates/yirage-hal/src/packed/mod.rs", "mod keep;\nuse crate::{Engine, load::{Prepared, Progress}};"),
                ("crates/yirage-hal/src/packed/keep.rs", "use super::super::load;\nuse super::Notice;"),
                ("crates/yirage-hal/src/load.rs", "fn prepare(options: &crate::options::EngineOptions) {}"),
            ],
        );
        let circle = "load → options → packed → load; move what both need into one of its own";
        assert_eq!(found, [format!("crates/yirage-hal/src:0: modules import each other: {circle}")]);
    }

    #[test]
    fn one_way_is_no_circle_nor_are_comments_and_parents() {
        let found = run(
            check,
            &[
                ("crates/yirage-hal/src/lib.rs", "mod kv;\npub use kv::Key;"),
                ("crates/yirage-hal/src/kv/mod.rs", "mod key;\nmod pool;\npub use key::Key;"),
                ("crates/yirage-hal/src/kv/key.rs", "// as crate::kv::pool::Pool\nuse super::Manager;"),
                ("crates/yirage-hal/src/kv/pool.rs", "use super::key::Key;\nuse crate::kv::key::Key as Other;"),
            ],
        );
        assert_eq!(found, [""; 0]);
    }

    #[test]
    fn a_folder_on_the_list_that_was_untied_is_found() {
        let files = [("crates/yirage-ir/src/graph.rs", "use super::op::Op;"), ("crates/yirage-ir/src/op.rs", "")];
        let found = run(check, &files);
        assert_eq!(found.len(), 1, "{found:?}");
        assert!(found[0].starts_with("crates/yirage-ir/src:0: has no circle any more"), "{found:?}");
    }
}
