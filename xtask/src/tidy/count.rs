//! How often what the rules look for stands in a tree, whatever the rules allow.

use super::{RepoTree, circles, safety, type_names};

/// Names that more than one type has.
pub(crate) fn repeated_type_names(tree: &RepoTree) -> usize {
    type_names::places(tree).values().filter(|places| places.len() > 1).count()
}

/// Folders whose modules import each other in a circle.
pub(crate) fn circles(tree: &RepoTree) -> usize {
    circles::tied(tree).len()
}

/// SAFETY comments that name no promise.
pub(crate) fn nameless_safety(tree: &RepoTree) -> usize {
    safety::all(tree).filter(|text| safety::is_nameless(text)).count()
}

/// SAFETY comments.
pub(crate) fn safety(tree: &RepoTree) -> usize {
    safety::all(tree).count()
}
