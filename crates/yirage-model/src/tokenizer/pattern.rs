//! Search patterns from tokenizer files, under budgets.
//!
//! Files are untrusted: compiled size, backtracking steps and time are bounded; the time by a [`EncodeDeadline`] over all
//! searches of one text, since even a linear automaton may read on to the end of the text for each of its matches. The tail `|\s+(?!\S)|\s+`, which almost
//! every published splitting pattern ends in, is the only reason those patterns need a backtracking matcher. It is
//! taken off and done by hand, so that the rest runs on a linear-time automaton.

use std::ops::Range;

use super::deadline::EncodeDeadline;
use super::error::{TokenizerError, shorten};
use super::limits;
use super::oniguruma;

const SPACE_TAILS: [&str; 2] = [r"|\s+(?!\S)|\s+", r"|\s+(?!\S)"];

/// What is searched for.
#[derive(Debug)]
pub(super) enum Pattern {
    /// A plain string, not empty.
    Literal(String),
    /// Single characters of a kind.
    Chars(fn(char) -> bool),
    /// One character.
    Char(char),
    /// A regular expression without look-around.
    Linear(regex::Regex),
    /// `head|\s+(?!\S)|\s+`: the head as an automaton, the tail by hand.
    SpaceTail(regex::Regex),
    /// Anything else, compiled for texts of growing length.
    Backtracking(Vec<(usize, fancy_regex::Regex)>),
}

impl Pattern {
    /// Compiles a regular expression of a file, which is written for Oniguruma; `name` is the file it came from.
    pub(super) fn regex(name: &str, source: &str) -> Result<Self, TokenizerError> {
        TokenizerError::limit(name, "length of a pattern in bytes", source.len(), limits::MAX_PATTERN_BYTES)?;
        let wrong = |detail: &str| TokenizerError::Pattern {
            name: name.to_owned(),
            pattern: shorten(source),
            detail: shorten(detail),
        };
        let source = &oniguruma::translate(source).map_err(|what| wrong(&format!("it has {what}")))?;
        if let Some(head) = SPACE_TAILS.iter().find_map(|tail| source.strip_suffix(tail))
            && let Ok(head) = linear(head)
            && !head.is_match("")
        {
            return Ok(Self::SpaceTail(head));
        }
        if let Ok(regex) = linear(source) {
            return Ok(Self::Linear(regex));
        }
        let compiled = limits::MAX_BACKTRACK.map(|(longest, steps)| Ok((longest, backtracking(source, steps)?)));
        let compiled: Result<Vec<_>, fancy_regex::Error> = compiled.into_iter().collect();
        compiled.map(Self::Backtracking).map_err(|error| wrong(&error.to_string()))
    }

    /// A plain string; the empty one is everywhere between characters.
    pub(super) fn literal(name: &str, text: &str) -> Result<Self, TokenizerError> {
        if text.is_empty() { Self::regex(name, "") } else { Ok(Self::Literal(text.to_owned())) }
    }

    /// Words and runs of signs, as the reference library means `Whitespace`: with its own matcher, not Oniguruma.
    pub(super) fn words_and_signs(name: &str) -> Result<Self, TokenizerError> {
        own(name, r"\w+|[^\w\s]+").map(Self::Linear)
    }

    /// Combining marks, by the table that the reference library has, of Unicode 9. Two of them are letters today.
    pub(super) fn combining_marks(name: &str) -> Result<regex::Regex, TokenizerError> {
        own(name, r"[[\p{M}&&\p{Age=9.0}]\x{1cf2}\x{1cf3}]")
    }

    /// Whether a match may have no characters, as far as is known.
    pub(super) fn may_be_empty(&self) -> bool {
        matches!(self, Self::Linear(_) | Self::Backtracking(_))
    }

    /// Calls `visit` with every match, left to right, not overlapping. An empty match is one unless it stands where the
    /// match before it ends; nothing matches in an empty text.
    pub(super) fn each(
        &self,
        text: &str,
        watch: &EncodeDeadline,
        mut visit: impl FnMut(Range<usize>),
    ) -> Result<(), TokenizerError> {
        let mut each_char = |wanted: &dyn Fn(char) -> bool| {
            let found = text.char_indices().filter(|(_, c)| wanted(*c));
            found.for_each(|(at, c)| visit(at..at + c.len_utf8()));
        };
        match self {
            _ if text.is_empty() => {}
            Self::Chars(wanted) => each_char(wanted),
            Self::Char(wanted) => each_char(&|c| c == *wanted),
            Self::Literal(needle) => text.match_indices(needle.as_str()).for_each(|(at, m)| visit(at..at + m.len())),
            Self::Linear(regex) => {
                for found in regex.find_iter(text).map(|m| m.range()) {
                    watch.look(regex.as_str(), found.start)?;
                    visit(found);
                }
            }
            Self::SpaceTail(head) => return each_with_space_tail(head, text, watch, visit),
            Self::Backtracking(by_length) => return each_backtracking(by_length, text, watch, visit),
        }
        Ok(())
    }
}

/// A pattern of this program's.
fn own(name: &str, source: &str) -> Result<regex::Regex, TokenizerError> {
    linear(source).map_err(|error| TokenizerError::Pattern {
        name: name.to_owned(),
        pattern: source.to_owned(),
        detail: shorten(&error.to_string()),
    })
}

