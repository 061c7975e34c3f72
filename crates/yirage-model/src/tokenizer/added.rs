//! Tokens found in the text before anything else: added and special tokens.
//!
//! Two searches exist because the two file formats mean different things. `tokenizer.json`: leftmost match, longest of
//! those, per token options. GGUF: the longest token anywhere first, then the next shorter one in what is left.

use std::collections::BTreeMap;
use std::ops::Range;

use aho_corasick::{AhoCorasick, MatchKind};

use super::deadline::EncodeDeadline;
use super::error::TokenizerError;
use super::limits;

/// A token that is matched as text.
#[derive(Debug, Clone)]
pub(super) struct AddedToken {
    pub(super) id: u32,
    pub(super) text: String,
    /// Only matched where special tokens are parsed.
    pub(super) special: bool,
    /// Only matched between characters that are not part of a word.
    pub(super) single_word: bool,
    /// Swallows white space to its left.
    pub(super) lstrip: bool,
    /// Swallows white space to its right.
    pub(super) rstrip: bool,
}

/// A stretch of the text: a token already, or text still to be encoded.
#[derive(Debug, PartialEq, Eq, Clone)]
pub(super) enum Fragment {
    Token(u32),
    Text(Range<usize>),
}

/// Searches in the manner of `tokenizer.json`.
#[derive(Debug, Default)]
pub(super) struct Leftmost {
    tokens: Vec<AddedToken>,
    search: Option<AhoCorasick>,
    /// A character of a word, as the reference library's matcher means `\w`.
    word: Option<regex::Regex>,
}

impl Leftmost {
    pub(super) fn new(name: &str, tokens: Vec<AddedToken>) -> Result<Self, TokenizerError> {
        let search = build(name, MatchKind::LeftmostLongest, &tokens)?;
        let word = if tokens.iter().any(|t| t.single_word) { regex::Regex::new(r"^\w").ok() } else { None };
        Ok(Self { tokens, search, word })
    }

    /// Whether some token is more than its text: one that swallows white space beside it, or counts as a word alone.
    pub(super) fn has_conditions(&self) -> bool {
        self.tokens.iter().any(|token| token.lstrip || token.rstrip || token.single_word)
    }

    /// Two tokens may overlap where one swallows the white space that the other begins with: both are there, and the
    /// text goes on behind the later one.
    pub(super) fn partition(
        &self,
        text: &str,
        parse_special: bool,
        watch: &EncodeDeadline,
    ) -> Result<Vec<Fragment>, TokenizerError> {
        let mut out = Vec::new();
        let mut done = 0;
        let mut swallowed = 0..0;
        for found in self.search.iter().flat_map(|s| s.find_iter(text)) {
            let token = &self.tokens[found.pattern().as_usize()];
            watch.look(&token.text, found.start())?;
            let (mut start, mut end) = (found.start(), found.end());
            if token.special && !parse_special || token.single_word && self.inside_word(text, start, end) {
                continue;
            }
            if token.lstrip {
                start = done + text.get(done..start).map_or(0, |gap| gap.trim_end().len());
            }
            if token.rstrip {
                // White space that an earlier token swallowed is not looked at again.
                if !swallowed.contains(&end) {
                    swallowed = end..text.len() - text[end..].trim_start().len();
                }
                end = swallowed.end.max(end);
            }
            if start > done {
                out.push(Fragment::Text(done..start));
            }
            // White space that is a token itself may be gone already.
            if start < end {
                out.push(Fragment::Token(token.id));
            }
            done = end;
        }
        if done < text.len() {
            out.push(Fragment::Text(done..text.len()));
        }
        Ok(out)
    }

    fn inside_word(&self, text: &str, start: usize, end: usize) -> bool {
        let begins_word = |text: &str| self.word.as_ref().is_some_and(|word| word.is_match(text));
        let before = text[..start].char_indices().next_back().map_or(start, |(at, _)| at);
        begins_word(&text[before..start]) || begins_word(&text[end..])
    }
}

/// Searches in the manner of GGUF runtimes.
#[derive(Debug, Default)]
pub(super) struct LongestFirst {
    any: Option<AhoCorasick>,
    /// One search per token length, longest first.
    groups: Vec<(AhoCorasick, Vec<AddedToken>)>,
}

