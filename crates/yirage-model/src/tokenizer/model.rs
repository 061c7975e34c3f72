//! The models of how a word becomes tokens: BPE by ranked pairs, SentencePiece-BPE by token scores, WordPiece.

use std::collections::HashMap;

use super::bytes;
use super::error::TokenizerError;
use super::limits;
use super::merge::Merger;
use super::vocab::TokenTable;
use super::watch::Watch;
use super::wordpiece::WordPiece;

/// Mark of a symbol that is no token (yet).
const NO_TOKEN: u32 = u32::MAX;

type PairMap = HashMap<(u32, u32), (u32, u32), foldhash::fast::RandomState>;

/// Ranked merge rules: (left, right) to (rank, joined).
#[derive(Default)]
pub(super) struct Merges {
    pairs: PairMap,
    rank: u32,
    previous: u32,
}

impl std::fmt::Debug for Merges {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Merges").field("rules", &self.pairs.len()).finish()
    }
}

impl Merges {
    pub(super) fn with_capacity(rules: usize) -> Self {
        let pairs = PairMap::with_capacity_and_hasher(rules.min(limits::MAX_MERGES), Default::default());
        Self { pairs, rank: 0, previous: 0 }
    }

    /// Adds the next rule by rank. `Err(text)` names the part the vocabulary lacks. The first rank of a pair counts.
    pub(super) fn push<'a>(&mut self, vocab: &TokenTable, left: &'a str, right: &'a str) -> Result<(), String> {
        let rank = self.rank;
        self.rank += 1;
        let l = vocab.get(left.as_bytes()).ok_or_else(|| left.to_owned())?;
        let r = vocab.get(right.as_bytes()).ok_or_else(|| right.to_owned())?;
        // Rules are mostly written in the order of the tokens they make, so the last answer or the one after it is
        // tried before the table.
        let is_join =
            |id: u32| vocab.text(id).is_some_and(|t| t.strip_prefix(left) == Some(right)) && vocab.is_answer(id);
        let joined = [self.previous, self.previous + 1].into_iter().find(|&id| is_join(id));
        let joined = match joined {
            Some(id) => id,
            None => {
                let text = [left, right].concat();
                vocab.get(text.as_bytes()).ok_or(text)?
            }
        };
        self.previous = joined;
        self.pairs.entry((l, r)).or_insert((rank, joined));
        Ok(())
    }

    pub(super) fn len(&self) -> usize {
        self.rank as usize
    }
}

/// What the first symbols of a word are.
#[derive(Debug)]
pub(super) enum Alphabet {
    /// One symbol per byte, by the token of that byte in the GPT-2 alphabet.
    Bytes(Box<[u32; 256]>),
    /// One symbol per character.
    Chars(Fallback),
}

/// What stands in for a character that is no token.
#[derive(Debug, Default)]
pub(super) struct Fallback {
    /// Tokens of the 256 bytes.
    pub(super) bytes: Option<Box<[u32; 256]>>,
    pub(super) unk: Option<u32>,
    /// Neighbouring unknown characters become one unknown token.
    pub(super) fuse_unk: bool,
}

/// The model of a tokenizer.
#[derive(Debug)]
pub(super) enum Model {
    /// Byte-pair encoding.
    Bpe {
        merges: Merges,
        alphabet: Alphabet,
        /// A word that is a token is taken whole.
        ignore_merges: bool,
    },
    /// SentencePiece-BPE: neighbours join when their text is a token; the best score joins first.
    Spm {
        /// Order of joining by token id: smaller is earlier.
        priorities: Vec<u32>,
        fallback: Fallback,
    },
    /// The longest token each time.
    WordPiece(WordPiece),
}

/// Buffers reused from word to word.
#[derive(Default, Debug)]
pub(super) struct Scratch {
    merger: Merger,
    text: String,
}

