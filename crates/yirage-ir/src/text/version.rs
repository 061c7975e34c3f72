//! The version of the text forms of graphs and plans, and what is said of the words of the one before.

/// The version that is printed and parsed. It stands in the head of files that hold a text. A text alone says its version by
/// its words: none that changed is a word of both.
pub const VERSION: u32 = 2;

/// Words of version 1 in graphs, and what stands in their place.
pub const OUTDATED: [(&str, &str); 3] = [("slot", "input"), ("state", "kv_cache"), ("products", "matmul_group")];

/// Why a word is refused, where it is one of version 1.
pub fn outdated_word(words: &[(&str, &str)], word: &str) -> Option<String> {
    let (old, new) = words.iter().find(|(old, _)| *old == word)?;
    Some(format!(
        "`{old}` is a word of text form 1, form {VERSION} says `{new}`; rewrite the file by `cargo xtask migrate-text FILE`"
    ))
}