impl LongestFirst {
    pub(super) fn new(name: &str, tokens: Vec<AddedToken>) -> Result<Self, TokenizerError> {
        let any = build(name, MatchKind::LeftmostFirst, &tokens)?;
        let mut by_length: BTreeMap<usize, Vec<AddedToken>> = BTreeMap::new();
        for token in tokens {
            by_length.entry(token.text.len()).or_default().push(token);
        }
        TokenizerError::limit(
            name,
            "number of different lengths of special tokens",
            by_length.len(),
            limits::MAX_SPECIAL_LENGTHS,
        )?;
        let mut groups = Vec::with_capacity(by_length.len());
        for (_, tokens) in by_length.into_iter().rev() {
            if let Some(search) = build(name, MatchKind::LeftmostFirst, &tokens)? {
                groups.push((search, tokens));
            }
        }
        Ok(Self { any, groups })
    }

    pub(super) fn partition(&self, text: &str, watch: &EncodeDeadline) -> Result<Vec<Fragment>, TokenizerError> {
        let mut fragments = if text.is_empty() { vec![] } else { vec![Fragment::Text(0..text.len())] };
        if !self.any.as_ref().is_some_and(|any| any.is_match(text)) {
            return Ok(fragments);
        }
        for (search, tokens) in &self.groups {
            let mut next = Vec::with_capacity(fragments.len());
            for fragment in fragments {
                match fragment {
                    Fragment::Text(range) => cut(search, tokens, text, range, watch, &mut next)?,
                    token => next.push(token),
                }
            }
            fragments = next;
        }
        Ok(fragments)
    }
}

fn cut(
    search: &AhoCorasick,
    tokens: &[AddedToken],
    text: &str,
    range: Range<usize>,
    watch: &EncodeDeadline,
    out: &mut Vec<Fragment>,
) -> Result<(), TokenizerError> {
    let mut done = range.start;
    for found in search.find_iter(&text[range.clone()]) {
        let start = range.start + found.start();
        if start < done {
            continue;
        }
        let token = &tokens[found.pattern().as_usize()];
        watch.look(&token.text, start)?;
        if start > done {
            out.push(Fragment::Text(done..start));
        }
        out.push(Fragment::Token(token.id));
        done = range.start + found.end();
        if token.rstrip {
            let rest = &text[done..range.end];
            done = range.end - rest.trim_start_matches([' ', '\t', '\n', '\r', '\x0b', '\x0c']).len();
        }
    }
    if done < range.end {
        out.push(Fragment::Text(done..range.end));
    }
    Ok(())
}

fn build(name: &str, kind: MatchKind, tokens: &[AddedToken]) -> Result<Option<AhoCorasick>, TokenizerError> {
    TokenizerError::limit(name, "number of added tokens", tokens.len(), limits::MAX_ADDED)?;
    if tokens.is_empty() {
        return Ok(None);
    }
    AhoCorasick::builder()
        .match_kind(kind)
        .build(tokens.iter().map(|t| &t.text))
        .map(Some)
        .map_err(|error| TokenizerError::field(name, "added_tokens", error.to_string()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn token(id: u32, text: &str) -> AddedToken {
        AddedToken { id, text: text.into(), special: true, single_word: false, lstrip: false, rstrip: false }
    }

    #[test]
    fn the_two_manners_differ_exactly_where_matches_overlap() {
        let tokens = vec![token(1, "ab"), token(2, "bcd")];
        let left = Leftmost::new("t", tokens.clone()).unwrap();
        assert_eq!(
            left.partition("abcd", true, &EncodeDeadline::new(64)).unwrap(),
            [Fragment::Token(1), Fragment::Text(2..4)]
        );
        let long = LongestFirst::new("t", tokens).unwrap();
        assert_eq!(
            long.partition("abcd", &EncodeDeadline::new(64)).unwrap(),
            [Fragment::Text(0..1), Fragment::Token(2)]
        );
    }

    #[test]
    fn options_of_added_tokens() {
        let strip = AddedToken { lstrip: true, rstrip: true, special: false, ..token(7, "<m>") };
        let word = AddedToken { single_word: true, ..token(8, "he") };
        let left = Leftmost::new("t", vec![strip, word]).unwrap();
        assert_eq!(
            left.partition("a \t<m>  b", false, &EncodeDeadline::new(64)).unwrap(),
            [Fragment::Text(0..1), Fragment::Token(7), Fragment::Text(8..9)]
        );
        assert_eq!(
            left.partition("the he", true, &EncodeDeadline::new(64)).unwrap(),
            [Fragment::Text(0..4), Fragment::Token(8)]
        );
        assert_eq!(left.partition("the he", false, &EncodeDeadline::new(64)).unwrap(), [Fragment::Text(0..6)]);
        assert_eq!(left.partition("", true, &EncodeDeadline::new(64)).unwrap(), []);
    }
}
