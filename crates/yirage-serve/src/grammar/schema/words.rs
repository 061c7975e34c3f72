//! Keywords that say nothing of a value.

/// Whether a keyword asks for nothing.
pub(super) fn says_nothing(key: &str) -> bool {
    !KNOWN.contains(&key)
}
