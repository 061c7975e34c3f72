//! Normalisers: rewrites of the text before it is cut into words.

use std::borrow::Cow;
use std::ops::Range;

use unicode_normalization::{IsNormalized, UnicodeNormalization as _, is_nfc_quick, is_nfkc_quick};

use super::bert;
use super::bytes::byte_char;
use super::charsmap::Charsmap;
use super::deadline::EncodeDeadline;
use super::error::TokenizerError;
use super::limits;
use super::pattern::Pattern;

/// One rewrite.
#[derive(Debug)]
pub(super) enum Normalizer {
    /// Canonical composition.
    Nfc,
    /// Canonical decomposition.
    Nfd,
    /// Compatibility composition.
    Nfkc,
    /// Compatibility decomposition.
    Nfkd,
    /// Unicode lower case.
    Lowercase,
    /// Cut white space off the left and right end.
    Strip { left: bool, right: bool },
    /// Put text in front of a non-empty text.
    Prepend(String),
    /// Replace every match.
    Replace(Pattern, String),
    /// Drop control characters and make all white space plain.
    Clean,
    /// Put spaces around ideographs.
    SpaceIdeographs,
    /// Drop the accents of a decomposed text.
    StripMarks,
    /// Drop all combining marks, which these are.
    StripAccents(regex::Regex),
    /// Drop control characters and make some characters plain spaces, as SentencePiece's rules for translation do.
    Translation,
    /// Replace by the table of a SentencePiece model.
    Charsmap(Charsmap),
    /// Write each byte as its character of the GPT-2 alphabet.
    Bytes,
}

/// How many bytes of a text stand for the first character of the caller's, and how many of these for nothing of it, since a
/// replacement put them in front.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Beginning {
    pub(super) first: usize,
    pub(super) inserted: usize,
}

impl Beginning {
    /// What becomes of it where all texts from the beginning on become so long.
    pub(super) fn map(self, length: impl Fn(usize) -> usize) -> Beginning {
        Beginning { first: length(self.first), inserted: length(self.inserted) }
    }
}

/// Applies the rewrites in order.
pub(super) fn apply<'a>(
    steps: &[Normalizer],
    mut text: Cow<'a, str>,
    watch: &EncodeDeadline,
) -> Result<(Cow<'a, str>, Beginning), TokenizerError> {
    let mut beginning = Beginning { first: text.chars().next().map_or(0, char::len_utf8), inserted: 0 };
    let (times, more) = limits::MAX_GROWTH;
    let longest = text.len().saturating_mul(times).saturating_add(more);
    for step in steps {
        (text, beginning) = match step {
            Normalizer::Replace(pattern, content) => replace(pattern, content, (text, beginning), longest, watch)?,
            _ => {
                let alone = beginning.map(|bytes| rewritten(step, &text[..bytes], longest));
                let text = one(step, text, longest);
                // Characters that were two may be one now.
                let whole = |at: usize| (at..text.len()).find(|at| text.is_char_boundary(*at)).unwrap_or(text.len());
                let beginning = alone.map(whole);
                (text, beginning)
            }
        };
        check_length(text.len(), longest)?;
    }
    Ok((text, beginning))
}

/// How long a part in front becomes.
fn rewritten(step: &Normalizer, front: &str, longest: usize) -> usize {
    match step {
        Normalizer::Strip { left: false, .. } => front.len(),
        Normalizer::Strip { left: true, .. } => front.trim_start().len(),
        _ => one(step, Cow::Borrowed(front), longest).len(),
    }
}

/// Whether some rewrite may replace nothing by something.
pub(super) fn may_insert(steps: &[Normalizer]) -> bool {
    steps.iter().any(|step| matches!(step, Normalizer::Replace(pattern, _) if pattern.may_be_empty()))
}

/// Replacements that make matches of each other can make any text huge.
fn check_length(bytes: usize, limit: usize) -> Result<(), TokenizerError> {
    if bytes > limit { Err(TokenizerError::TextTooLong { bytes, limit }) } else { Ok(()) }
}