impl Model {
    /// Appends the tokens of `word`.
    pub(super) fn encode(
        &self,
        vocab: &TokenTable,
        word: &str,
        scratch: &mut Scratch,
        watch: &Watch,
        out: &mut Vec<u32>,
    ) -> Result<(), TokenizerError> {
        scratch.merger.clear();
        match self {
            Self::WordPiece(model) => model.encode(vocab, word, &mut scratch.text, watch, out),
            Self::Bpe { merges, alphabet, ignore_merges } => {
                if *ignore_merges && let Some(id) = whole_word(vocab, alphabet, word, &mut scratch.text) {
                    out.push(id);
                    return Ok(());
                }
                match alphabet {
                    Alphabet::Bytes(ids) => push_bytes(ids, word, &mut scratch.merger),
                    Alphabet::Chars(fallback) => push_chars(vocab, fallback, word, &mut scratch.merger),
                }
                let rule =
                    |l: &super::merge::Symbol, r: &super::merge::Symbol| merges.pairs.get(&(l.id, r.id)).copied();
                scratch.merger.run(&rule, |symbol| out.push(symbol.id));
                Ok(())
            }
            Self::Spm { priorities, fallback } => {
                for c in word.chars() {
                    scratch.merger.push(NO_TOKEN, c.len_utf8() as u32);
                }
                let text = word.as_bytes();
                let rule = |l: &super::merge::Symbol, r: &super::merge::Symbol| {
                    let id = vocab.get(&text[l.start as usize..(r.start + r.len) as usize])?;
                    priorities.get(id as usize).map(|&p| (p, id))
                };
                let mut fault = Ok(());
                scratch.merger.run(&rule, |symbol| {
                    let part = &word[symbol.start as usize..(symbol.start + symbol.len) as usize];
                    let known = if symbol.id == NO_TOKEN { vocab.get(part.as_bytes()) } else { Some(symbol.id) };
                    match (known, &fallback.bytes, fallback.unk) {
                        (Some(id), _, _) => out.push(id),
                        (None, Some(ids), _) => out.extend(part.bytes().map(|b| ids[b as usize])),
                        (None, None, Some(unk)) => out.push(unk),
                        (None, None, None) => {
                            let character = part.chars().next().unwrap_or_default();
                            fault = Err(TokenizerError::Unrepresentable { character, offset: symbol.start as usize });
                        }
                    }
                });
                fault
            }
        }
    }
}

fn whole_word(vocab: &TokenTable, alphabet: &Alphabet, word: &str, scratch: &mut String) -> Option<u32> {
    match alphabet {
        Alphabet::Chars(_) => vocab.get(word.as_bytes()),
        Alphabet::Bytes(_) => {
            scratch.clear();
            scratch.extend(word.bytes().map(bytes::byte_char));
            vocab.get(scratch.as_bytes())
        }
    }
}

/// A byte the vocabulary lacks is left out, as the reference implementations of this alphabet do.
fn push_bytes(ids: &[u32; 256], word: &str, merger: &mut Merger) {
    for byte in word.bytes() {
        if ids[byte as usize] != NO_TOKEN {
            merger.push(ids[byte as usize], 1);
        }
    }
}

fn push_chars(vocab: &TokenTable, fallback: &Fallback, word: &str, merger: &mut Merger) {
    let mut last_unknown = false;
    let mut utf8 = [0; 4];
    for c in word.chars() {
        let text = c.encode_utf8(&mut utf8);
        let len = text.len() as u32;
        if let Some(id) = vocab.get(text.as_bytes()) {
            merger.push(id, len);
            last_unknown = false;
        } else if let Some(ids) = &fallback.bytes {
            text.bytes().for_each(|b| merger.push(ids[b as usize], 1));
            last_unknown = false;
        } else if let Some(unk) = fallback.unk {
            match merger.last_mut() {
                Some(last) if last_unknown && fallback.fuse_unk => last.len += len,
                _ => merger.push(unk, len),
            }
            last_unknown = true;
        }
    }
}

/// The tokens of the 256 bytes in the GPT-2 alphabet, `NO_TOKEN` where the vocabulary lacks one.
pub(super) fn byte_alphabet(vocab: &TokenTable) -> Box<[u32; 256]> {
    let mut utf8 = [0; 4];
    let id = |byte: usize| vocab.get(bytes::byte_char(byte as u8).encode_utf8(&mut utf8).as_bytes());
    let mut ids = Box::new([NO_TOKEN; 256]);
    (0..256).map(id).zip(ids.iter_mut()).for_each(|(id, slot)| *slot = id.unwrap_or(NO_TOKEN));
    ids
}

/// The byte-fallback tokens `<0x00>` to `<0xFF>`; `None` unless all are there.
pub(super) fn byte_fallback(vocab: &TokenTable) -> Option<Box<[u32; 256]>> {
    let mut ids = Box::new([NO_TOKEN; 256]);
    for byte in 0..=255u8 {
        ids[byte as usize] = vocab.get(bytes::fallback_name(byte).as_bytes())?;
    }
    Some(ids)
}
