//! Pre-tokenisers: how a fragment of text is cut into words before pairs are merged.
//!
//! Steps narrow byte ranges of one text; a step that changes characters rebuilds that text once.

use std::borrow::Cow;
use std::ops::Range;

use super::bert;
use super::bytes::byte_char;
use super::deadline::EncodeDeadline;
use super::error::TokenizerError;
use super::normalize::Beginning;
use super::pattern::Pattern;
use super::scripts::Scripts;

/// What happens to the matches of a splitting pattern.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Behavior {
    /// Matches become pieces of their own.
    Isolated,
    /// Matches disappear.
    Removed,
    /// A match ends the piece before it.
    MergedWithPrevious,
    /// A match begins the piece after it.
    MergedWithNext,
    /// Like `Isolated`, but neighbouring matches form one piece.
    Contiguous,
}

/// When a word-start mark is put in front of a text that lacks one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Prepend {
    /// Never.
    Never,
    /// Only in front of the fragment that begins the text.
    First,
    /// In front of every fragment.
    Always,
}

/// One pre-tokeniser.
#[derive(Debug)]
pub(super) enum PreTokenizer {
    /// Cut at a pattern; `invert` swaps matches and gaps.
    Split { pattern: Pattern, behavior: Behavior, invert: bool },
    /// Put a space in front of every piece that lacks one.
    SpacePrefix,
    /// Replace spaces by a mark, put one in front, cut before each mark.
    Metaspace { mark: char, prepend: Prepend, cut: bool },
    /// Cut at white space, which disappears, and around each punctuation character.
    Bert,
    /// Cut where the script changes.
    Scripts(Scripts),
    /// Cut after every so many characters.
    Length(usize),
    /// Write each byte as its character of the GPT-2 alphabet.
    Bytes,
}

/// A text and the ranges of it that are words so far.
#[derive(Debug)]
pub(super) struct Pieces<'a> {
    pub(super) text: Cow<'a, str>,
    pub(super) ranges: Vec<Range<usize>>,
    /// How the text begins.
    beginning: Beginning,
}

/// Applies all steps to a fragment, of which is said how it begins, as the caller's text does.
pub(super) fn apply<'a>(
    steps: &[PreTokenizer],
    text: Cow<'a, str>,
    beginning: Beginning,
    watch: &EncodeDeadline,
) -> Result<Pieces<'a>, TokenizerError> {
    let whole = 0..text.len();
    let mut pieces = Pieces { ranges: if text.is_empty() { vec![] } else { vec![whole] }, text, beginning };
    for step in steps {
        match step {
            PreTokenizer::Split { pattern, behavior, invert } => {
                split(&mut pieces, pattern, *behavior, *invert, watch)?
            }
            PreTokenizer::SpacePrefix => rebuild(&mut pieces, |piece, _, out| {
                if !piece.starts_with(' ') {
                    out.push(' ');
                }
                out.push_str(piece);
            }),
            PreTokenizer::Metaspace { mark, prepend, cut } => {
                metaspace(&mut pieces, *mark, *prepend);
                if *cut {
                    split(&mut pieces, &Pattern::Char(*mark), Behavior::MergedWithNext, false, watch)?;
                }
            }
            PreTokenizer::Bert => words(&mut pieces),
            PreTokenizer::Scripts(scripts) => narrow(&mut pieces, |piece, cut| scripts.cut(piece, cut)),
            PreTokenizer::Length(length) => narrow(&mut pieces, |piece, cut| {
                piece.char_indices().step_by(*length).for_each(|(at, _)| cut(at));
            }),
            PreTokenizer::Bytes => {
                let inserted = pieces.beginning.inserted;
                rebuild(&mut pieces, |piece, offset, out| {
                    out.extend(piece.bytes().map(byte_char));
                    // The reference library finds nothing that this replaces, and so keeps both.
                    if offset + piece.len() <= inserted {
                        out.push_str(piece);
                    }
                });
            }
        }
    }
    Ok(pieces)
}