/// One rewrite, other than replacements.
fn one<'a>(step: &Normalizer, text: Cow<'a, str>, longest: usize) -> Cow<'a, str> {
    match step {
        Normalizer::Nfc if is_nfc_quick(text.chars()) == IsNormalized::Yes => text,
        Normalizer::Nfc => Cow::Owned(text.nfc().collect()),
        Normalizer::Nfd | Normalizer::SpaceIdeographs | Normalizer::StripMarks if text.is_ascii() => text,
        Normalizer::Nfd => Cow::Owned(text.nfd().collect()),
        Normalizer::Nfkc if is_nfkc_quick(text.chars()) == IsNormalized::Yes => text,
        Normalizer::Nfkc => Cow::Owned(text.nfkc().collect()),
        Normalizer::Nfkd => Cow::Owned(text.nfkd().collect()),
        // Character by character: a final sigma does not depend on its neighbours here.
        Normalizer::Lowercase => Cow::Owned(text.chars().flat_map(char::to_lowercase).collect()),
        Normalizer::Strip { left, right } => {
            let mut kept = text.as_ref();
            kept = if *left { kept.trim_start() } else { kept };
            kept = if *right { kept.trim_end() } else { kept };
            if kept.len() == text.len() { text } else { Cow::Owned(kept.to_owned()) }
        }
        Normalizer::Prepend(_) if text.is_empty() => text,
        Normalizer::Prepend(prefix) => Cow::Owned(format!("{prefix}{text}")),
        Normalizer::Replace(..) => text,
        Normalizer::Clean => Cow::Owned(bert::clean(&text)),
        Normalizer::SpaceIdeographs => Cow::Owned(bert::space_ideographs(&text)),
        Normalizer::StripMarks => Cow::Owned(bert::strip_marks(&text)),
        Normalizer::StripAccents(_) if text.is_ascii() => text,
        Normalizer::StripAccents(marks) => Cow::Owned(marks.replace_all(&text, "").into_owned()),
        Normalizer::Translation => Cow::Owned(text.chars().filter_map(for_translation).collect()),
        Normalizer::Charsmap(table) => Cow::Owned(table.apply(&text, longest)),
        Normalizer::Bytes => Cow::Owned(text.bytes().map(byte_char).collect()),
    }
}

/// What becomes of a character by the rules `nmt_nfkc` of SentencePiece, apart from NFKC.
fn for_translation(c: char) -> Option<char> {
    match c {
        '\u{1}'..='\u{8}' | '\u{b}' | '\u{e}'..='\u{1f}' | '\u{7f}' | '\u{8f}' | '\u{9f}' => None,
        '\t' | '\n' | '\u{c}' | '\r' | '\u{1680}' | '\u{200b}'..='\u{200f}' => Some(' '),
        '\u{2028}' | '\u{2029}' | '\u{2581}' | '\u{feff}' | '\u{fffd}' => Some(' '),
        other => Some(other),
    }
}

/// A part in front of a text while matches are replaced.
#[derive(Clone, Copy)]
struct Front {
    /// Its length, and that of what it has become so far.
    from: usize,
    to: usize,
    /// Where the match before ended; none behind the part.
    done: Option<usize>,
}

impl Front {
    fn of(from: usize) -> Front {
        Front { from, to: 0, done: Some(0) }
    }

    /// Takes a match into account, after which there are `written` bytes.
    fn replaced(&mut self, found: &Range<usize>, written: usize) {
        let Some(done) = self.done else { return };
        // What replaces the end of the part, or the nothing behind it, belongs to it.
        if found.end <= self.from {
            (self.to, self.done) = (written, Some(found.end));
        } else {
            self.to += found.start.min(self.from) - done;
            self.done = None;
        }
    }

    fn len(self) -> usize {
        self.to + self.done.map_or(0, |done| self.from - done)
    }
}

fn replace<'a>(
    pattern: &Pattern,
    content: &str,
    (text, beginning): (Cow<'a, str>, Beginning),
    longest: usize,
    watch: &EncodeDeadline,
) -> Result<(Cow<'a, str>, Beginning), TokenizerError> {
    let mut out = String::new();
    let mut done = 0;
    let mut wanted = 0;
    let mut any = false;
    let (mut first, mut inserted) = (Front::of(beginning.first), Front::of(beginning.inserted));
    pattern.each(&text, watch, |found| {
        any = true;
        wanted = wanted.max(out.len()) + (found.start - done) + content.len();
        if wanted > longest {
            return;
        }
        out.push_str(&text[done..found.start]);
        out.push_str(content);
        done = found.end;
        first.replaced(&found, out.len());
        inserted.replaced(&found, out.len());
    })?;
    check_length(wanted, longest)?;
    if !any {
        return Ok((text, beginning));
    }
    out.push_str(&text[done..]);
    Ok((Cow::Owned(out), Beginning { first: first.len(), inserted: inserted.len() }))
}
