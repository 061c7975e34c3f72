//! The models of how a word becomes tokens: BPE by ranked pairs, SentencePiece-BPE by token scores, WordPiece, Unigram,
//! words that are tokens as they are.

use std::collections::HashMap;
use std::collections::hash_map::Entry;

use super::bytes;
use super::deadline::EncodeDeadline;
use super::error::TokenizerError;
use super::limits;
use super::merge::Merger;
use super::unigram::Unigram;
use super::vocab::{NO_TOKEN, TokenTable};
use super::wordpiece::WordPiece;

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

/// Which rank a pair has that two rules are about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Twice {
    /// As runtimes of GGUF do.
    FirstCounts,
    /// As the reference library of `tokenizer.json` does.
    LastCounts,
}

impl Merges {
    pub(super) fn with_capacity(rules: usize) -> Self {
        let pairs = PairMap::with_capacity_and_hasher(rules.min(limits::MAX_MERGES), Default::default());
        Self { pairs, rank: 0, previous: 0 }
    }

    /// Adds the next rule by rank; what is joined is `left` and what `right` has behind its first `skip` bytes. `Err`
    /// names the part the vocabulary lacks.
    pub(super) fn push(
        &mut self,
        vocab: &TokenTable,
        (left, right, skip): (&str, &str, usize),
        twice: Twice,
    ) -> Result<(), String> {
        let rank = self.rank;
        self.rank += 1;
        let l = vocab.get(left.as_bytes()).ok_or_else(|| left.to_owned())?;
        let r = vocab.get(right.as_bytes()).ok_or_else(|| right.to_owned())?;
        let tail = right.get(skip..).ok_or_else(|| right.to_owned())?;
        // Rules are mostly written in the order of the tokens they make, so the last answer or the one after it is
        // tried before the table.
        let is_join =
            |id: u32| vocab.text(id).is_some_and(|t| t.strip_prefix(left) == Some(tail)) && vocab.is_answer(id);
        let joined = [self.previous, self.previous + 1].into_iter().find(|&id| is_join(id));
        let joined = match joined {
            Some(id) => id,
            None => {
                let text = [left, tail].concat();
                vocab.get(text.as_bytes()).ok_or(text)?
            }
        };
        self.previous = joined;
        match (self.pairs.entry((l, r)), twice) {
            (Entry::Occupied(mut known), Twice::LastCounts) => *known.get_mut() = (rank, joined),
            (Entry::Occupied(_), Twice::FirstCounts) => {}
            (Entry::Vacant(free), _) => drop(free.insert((rank, joined))),
        }
        Ok(())
    }

    pub(super) fn len(&self) -> usize {
        self.rank as usize
    }

    fn sorted(&self) -> Vec<((u32, u32), u32)> {
        let mut all: Vec<_> = self.pairs.iter().map(|(&pair, &(rank, joined))| (rank, pair, joined)).collect();
        all.sort_unstable();
        all.into_iter().map(|(_, pair, joined)| (pair, joined)).collect()
    }

    /// The pairs that are joined, best first.
    pub(super) fn in_order(&self) -> impl Iterator<Item = (u32, u32)> {
        self.sorted().into_iter().map(|(pair, _)| pair)
    }

    /// What they are joined to, best first.
    pub(super) fn joined_in_order(&self) -> impl Iterator<Item = u32> {
        self.sorted().into_iter().map(|(_, joined)| joined)
    }
}

/// What the first symbols of a word are.
#[derive(Debug)]
pub(super) enum Alphabet {
    /// One symbol per byte, by the token of that byte in the GPT-2 alphabet.
    Bytes(Box<[u32; 256]>),
    /// One symbol per character.
    Chars(Fallback, Affixes),
}

/// What stands in for a character that is no token.
#[derive(Debug, Default)]
pub(super) struct Fallback {
    /// Tokens of the bytes, `NO_TOKEN` where the vocabulary lacks one; a character becomes bytes only where it has all
    /// of its own.
    pub(super) bytes: Option<Box<[u32; 256]>>,
    pub(super) unknown: Unknown,
    /// Neighbouring unknown characters become one unknown token.
    pub(super) fuse_unk: bool,
}

impl Fallback {
    /// The tokens of the bytes of `text`, if there are all.
    fn bytes_of<'a>(&'a self, text: &'a str) -> Option<impl Iterator<Item = u32> + 'a> {
        let ids = self.bytes.as_deref().filter(|ids| text.bytes().all(|b| ids[b as usize] != NO_TOKEN))?;
        Some(text.bytes().map(|b| ids[b as usize]))
    }
}

/// What becomes of a character that has neither token nor bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Unknown {
    /// Nothing.
    #[default]
    Dropped,
    /// This token.
    Token(u32),
    /// The call fails, since the file names a token that it does not have.
    Refused,
}

/// What BPE puts around the characters of a word before it looks for them.
#[derive(Debug, Default)]
pub(super) struct Affixes {
    /// In front of all but the first.
    pub(super) prefix: String,
    /// Behind the last.
    pub(super) suffix: String,
}

