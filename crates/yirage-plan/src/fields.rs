//! Words of text forms.

use std::str::FromStr;

/// The value of the word `name=value`.
pub(crate) fn field<T: FromStr>(word: &str, name: &str) -> Option<T> {
    let (key, value) = word.split_once('=')?;
    (key == name).then(|| value.parse().ok()).flatten()
}
