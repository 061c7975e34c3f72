//! How BERT's tokenizers see characters (Devlin et al., arXiv 1810.04805).
//!
//! The tables are those of the reference library, of an older Unicode: newer ones would cut some texts into other tokens
//! than its own. Which characters are lowered or decomposed is not known here.

use unicode_categories::UnicodeCategories;

/// Blocks of ideographs, which are words by themselves. Hangul and Kana are not among them.
const IDEOGRAPHS: [(u32, u32); 8] = [
    (0x4E00, 0x9FFF),
    (0x3400, 0x4DBF),
    (0x20000, 0x2A6DF),
    (0x2A700, 0x2B73F),
    (0x2B740, 0x2B81F),
    (0x2B920, 0x2CEAF),
    (0xF900, 0xFAFF),
    (0x2F800, 0x2FA1F),
];

/// `text` with plain spaces for all white space, and without control characters and replacement characters.
pub(super) fn clean(text: &str) -> String {
    text.chars().filter(|&c| !is_unwanted(c)).map(|c| if c.is_whitespace() { ' ' } else { c }).collect()
}

/// Whether a character is a control character or stands for a lost one.
pub(super) fn is_unwanted(c: char) -> bool {
    match c {
        ' '..='~' | '\t' | '\n' | '\r' => false,
        char::REPLACEMENT_CHARACTER => true,
        c => c.is_other(),
    }
}

/// `text` with a space on each side of every ideograph.
pub(super) fn space_ideographs(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        if is_ideograph(c) {
            out.extend([' ', c, ' ']);
        } else {
            out.push(c);
        }
    }
    out
}

fn is_ideograph(c: char) -> bool {
    let code = u32::from(c);
    IDEOGRAPHS.iter().any(|&(first, last)| (first..=last).contains(&code))
}

/// `text`, which is decomposed, without accents.
pub(super) fn strip_marks(text: &str) -> String {
    text.chars().filter(|&c| !is_mark(c)).collect()
}

/// Whether a character is an accent of the one before it.
pub(super) fn is_mark(c: char) -> bool {
    !c.is_ascii() && c.is_mark_nonspacing()
}

/// Whether a character is a word by itself.
pub(super) fn is_punctuation(c: char) -> bool {
    if c.is_ascii() { c.is_ascii_punctuation() } else { c.is_punctuation() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn control_characters_go_and_white_space_is_plain() {
        assert_eq!(clean("a\0b\u{7}c\u{200d}d\u{fffd}e\tf\u{a0}g\u{3000}h"), "abcde f g h");
    }

    #[test]
    fn ideographs_stand_alone_and_kana_does_not() {
        assert_eq!(space_ideographs("ab今天かな한"), "ab 今  天 かな한");
        assert_eq!(space_ideographs("\u{2f800}"), " \u{2f800} ");
    }

    #[test]
    fn accents_go_and_other_marks_stay() {
        assert_eq!(strip_marks("e\u{301}\u{20e3}"), "e\u{20e3}");
    }

    #[test]
    fn signs_that_are_no_punctuation_to_unicode_are_here() {
        assert!("$+<=>^`|~!。「".chars().all(is_punctuation) && !"a€1 ".chars().any(is_punctuation));
    }
}