/// The model of a tokenizer.
#[derive(Debug)]
pub(super) enum TokenizerModel {
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
    /// The tokens with the best sum of scores.
    Unigram(Unigram),
    /// A word is a token, or the unknown one.
    WordLevel { unk: Option<u32> },
}

/// Buffers reused from word to word.
#[derive(Default, Debug)]
pub(super) struct EncodeScratch {
    merger: Merger,
    text: String,
}

impl TokenizerModel {
    /// Appends the tokens of `word`.
    pub(super) fn encode(
        &self,
        vocab: &TokenTable,
        word: &str,
        scratch: &mut EncodeScratch,
        watch: &EncodeDeadline,
        out: &mut Vec<u32>,
    ) -> Result<(), TokenizerError> {
        scratch.merger.clear();
        match self {
            Self::WordPiece(model) => model.encode(vocab, word, &mut scratch.text, watch, out),
            Self::Unigram(model) => model.encode(vocab, word, watch, out),
            Self::WordLevel { unk } => {
                let id = vocab.own(word.as_bytes()).or(*unk).ok_or_else(|| unrepresentable(word, 0))?;
                out.push(id);
                Ok(())
            }
            Self::Bpe { merges, alphabet, ignore_merges } => {
                if *ignore_merges && let Some(id) = whole_word(vocab, alphabet, word, &mut scratch.text) {
                    out.push(id);
                    return Ok(());
                }
                match alphabet {
                    Alphabet::Bytes(ids) => push_bytes(ids, word, &mut scratch.merger),
                    Alphabet::Chars(fallback, affixes) => push_chars(vocab, fallback, affixes, word, scratch)?,
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
                    match (known, fallback.bytes_of(part), fallback.unknown) {
                        (Some(id), _, _) => out.push(id),
                        (None, Some(ids), _) => out.extend(ids),
                        (None, None, Unknown::Token(unk)) => out.push(unk),
                        (None, None, _) => fault = Err(unrepresentable(part, symbol.start as usize)),
                    }
                });
                fault
            }
        }
    }
}

fn whole_word(vocab: &TokenTable, alphabet: &Alphabet, word: &str, scratch: &mut String) -> Option<u32> {
    match alphabet {
        Alphabet::Chars(..) => vocab.own(word.as_bytes()),
        Alphabet::Bytes(_) => {
            scratch.clear();
            scratch.extend(word.bytes().map(bytes::byte_char));
            vocab.own(scratch.as_bytes())
        }
    }
}

fn unrepresentable(part: &str, offset: usize) -> TokenizerError {
    TokenizerError::Unrepresentable { character: part.chars().next().unwrap_or_default(), offset }
}

/// A byte the vocabulary lacks is left out, as the reference implementations of this alphabet do.
fn push_bytes(ids: &[u32; 256], word: &str, merger: &mut Merger) {
    for byte in word.bytes() {
        if ids[byte as usize] != NO_TOKEN {
            merger.push(ids[byte as usize], 1);
        }
    }
}

/// An unknown character waits, so that its neighbours can join it; bytes are no neighbours and do not end the wait, as
/// in the reference library.
fn push_chars(
    vocab: &TokenTable,
    fallback: &Fallback,
    affixes: &Affixes,
    word: &str,
    scratch: &mut EncodeScratch,
) -> Result<(), TokenizerError> {
    let EncodeScratch { merger, text } = scratch;
    let mut unknown: Option<(u32, u32)> = None;
    let give = |merger: &mut Merger, unknown: Option<(u32, u32)>| {
        unknown.into_iter().for_each(|(id, len)| merger.push(id, len));
    };
    for (at, c) in word.char_indices() {
        let len = c.len_utf8() as u32;
        text.clear();
        text.push_str(if at > 0 { &affixes.prefix } else { "" });
        text.push(c);
        text.push_str(if at + c.len_utf8() == word.len() { &affixes.suffix } else { "" });
        if let Some(id) = vocab.own(text.as_bytes()) {
            give(merger, unknown.take());
            merger.push(id, len);
        } else if let Some(ids) = fallback.bytes_of(text) {
            ids.for_each(|id| merger.push(id, 1));
        } else {
            match (fallback.unknown, unknown) {
                (Unknown::Dropped, _) => {}
                (Unknown::Refused, _) => return Err(unrepresentable(&word[at..], at)),
                (Unknown::Token(unk), Some((_, before))) if fallback.fuse_unk => {
                    unknown = Some((unk, before + len));
                }
                (Unknown::Token(unk), _) => give(merger, unknown.replace((unk, len))),
            }
        }
    }
    give(merger, unknown);
    Ok(())
}

/// The tokens of the 256 bytes in the GPT-2 alphabet, `NO_TOKEN` where the vocabulary lacks one.
pub(super) fn byte_alphabet(vocab: &TokenTable) -> Box<[u32; 256]> {
    let mut utf8 = [0; 4];
    let id = |byte: usize| vocab.own(bytes::byte_char(byte as u8).encode_utf8(&mut utf8).as_bytes());
    let mut ids = Box::new([NO_TOKEN; 256]);
    (0..256).map(id).zip(ids.iter_mut()).for_each(|(id, slot)| *slot = id.unwrap_or(NO_TOKEN));
    ids
}