fn split(
    pieces: &mut Pieces<'_>,
    pattern: &Pattern,
    behavior: Behavior,
    invert: bool,
    watch: &EncodeDeadline,
) -> Result<(), TokenizerError> {
    let mut out = Vec::with_capacity(pieces.ranges.len());
    let mut parts: Vec<(Range<usize>, bool)> = Vec::new();
    for range in &pieces.ranges {
        parts.clear();
        let (base, piece) = (range.start, &pieces.text[range.clone()]);
        let mut done = 0;
        pattern.each(piece, watch, |found| {
            if found.start > done {
                parts.push((done..found.start, invert));
            }
            done = found.end;
            parts.push((found, !invert));
        })?;
        if done < piece.len() {
            parts.push((done..piece.len(), invert));
        }
        arrange(&parts, behavior, |r| {
            if !r.is_empty() {
                out.push(base + r.start..base + r.end);
            }
        });
    }
    pieces.ranges = out;
    Ok(())
}

fn arrange(parts: &[(Range<usize>, bool)], behavior: Behavior, mut emit: impl FnMut(Range<usize>)) {
    let mut open: Option<(Range<usize>, bool)> = None;
    for (range, is_match) in parts.iter().cloned() {
        let joins = match (&open, behavior) {
            (None, _) | (_, Behavior::Isolated | Behavior::Removed) => false,
            (Some((_, before)), Behavior::MergedWithPrevious) => is_match && !before,
            (Some((_, before)), Behavior::MergedWithNext) => *before && !is_match,
            (Some((_, before)), Behavior::Contiguous) => *before == is_match,
        };
        match &mut open {
            Some((current, before)) if joins => {
                current.end = range.end;
                *before = is_match;
            }
            _ => {
                let keep = open.replace((range, is_match));
                flush(keep, behavior, &mut emit);
            }
        }
    }
    flush(open, behavior, &mut emit);
}

fn flush(part: Option<(Range<usize>, bool)>, behavior: Behavior, emit: &mut impl FnMut(Range<usize>)) {
    match part {
        Some((range, is_match)) if !(is_match && behavior == Behavior::Removed) => emit(range),
        _ => {}
    }
}

/// Cuts every piece at the places that `find` names, in order. What is in front of the first place disappears.
fn narrow(pieces: &mut Pieces<'_>, find: impl Fn(&str, &mut dyn FnMut(usize))) {
    let mut out = Vec::with_capacity(pieces.ranges.len());
    for range in &pieces.ranges {
        let mut open: Option<usize> = None;
        find(&pieces.text[range.clone()], &mut |at| {
            let at = range.start + at;
            out.extend(open.replace(at).filter(|&start| start < at).map(|start| start..at));
        });
        out.extend(open.map(|start| start..range.end));
    }
    pieces.ranges = out;
}

fn words(pieces: &mut Pieces<'_>) {
    let mut out = Vec::with_capacity(pieces.text.len() / 4);
    for range in &pieces.ranges {
        let mut start = range.start;
        for (at, c) in pieces.text[range.clone()].char_indices() {
            let at = range.start + at;
            let alone = bert::is_punctuation(c);
            if !alone && !c.is_whitespace() {
                continue;
            }
            if start < at {
                out.push(start..at);
            }
            start = at + c.len_utf8();
            if alone {
                out.push(at..start);
            }
        }
        if start < range.end {
            out.push(start..range.end);
        }
    }
    pieces.ranges = out;
}

fn rebuild(pieces: &mut Pieces<'_>, write: impl Fn(&str, usize, &mut String)) {
    let mut text = String::with_capacity(pieces.text.len() + pieces.ranges.len());
    let before = std::mem::take(&mut pieces.beginning);
    for range in &mut pieces.ranges {
        let start = text.len();
        write(&pieces.text[range.clone()], range.start, &mut text);
        if range.start < before.first.max(before.inserted) {
            pieces.beginning = before.map(|bytes| {
                if bytes == 0 {
                    return 0;
                }
                let mut front = String::new();
                let bytes = bytes.clamp(range.start, range.end);
                if bytes > range.start {
                    write(&pieces.text[range.start..bytes], range.start, &mut front);
                }
                start + front.len()
            });
        }
        *range = start..text.len();
    }
    pieces.text = Cow::Owned(text);
}

