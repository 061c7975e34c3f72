//! From ids back to text: the bytes of one token, whole sequences, and streams that never split a character.
//!
//! All three share one rule: the bytes of the tokens are joined, then made text; only bytes that are no UTF-8 even in
//! the end become U+FFFD. Libraries that decode token by token print one U+FFFD per stray byte instead.

use std::borrow::Cow;

use super::Tokenizer;
use super::bytes;

/// Beginnings of words before which the reference library's clean-up takes the space away.
const CLINGING: [&str; 9] = [".", "?", "!", ",", "n't", "'m", "'s", "'ve", "'re"];

/// How a token's text becomes bytes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Spelling {
    /// GPT-2 alphabet; `raw_added`: added tokens are written as they are.
    ByteLevel { raw_added: bool },
    /// Plain text with replacements (such as `▁` to a space).
    Plain { replace: Vec<(String, String)>, byte_fallback: bool, raw_added: bool },
    /// A token without `prefix` begins a word; `cleanup`: no space stands before a sign that ends a clause.
    WordPiece { prefix: String, cleanup: bool },
}

/// How a sequence of tokens becomes text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Decoder {
    pub(super) spelling: Spelling,
    /// What is taken off the front of the whole text: up to so many of this character.
    pub(super) strip_start: Option<(char, usize)>,
    /// What stands between tokens (a file without a decoder joins by spaces).
    pub(super) joiner: &'static str,
}

impl Tokenizer {
    /// The bytes token `id` contributes to a text, before any rule about the start of the text; `None` for an id the
    /// vocabulary lacks. Not always UTF-8: a character may be spread over several tokens.
    pub fn token_bytes(&self, id: u32) -> Option<Cow<'_, [u8]>> {
        let text = self.tokens.text(id)?;
        let plain = Cow::Borrowed(text.as_bytes());
        let is_added = self.is_added(id);
        Some(match &self.decoder.spelling {
            Spelling::ByteLevel { raw_added } if *raw_added && is_added => plain,
            Spelling::ByteLevel { .. } => bytes::decode(text).map_or(plain, Cow::Owned),
            Spelling::Plain { raw_added, .. } if *raw_added && is_added => plain,
            Spelling::Plain { replace, byte_fallback, .. } => match bytes::fallback_byte(text) {
                Some(byte) if *byte_fallback => Cow::Owned(vec![byte]),
                _ => match replaced(text, replace) {
                    Cow::Borrowed(_) => plain,
                    Cow::Owned(text) => Cow::Owned(text.into_bytes()),
                },
            },
            Spelling::WordPiece { prefix, cleanup } => match text.strip_prefix(prefix.as_str()) {
                Some(rest) => Cow::Borrowed(rest.as_bytes()),
                None if *cleanup && CLINGING.iter().any(|sign| text.starts_with(sign)) => plain,
                None => Cow::Owned(format!(" {text}").into_bytes()),
            },
        })
    }

    /// The text of a whole sequence: as [`Tokenizer::detokenizer`] at the start of a text, in one call.
    /// Ids the vocabulary lacks contribute nothing. `skip_special` leaves special tokens out.
    pub fn decode(&self, ids: &[u32], skip_special: bool) -> String {
        self.decode_with(self.detokenizer(skip_special), ids)
    }

    /// The text of a sequence that continues other text: a leading space stays.
    pub fn decode_continuation(&self, ids: &[u32], skip_special: bool) -> String {
        self.decode_with(self.continuation(skip_special), ids)
    }

    fn decode_with(&self, mut stream: Detokenizer<'_>, ids: &[u32]) -> String {
        let mut text: String = ids.iter().map(|&id| stream.push(id)).collect();
        text.push_str(&stream.finish());
        text
    }

    /// A stream from tokens to text that begins a text: the space that encoding puts in front is taken off.
    pub fn detokenizer(&self, skip_special: bool) -> Detokenizer<'_> {
        Detokenizer { strip: self.decoder.strip_start, ..self.continuation(skip_special) }
    }

    /// A stream from tokens to text that continues other text (a model's answer after its prompt): nothing is taken
    /// off the front.
    pub fn continuation(&self, skip_special: bool) -> Detokenizer<'_> {
        Detokenizer { tokenizer: self, skip_special, strip: None, pending: Vec::new(), started: false }
    }
}

fn replaced<'a>(text: &'a str, rules: &[(String, String)]) -> Cow<'a, str> {
    rules.iter().fold(Cow::Borrowed(text), |text, (from, to)| {
        if text.contains(from.as_str()) { Cow::Owned(text.replace(from.as_str(), to)) } else { text }
    })
}

/// Turns a stream of ids into text that is whole characters at every moment.
///
/// All text given out, ended by [`Detokenizer::finish`], equals what [`Tokenizer::decode`] gives for the same ids.
#[derive(Debug, Clone)]
pub struct Detokenizer<'t> {
    tokenizer: &'t Tokenizer,
    skip_special: bool,
    strip: Option<(char, usize)>,
    pending: Vec<u8>,
    started: bool,
}

impl Detokenizer<'_> {
    /// Takes one token and gives the text that is certain by now, often empty.
    pub fn push(&mut self, id: u32) -> String {
        if self.skip_special && self.tokenizer.is_special(id) {
            return String::new();
        }
        let Some(bytes) = self.tokenizer.token_bytes(id) else { return String::new() };
        if self.started {
            self.pending.extend_from_slice(self.tokenizer.decoder.joiner.as_bytes());
        }
        self.started = true;
        self.pending.extend_from_slice(&bytes);
        let ready = self.take_ready();
        self.without_prefix(ready)
    }

    /// Ends the stream: what is left, with U+FFFD for bytes that never became a character.
    pub fn finish(mut self) -> String {
        let rest = String::from_utf8_lossy(&std::mem::take(&mut self.pending)).into_owned();
        self.without_prefix(rest)
    }

    /// Everything but a possibly incomplete character at the end.
    fn take_ready(&mut self) -> String {
        let mut ready = String::new();
        let mut used = 0;
        for chunk in self.pending.utf8_chunks() {
            ready.push_str(chunk.valid());
            used += chunk.valid().len();
            let rest = &self.pending[used..];
            let incomplete = std::str::from_utf8(rest).is_err_and(|e| e.valid_up_to() == 0 && e.error_len().is_none());
            if incomplete {
                break;
            }
            if !chunk.invalid().is_empty() {
                ready.push(char::REPLACEMENT_CHARACTER);
                used += chunk.invalid().len();
            }
        }
        self.pending.drain(..used);
        ready
    }

    fn without_prefix(&mut self, text: String) -> String {
        let Some((c, left)) = self.strip else { return text };
        let taken = text.chars().take(left).take_while(|&x| x == c).count();
        let rest = text[taken * c.len_utf8()..].to_owned();
        self.strip = if rest.is_empty() && taken < left { Some((c, left - taken)) } else { None };
        rest
    }
}
