//! Normalisers: rewrites of the text before it is cut into words.

use std::borrow::Cow;

use unicode_normalization::char::is_combining_mark;
use unicode_normalization::{IsNormalized, UnicodeNormalization as _, is_nfc_quick, is_nfkc_quick};

use super::bert;
use super::bytes::byte_char;
use super::charsmap::Charsmap;
use super::error::TokenizerError;
use super::limits;
use super::pattern::Pattern;
use super::watch::Watch;

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
    /// Drop all combining marks.
    StripAccents,
    /// Drop control characters and make some characters plain spaces, as SentencePiece's rules for translation do.
    Translation,
    /// Replace by the table of a SentencePiece model.
    Charsmap(Charsmap),
    /// Write each byte as its character of the GPT-2 alphabet.
    Bytes,
}

/// How a text begins, as the one does that it was made from.
#[derive(Clone, Copy, Debug)]
pub(super) struct Beginning {
    /// At the same character.
    pub(super) same: bool,
    /// Behind so many bytes that replacements of nothing put there.
    pub(super) inserted: usize,
}

/// Applies the rewrites in order. The text does not begin as it did where its first character went.
pub(super) fn apply<'a>(
    steps: &[Normalizer],
    mut text: Cow<'a, str>,
    watch: &Watch,
) -> Result<(Cow<'a, str>, Beginning), TokenizerError> {
    let (mut same, mut inserted) = (true, 0);
    let (times, more) = limits::MAX_GROWTH;
    let longest = text.len().saturating_mul(times).saturating_add(more);
    for step in steps {
        same &= !text.chars().next().is_some_and(|first| drops(step, first));
        (text, inserted) = match step {
            Normalizer::Replace(pattern, content) => replace(pattern, content, (text, inserted), longest, watch)?,
            Normalizer::Prepend(prefix) if inserted > 0 => (one(step, text, longest), inserted + prefix.len()),
            _ if inserted == 0 => (one(step, text, longest), 0),
            // The reference library has no answer where what was inserted is rewritten.
            _ => {
                let rewritten = one(step, text.clone(), longest);
                let kept = if rewritten == text { inserted } else { 0 };
                (rewritten, kept)
            }
        };
        check_length(text.len(), longest)?;
    }
    Ok((text, Beginning { same, inserted }))
}

/// Whether some rewrite may replace nothing by something.
pub(super) fn may_insert(steps: &[Normalizer]) -> bool {
    steps.iter().any(|step| matches!(step, Normalizer::Replace(pattern, _) if pattern.may_be_empty()))
}

/// Whether a rewrite takes away a character that stands in front.
fn drops(step: &Normalizer, c: char) -> bool {
    match step {
        Normalizer::Strip { left, .. } => *left && c.is_whitespace(),
        Normalizer::Clean => bert::is_unwanted(c),
        Normalizer::StripMarks => bert::is_mark(c),
        Normalizer::StripAccents => is_combining_mark(c),
        Normalizer::Translation => for_translation(c).is_none(),
        _ => false,
    }
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
        Normalizer::StripAccents if text.is_ascii() => text,
        Normalizer::StripAccents => Cow::Owned(text.chars().filter(|&c| !is_combining_mark(c)).collect()),
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

/// Replaces all matches in a text of which so many bytes were inserted in front.
fn replace<'a>(
    pattern: &Pattern,
    content: &str,
    (text, inserted): (Cow<'a, str>, usize),
    longest: usize,
    watch: &Watch,
) -> Result<(Cow<'a, str>, usize), TokenizerError> {
    let mut out = String::new();
    let mut done = 0;
    let mut wanted = 0;
    let mut any = false;
    // What replaces a part of the inserted text, or the nothing behind it, is inserted too.
    let (mut front, mut behind, mut within) = (0, 0, true);
    pattern.each(&text, watch, |found| {
        any = true;
        wanted = wanted.max(out.len()) + (found.start - done) + content.len();
        if wanted > longest {
            return;
        }
        out.push_str(&text[done..found.start]);
        out.push_str(content);
        done = found.end;
        if found.end <= inserted {
            (front, behind) = (out.len(), found.end);
        } else if std::mem::take(&mut within) {
            front += found.start.min(inserted) - behind;
        }
    })?;
    check_length(wanted, longest)?;
    if within {
        front += inserted - behind;
    }
    if !any {
        return Ok((text, inserted));
    }
    out.push_str(&text[done..]);
    Ok((Cow::Owned(out), front))
}
