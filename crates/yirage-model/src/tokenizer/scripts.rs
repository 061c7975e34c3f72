//! Cutting text where its script changes, as SentencePiece does when it trains.
//!
//! The table is that of the reference library, of an older Unicode, with kana counted as Han: newer ones would cut some
//! texts at other places than its own. Each line of `scripts.txt` has the first and the last character of a range and
//! its script; `Any` goes with every neighbour.

use super::error::TokenizerError;

/// Ranges of characters with a number for their script, ascending.
#[derive(Debug)]
pub(super) struct Scripts {
    ranges: Vec<(u32, u32, &'static str)>,
}

/// What goes with every script: spaces, and characters that the table lacks.
const ANY: &str = "Any";

impl Scripts {
    pub(super) fn new(name: &str) -> Result<Self, TokenizerError> {
        let line = |line: &'static str| {
            let mut words = line.split(' ');
            let code = |word: Option<&str>| word.and_then(|w| u32::from_str_radix(w, 16).ok());
            Some((code(words.next())?, code(words.next())?, words.next()?))
        };
        let ranges: Option<Vec<_>> = include_str!("scripts.txt").lines().map(line).collect();
        let ranges = ranges.ok_or_else(|| TokenizerError::unsupported(name, "pre_tokenizer", "UnicodeScripts"))?;
        Ok(Self { ranges })
    }

    fn of(&self, c: char) -> &'static str {
        let code = u32::from(c);
        let at = self.ranges.partition_point(|&(_, last, _)| last < code);
        self.ranges.get(at).filter(|&&(first, ..)| first <= code).map_or(ANY, |&(.., script)| script)
    }

    /// Calls `cut` with the beginning of every stretch of one script. Spaces in front of the first are of none.
    pub(super) fn cut(&self, text: &str, cut: &mut dyn FnMut(usize)) {
        let mut last: Option<&str> = None;
        for (at, c) in text.char_indices() {
            let script = self.of(c);
            if script == ANY {
                continue;
            }
            if last != Some(script) {
                cut(at);
            }
            last = Some(script);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scripts_change_at_letters_and_not_at_spaces() {
        let scripts = Scripts::new("t").unwrap();
        let cuts = |text: &str| {
            let mut out = Vec::new();
            scripts.cut(text, &mut |at| out.push(at));
            out
        };
        assert_eq!(cuts("どこで生れ。Yes"), [0, 15, 18]);
        assert_eq!(cuts("Apples are りんご 林檎"), [0, 11]);
        assert_eq!(cuts("  a"), [2]);
    }
}
