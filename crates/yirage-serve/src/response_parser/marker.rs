//! Markers in a text that is not whole yet.

/// Where the first of `markers` begins in `text`, and which it is; the longest of those that begin there.
pub(super) fn first<'m>(text: &str, markers: &[&'m str]) -> Option<(usize, &'m str)> {
    let found = markers.iter().filter_map(|marker| Some((text.find(marker)?, *marker)));
    found.min_by_key(|(at, marker)| (*at, usize::MAX - marker.len()))
}

/// Bytes at the end of `text` that may be the beginning of one of `markers`.
pub(super) fn unfinished(text: &str, markers: &[&str]) -> usize {
    markers.iter().map(|marker| beginning(text, marker)).max().unwrap_or(0)
}

fn beginning(text: &str, marker: &str) -> usize {
    let most = marker.len().saturating_sub(1).min(text.len());
    let fits = |n: &usize| {
        text.is_char_boundary(text.len() - n) && marker.as_bytes().starts_with(&text.as_bytes()[text.len() - n..])
    };
    (1..=most).rev().find(fits).unwrap_or(0)
}

/// Whether `text` begins with a marker, or may once there is more of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Begins {
    /// It does.
    Yes,
    /// All of the text is the marker's beginning.
    Maybe,
    /// It does not.
    No,
}

/// Whether `text` begins with `marker`; where the text is `whole`, a beginning of the marker is none.
pub(super) fn begins(text: &str, marker: &str, whole: bool) -> Begins {
    if text.starts_with(marker) {
        Begins::Yes
    } else if !whole && marker.starts_with(text) {
        Begins::Maybe
    } else {
        Begins::No
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn markers_are_found_and_their_beginnings_held_back() {
        assert_eq!(first("a<b><c>", &["<c>", "<b>"]), Some((1, "<b>")));
        assert_eq!(first("a[b]c", &["[b]", "[b]c"]), Some((1, "[b]c")));
        assert_eq!(first("abc", &["<b>"]), None);
        assert_eq!(unfinished("abc<t", &["<t>", "<tool>"]), 2);
        assert_eq!(unfinished("abc<|", &["<｜x｜>"]), 0);
        assert_eq!(unfinished("abc<｜", &["<｜x｜>"]), "<｜".len());
        assert_eq!(begins("<t", "<t>", false), Begins::Maybe);
        assert_eq!(begins("<t", "<t>", true), Begins::No);
        assert_eq!(begins("<t>x", "<t>", true), Begins::Yes);
    }
}
