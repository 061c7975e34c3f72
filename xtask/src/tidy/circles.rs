//! Modules import one way: of the files and folders of one folder, none imports another that leads back to it.
//!
//! What is looked at are paths that begin with `crate::` or `super::` and name a module; comments are passed over. A
//! module's own `mod` lines and the items it shows of its children are no imports.

use super::{File, Finding, Tree};
use std::collections::{BTreeMap, BTreeSet};

/// Crates whose modules are held to it, and where in them: the others have circles to be untied.
const UNTIED: &[&str] = &["crates/yirage-engine/src/"];

/// For each folder its members, and for each member the ones it imports.
type Imports = BTreeMap<Vec<String>, BTreeMap<String, BTreeSet<String>>>;

pub(super) fn check(tree: &Tree, findings: &mut Vec<Finding>) {
    for root in UNTIED {
        let files: Vec<&File> =
            tree.files.iter().filter(|file| file.is_rust() && file.path.starts_with(root)).collect();
        let modules: BTreeSet<Vec<String>> = files.iter().map(|file| module(root, file)).collect();
        let mut imports = Imports::new();
        for file in &files {
            let from = module(root, file);
            for to in paths(&from, &file.text) {
                add(&mut imports, &modules, &from, &to);
            }
        }
        for (folder, members) in &imports {
            if let Some(circle) = circle(members) {
                let place = format!("{root}{}", folder.join("/"));
                let message = format!(
                    "modules import each other: {}; move what both need into one of its own",
                    circle.join(" → ")
                );
                findings.push(Finding::new(place.trim_end_matches('/'), 0, message));
            }
        }
    }
}

/// The path of a file's module from the crate's root, which is empty for `lib.rs`.
fn module(root: &str, file: &File) -> Vec<String> {
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
                    return Some(way(&came, start, at));
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
fn way(came: &BTreeMap<&String, &String>, start: &String, last: &String) -> Vec<String> {
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
                ("crates/yirage-engine/src/lib.rs", "mod load;\nmod options;\nmod packed;"),
                ("crates/yirage-engine/src/options.rs", "use crate::packed::PackedOptions;"),
                (
                    "crates/yirage-engine/src/packed/mod.rs",
                    "mod keep;\nuse crate::{Engine, load::{Prepared, Progress}};",
                ),
                ("crates/yirage-engine/src/packed/keep.rs", "use super::super::load;\nuse super::Notice;"),
                ("crates/yirage-engine/src/load.rs", "fn prepare(options: &crate::options::EngineOptions) {}"),
            ],
        );
        let circle = "load → options → packed → load; move what both need into one of its own";
        assert_eq!(found, [format!("crates/yirage-engine/src:0: modules import each other: {circle}")]);
    }

    #[test]
    fn one_way_is_no_circle_nor_are_comments_and_parents() {
        let found = run(
            check,
            &[
                ("crates/yirage-engine/src/lib.rs", "mod kv;\npub use kv::Key;"),
                ("crates/yirage-engine/src/kv/mod.rs", "mod key;\nmod pool;\npub use key::Key;"),
                ("crates/yirage-engine/src/kv/key.rs", "// as crate::kv::pool::Pool\nuse super::Manager;"),
                ("crates/yirage-engine/src/kv/pool.rs", "use super::key::Key;\nuse crate::kv::key::Key as Other;"),
            ],
        );
        assert_eq!(found, [""; 0]);
    }
}