fn metaspace(pieces: &mut Pieces<'_>, mark: char, prepend: Prepend) {
    let first = pieces.beginning.first;
    rebuild(pieces, |piece, offset, out| {
        let wanted = match prepend {
            Prepend::Never => false,
            Prepend::Always => true,
            Prepend::First => offset < first,
        };
        if wanted && !piece.starts_with([' ', mark]) {
            out.push(mark);
        }
        out.extend(piece.chars().map(|c| if c == ' ' { mark } else { c }));
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    const START: Beginning = Beginning { first: 1, inserted: 0 };

    fn cut(behavior: Behavior, invert: bool, text: &str) -> Vec<String> {
        let steps = [PreTokenizer::Split { pattern: Pattern::Literal("-".into()), behavior, invert }];
        let pieces = apply(&steps, Cow::Borrowed(text), START, &EncodeDeadline::new(64)).unwrap();
        pieces.ranges.iter().map(|r| pieces.text[r.clone()].to_owned()).collect()
    }

    #[test]
    fn behaviours_agree_with_the_published_example() {
        let text = "the-final--countdown";
        assert_eq!(cut(Behavior::Removed, false, text), ["the", "final", "countdown"]);
        assert_eq!(cut(Behavior::Isolated, false, text), ["the", "-", "final", "-", "-", "countdown"]);
        assert_eq!(cut(Behavior::MergedWithPrevious, false, text), ["the-", "final-", "-", "countdown"]);
        assert_eq!(cut(Behavior::MergedWithNext, false, text), ["the", "-final", "-", "-countdown"]);
        assert_eq!(cut(Behavior::Contiguous, false, text), ["the", "-", "final", "--", "countdown"]);
        assert_eq!(cut(Behavior::Removed, true, text), ["-", "-", "-"]);
    }

    #[test]
    fn punctuation_is_cut_off_words() {
        let pieces =
            apply(&[PreTokenizer::Bert], Cow::Borrowed(" don't (stop)\u{3000}ab。c "), START, &EncodeDeadline::new(64))
                .unwrap();
        let words: Vec<_> = pieces.ranges.iter().map(|r| &pieces.text[r.clone()]).collect();
        assert_eq!(words, ["don", "'", "t", "(", "stop", ")", "ab", "。", "c"]);
    }

    #[test]
    fn metaspace_marks_words() {
        let steps = [PreTokenizer::Metaspace { mark: '▁', prepend: Prepend::First, cut: true }];
        let pieces = apply(&steps, Cow::Borrowed("Hey my  friend"), START, &EncodeDeadline::new(64)).unwrap();
        let words: Vec<_> = pieces.ranges.iter().map(|r| &pieces.text[r.clone()]).collect();
        assert_eq!(words, ["▁Hey", "▁my", "▁", "▁friend"]);
        assert_eq!(
            apply(&steps, Cow::Borrowed("Hey"), Beginning::default(), &EncodeDeadline::new(64)).unwrap().text,
            "Hey"
        );
    }

    #[test]
    fn bytes_of_what_replaced_nothing_stand_beside_it() {
        let steps = [
            PreTokenizer::Split { pattern: Pattern::Char('-'), behavior: Behavior::Isolated, invert: false },
            PreTokenizer::Bytes,
        ];
        let words = |inserted| {
            let beginning = Beginning { first: 1, inserted };
            let pieces = apply(&steps, Cow::Borrowed("-ä-"), beginning, &EncodeDeadline::new(64)).unwrap();
            pieces.ranges.iter().map(|r| pieces.text[r.clone()].to_owned()).collect::<Vec<_>>()
        };
        assert_eq!(words(0), ["-", "Ã¤", "-"]);
        assert_eq!(words(1), ["--", "Ã¤", "-"]);
    }
}