fn linear(source: &str) -> Result<regex::Regex, regex::Error> {
    regex::RegexBuilder::new(source)
        .size_limit(limits::MAX_PATTERN_PROGRAM)
        .dfa_size_limit(limits::MAX_PATTERN_PROGRAM)
        .build()
}

fn backtracking(source: &str, steps: usize) -> Result<fancy_regex::Regex, fancy_regex::Error> {
    fancy_regex::RegexBuilder::new(source)
        .backtrack_limit(steps)
        .delegate_size_limit(limits::MAX_PATTERN_PROGRAM)
        .delegate_dfa_size_limit(limits::MAX_PATTERN_PROGRAM)
        .build()
}

/// At equal starts the head wins, as alternatives in order do. A run of white space followed by something else gives
/// up its last character when it has more than one: that is what `\s+(?!\S)|\s+` matches.
///
/// A match of the head that lies ahead is kept until it is reached, and so is the answer that there is none: the head
/// may have to read on to the end of the text to know.
fn each_with_space_tail(
    head: &regex::Regex,
    text: &str,
    watch: &EncodeDeadline,
    mut visit: impl FnMut(Range<usize>),
) -> Result<(), TokenizerError> {
    let mut at = 0;
    let mut ahead: Option<Option<Range<usize>>> = None;
    while at < text.len() {
        watch.look(head.as_str(), at)?;
        let found = match ahead.take() {
            Some(known) if known.as_ref().is_none_or(|r| r.start >= at) => known,
            _ => head.find_at(text, at).map(|m| m.range()),
        };
        let first = found.clone().filter(|r| !r.is_empty());
        ahead = if first.is_some() || found.is_none() { Some(found) } else { None };
        let until = first.as_ref().map_or(text.len(), |r| r.start);
        let run = text[at..until].char_indices().find(|(_, c)| c.is_whitespace()).map(|(offset, _)| at + offset);
        let found = match (run, first) {
            (Some(start), _) => space_match(text, start),
            (None, Some(range)) => range,
            (None, None) => break,
        };
        at = found.end;
        visit(found);
    }
    Ok(())
}

fn space_match(text: &str, start: usize) -> Range<usize> {
    let rest = &text[start..];
    let end = rest.find(|c: char| !c.is_whitespace()).map_or(text.len(), |offset| start + offset);
    let last = text[start..end].char_indices().next_back().map_or(0, |(offset, _)| offset);
    if end < text.len() && last > 0 { start..start + last } else { start..end }
}

fn each_backtracking(
    by_length: &[(usize, fancy_regex::Regex)],
    text: &str,
    watch: &EncodeDeadline,
    mut visit: impl FnMut(Range<usize>),
) -> Result<(), TokenizerError> {
    let fitting = by_length.iter().find(|(longest, _)| text.len() <= *longest).map(|(_, regex)| regex);
    let Some(regex) = fitting else {
        let pattern = by_length.last().map_or_else(String::new, |(_, regex)| shorten(regex.as_str()));
        let detail = format!("it backtracks, and {} bytes without a cut are too many for that", text.len());
        return Err(TokenizerError::Search { pattern, offset: 0, detail });
    };
    let mut at = 0;
    let mut done = None;
    while at <= text.len() {
        let fault = |detail: String| TokenizerError::Search { pattern: shorten(regex.as_str()), offset: at, detail };
        watch.look(regex.as_str(), at)?;
        let Some(found) = regex.find_from_pos(text, at).map_err(|e| fault(shorten(&e.to_string())))? else { break };
        let found = found.range();
        if found.is_empty() && done == Some(found.end) {
            at += text[at..].chars().next().map_or(1, char::len_utf8);
            continue;
        }
        (at, done) = (found.end, Some(found.end));
        visit(found);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const QWEN: &str = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+";
    const GPT2: &str = r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+";

    fn matches(pattern: &Pattern, text: &str) -> Vec<Range<usize>> {
        let mut out = Vec::new();
        pattern.each(text, &EncodeDeadline::new(text.len()), |r| out.push(r)).unwrap();
        out
    }

    fn oracle(source: &str, text: &str) -> Vec<Range<usize>> {
        fancy_regex::Regex::new(source).unwrap().find_iter(text).map(|m| m.unwrap().range()).collect()
    }

    proptest! {
        #[test]
        fn the_hand_made_tail_agrees_with_a_backtracking_matcher(text in "[ \t\n\r\u{a0}\u{3000}a1.'sé]{0,24}") {
            for source in [QWEN, GPT2] {
                let pattern = Pattern::regex("t", source).unwrap();
                prop_assert!(matches!(pattern, Pattern::SpaceTail(_)));
                prop_assert_eq!(matches(&pattern, &text), oracle(source, &text));
            }
        }
    }

    #[test]
    fn a_pattern_that_explodes_is_an_error_and_not_a_hang() {
        let pattern = Pattern::regex("t", r"(a+a+)+(?=b)c").unwrap();
        let error = pattern.each(&"a".repeat(64), &EncodeDeadline::new(64), |_| {}).unwrap_err();
        assert!(matches!(error, TokenizerError::Search { .. }), "{error}");
    }

    #[test]
    fn oversized_and_broken_patterns_are_typed_errors() {
        for source in [r"(\p{L}{1000}){1000}", "(", &"a".repeat(limits::MAX_PATTERN_BYTES + 1)] {
            assert!(Pattern::regex("t", source).is_err());
        }
    }
}
