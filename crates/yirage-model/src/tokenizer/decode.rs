//! From ids back to text: the bytes of one token, whole sequences, and streams that never split a character.
//!
//! Two manners exist because the two file formats mean different things. `tokenizer.json`: the chain of rewrites that
//! the file names, as the reference library goes through it. GGUF: the bytes of the tokens are joined, then made text;
//! only bytes that are no UTF-8 even in the end become U+FFFD.

use std::borrow::Cow;

use super::Tokenizer;
use super::bytes;
use super::decode_chain::{ChainState, DecoderChain};

/// How a token of a GGUF file becomes bytes. Special and added tokens are written as they are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Spelling {
    /// GPT-2 alphabet.
    ByteLevel,
    /// `▁` is a space, and tokens that name a byte are that byte.
    Spm,
}

/// How a sequence of tokens becomes text.
#[derive(Debug)]
pub(super) enum TokenDecoder {
    /// As `tokenizer.json` says.
    Chain(DecoderChain),
    /// As runtimes of GGUF do.
    Joined {
        /// How a token becomes bytes.
        spelling: Spelling,
        /// What is taken off the front of the whole text: up to so many of this character.
        strip_start: Option<(char, usize)>,
    },
}

impl Tokenizer {
    /// The bytes token `id` contributes to a text, before any rule about the start of the text; `None` for an id the
    /// vocabulary lacks. Not always UTF-8: a character may be spread over several tokens.
    pub fn token_bytes(&self, id: u32) -> Option<Cow<'_, [u8]>> {
        let text = self.spelled(id)?;
        let plain = Cow::Borrowed(text.as_bytes());
        Some(match &self.decoder {
            TokenDecoder::Chain(chain) => Cow::Owned(chain.bytes_of(text)),
            TokenDecoder::Joined { .. } if self.is_added(id) => plain,
            TokenDecoder::Joined { spelling: Spelling::ByteLevel, .. } => bytes::decode(text).map_or(plain, Cow::Owned),
            TokenDecoder::Joined { spelling: Spelling::Spm, .. } => match bytes::fallback_byte(text) {
                Some(byte) => Cow::Owned(vec![byte]),
                None if text.contains('▁') => Cow::Owned(text.replace('▁', " ").into_bytes()),
                None => plain,
            },
        })
    }

    /// The text of a token as decoding begins with it: an added token that is searched for in normalised text is
    /// written so, as in the reference library.
    fn spelled(&self, id: u32) -> Option<&str> {
        self.respelled.get(&id).map(String::as_str).or_else(|| self.tokens.text(id))
    }

    /// Whether decoding without special tokens leaves `id` out. What counts is its text: of two ids with the text of a
    /// special token both are, and one that decoding writes otherwise is not.
    fn reads_as_special(&self, id: u32) -> bool {
        if self.tokens.is_answer(id) {
            return self.is_special(id) && !self.respelled.contains_key(&id);
        }
        let named = self.tokens.text(id).and_then(|text| self.tokens.get(text.as_bytes()));
        named.is_some_and(|id| self.is_special(id))
    }

    /// The text of a whole sequence: as [`Tokenizer::detokenizer`] at the start of a text, in one call.
    /// Ids the vocabulary lacks contribute nothing. `skip_special` leaves special tokens out.
    pub fn decode(&self, ids: &[u32], skip_special: bool) -> String {
        decode_with(self.detokenizer(skip_special), ids)
    }

    /// The text of a sequence that continues other text: a leading space stays.
    pub fn decode_continuation(&self, ids: &[u32], skip_special: bool) -> String {
        decode_with(self.continuation(skip_special), ids)
    }

    /// A stream from tokens to text that begins a text: the space that encoding puts in front is taken off.
    pub fn detokenizer(&self, skip_special: bool) -> Detokenizer<'_> {
        self.stream(skip_special, false)
    }

    /// A stream from tokens to text that continues other text (a model's answer after its prompt): nothing is taken
    /// off the front.
    pub fn continuation(&self, skip_special: bool) -> Detokenizer<'_> {
        self.stream(skip_special, true)
    }

    fn stream(&self, skip_special: bool, within: bool) -> Detokenizer<'_> {
        let progress = match &self.decoder {
            TokenDecoder::Chain(chain) => DecodeProgress::Chain(chain, chain.begin(within)),
            TokenDecoder::Joined { strip_start, .. } => {
                DecodeProgress::Joined { strip: strip_start.filter(|_| !within), pending: Vec::new() }
            }
        };
        Detokenizer { tokenizer: self, skip_special, progress }
    }
}

fn decode_with(mut stream: Detokenizer<'_>, ids: &[u32]) -> String {
    let mut text: String = ids.iter().map(|&id| stream.push(id)).collect();
    text.push_str(&stream.finish());
    text
}

/// Turns a stream of ids into text that is whole characters at every moment.
///
/// All text given out, ended by [`Detokenizer::finish`], equals what [`Tokenizer::decode`] gives for the same ids.
#[derive(Debug, Clone)]
pub struct Detokenizer<'t> {
    tokenizer: &'t Tokenizer,
    skip_special: bool,
    progress: DecodeProgress<'t>,
}

#[derive(Debug, Clone)]
enum DecodeProgress<'t> {
    Chain(&'t DecoderChain, ChainState),
    Joined { strip: Option<(char, usize)>, pending: Vec<u8> },
}

impl Detokenizer<'_> {
    /// Takes one token and gives the text that is certain by now, often empty.
    pub fn push(&mut self, id: u32) -> String {
        let t = self.tokenizer;
        if self.skip_special && t.reads_as_special(id) {
            return String::new();
        }
        match &mut self.progress {
            DecodeProgress::Chain(chain, state) => {
                let mut out = String::new();
                if let Some(text) = t.spelled(id) {
                    chain.push(state, text, &mut out);
                }
                out
            }
            DecodeProgress::Joined { strip, pending } => {
                let Some(bytes) = t.token_bytes(id) else { return String::new() };
                pending.extend_from_slice(&bytes);
                without_prefix(strip, bytes::take_characters(pending))
            }
        }
    }

    /// Ends the stream: what is left, with U+FFFD for bytes that never became a character.
    pub fn finish(mut self) -> String {
        match &mut self.progress {
            DecodeProgress::Chain(chain, state) => {
                let mut out = String::new();
                chain.finish(state, &mut out);
                out
            }
            DecodeProgress::Joined { strip, pending } => {
                without_prefix(strip, String::from_utf8_lossy(pending).into_owned())
            }
        }
    }
}

fn without_prefix(strip: &mut Option<(char, usize)>, text: String) -> String {
    let Some((c, left)) = *strip else { return text };
    let taken = text.chars().take(left).take_while(|&x| x == c).count();
    let rest = text[taken * c.len_utf8()..].to_owned();
    *strip = if rest.is_empty() && taken < left { Some((c, left - taken)) } else { None };
    rest
}
