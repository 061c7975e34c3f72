//! `docs/hardware/support.md` is what the records of `yirage verify` say, and a list of what has none: `cargo xtask support`
//! writes it, and this rule sees that it is fresh.

mod facts;
mod page;

use super::tree::VERIFIED;
use super::{RepoTree, TidyFinding};
use facts::{UnverifiedLevels, VerifiedFile};
use std::fs;
use std::path::Path;

pub(crate) const USAGE: &str =
    "       cargo xtask support    write docs/hardware/support.md from the records of `yirage verify`\n";

const PAGE: &str = "docs/hardware/support.md";
/// What is known without a record.
const LIST: &str = "docs/hardware/support.toml";

/// Writes the page of the repository at `root`.
///
/// # Errors
/// A record or list that cannot be read, by its name.
pub(crate) fn write(root: &Path) -> Result<(), String> {
    let tree = RepoTree::read(root).map_err(|error| format!("{}: {error}", root.display()))?;
    fs::write(root.join(PAGE), page(&tree)?).map_err(|error| format!("{PAGE}: {error}"))
}

pub(super) fn check(tree: &RepoTree, findings: &mut Vec<TidyFinding>) {
    match page(tree) {
        Ok(page) if tree.file(PAGE).is_some_and(|file| file.text == page) => {}
        Ok(_) => findings.push(TidyFinding::new(PAGE, 0, "is not what its records give: run `cargo xtask support`")),
        Err(why) => findings.push(TidyFinding::new(PAGE, 0, why)),
    }
}

/// The page as the repository's records and its list give it.
fn page(tree: &RepoTree) -> Result<String, String> {
    let records = tree.files.iter().filter(|file| file.path.starts_with(VERIFIED));
    let records = records.map(|file| VerifiedFile::parse(&file.path, &file.text)).collect::<Result<Vec<_>, _>>()?;
    let list = tree.file(LIST).map_or("", |file| &file.text);
    let list = UnverifiedLevels::parse(list).map_err(|why| format!("{LIST}: {why}"))?;
    Ok(page::text(&records, &list))
}

#[cfg(test)]
mod tests {
    use super::super::run;
    use super::*;

    #[test]
    fn a_page_that_is_not_what_the_records_give_is_found() {
        let fresh = page(&RepoTree::of(&[])).unwrap();
        assert!(run(check, &[(PAGE, &fresh)]).is_empty());
        let stale = fresh.replace("hardware", "software");
        let message = "docs/hardware/support.md:0: is not what its records give: run `cargo xtask support`";
        assert_eq!(run(check, &[(PAGE, &stale)]), [message]);
        let found = run(check, &[(PAGE, &fresh), ("docs/hardware/verified/a.json", "nothing")]);
        assert!(found[0].contains("verified/a.json: no result of `yirage verify -o FILE`"), "{found:?}");
        let found = run(check, &[(PAGE, &fresh), (LIST, "[[level]]\nstate = \"magic\"")]);
        assert!(found[0].contains("docs/hardware/support.toml: "), "{found:?}");
    }
}
