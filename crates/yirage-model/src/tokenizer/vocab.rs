//! The token table: id to text and text to id, in three flat allocations (no string per token).
//!
//! Knows nothing of how text is cut or what a token means; gaps between ids are allowed.

use hashbrown::HashTable;
use std::hash::BuildHasher as _;

use super::bytes;
use super::error::TokenizerError;
use super::limits;

/// Mark of a symbol that is no token (yet).
pub(super) const NO_TOKEN: u32 = u32::MAX;

const HOLE: u32 = u32::MAX;

#[derive(Clone, Copy)]
struct TokenSpan {
    start: u32,
    len: u32,
}

/// Tokens by id and by text.
pub(super) struct TokenTable {
    arena: String,
    spans: Vec<TokenSpan>,
    index: HashTable<u32>,
    hasher: foldhash::fast::RandomState,
    /// Some text has two ids.
    shadowed: bool,
    /// Ids, sorted, that are not of the model but were added to it.
    foreign: Vec<u32>,
}

impl std::fmt::Debug for TokenTable {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("TokenTable").field("tokens", &self.spans.len()).field("bytes", &self.arena.len()).finish()
    }
}

impl TokenTable {
    pub(super) fn with_capacity(tokens: usize) -> Self {
        let tokens = tokens.min(limits::MAX_VOCAB);
        Self {
            arena: String::with_capacity(tokens.saturating_mul(7)),
            spans: Vec::with_capacity(tokens),
            index: HashTable::with_capacity(tokens),
            hasher: foldhash::fast::RandomState::default(),
            shadowed: false,
            foreign: Vec::new(),
        }
    }

    /// Adds `text` as token `id`; a text that is already there keeps answering with its newest id.
    /// Returns the id it had before, if any.
    pub(super) fn insert(&mut self, name: &str, id: u32, text: &str) -> Result<Option<u32>, TokenizerError> {
        TokenizerError::limit(name, "token id", id as usize, limits::MAX_VOCAB - 1)?;
        TokenizerError::limit(name, "length of a token in bytes", text.len(), limits::MAX_TOKEN_BYTES)?;
        TokenizerError::limit(
            name,
            "vocabulary text in bytes",
            self.arena.len() + text.len(),
            limits::MAX_VOCAB_BYTES,
        )?;
        let slot = id as usize;
        if slot >= self.spans.len() {
            self.spans.resize(slot + 1, TokenSpan { start: 0, len: HOLE });
        }
        if self.text(id).is_some_and(|old| old != text) {
            return Err(TokenizerError::field(name, "vocab", format!("id {id} is given to two different tokens")));
        }
        let hash = self.hasher.hash_one(text.as_bytes());
        let (arena, spans) = (&self.arena, &self.spans);
        let before = self.index.find_mut(hash, |&other| span_text(arena, spans[other as usize]) == Some(text));
        if let Some(other) = before {
            let old = *other;
            *other = id;
            self.shadowed |= old != id;
            self.spans[slot] = self.spans[old as usize];
            return Ok(Some(old));
        }
        self.spans[slot] = TokenSpan { start: self.arena.len() as u32, len: text.len() as u32 };
        self.arena.push_str(text);
        let (arena, spans, hasher) = (&self.arena, &self.spans, &self.hasher);
        self.index.insert_unique(hash, id, |&other| {
            hasher.hash_one(span_text(arena, spans[other as usize]).unwrap_or_default().as_bytes())
        });
        Ok(None)
    }

    /// The id of exactly this text.
    pub(super) fn get(&self, text: &[u8]) -> Option<u32> {
        let hash = self.hasher.hash_one(text);
        self.index
            .find(hash, |&id| {
                let span = self.spans[id as usize];
                self.arena.as_bytes()[span.start as usize..][..span.len as usize] == *text
            })
            .copied()
    }

    /// The id of exactly this text, where the model itself has it.
    pub(super) fn own(&self, text: &[u8]) -> Option<u32> {
        self.get(text).filter(|id| self.foreign.binary_search(id).is_err())
    }

    /// The byte-fallback tokens `<0x00>` to `<0xFF>`, `NO_TOKEN` where the model lacks one.
    pub(super) fn byte_tokens(&self) -> Box<[u32; 256]> {
        let mut ids = Box::new([NO_TOKEN; 256]);
        (0..=255u8).zip(ids.iter_mut()).for_each(|(byte, slot)| {
            *slot = self.own(bytes::fallback_name(byte).as_bytes()).unwrap_or(NO_TOKEN);
        });
        ids
    }

    /// Says which ids the model does not see.
    pub(super) fn set_foreign(&mut self, mut ids: Vec<u32>) {
        ids.sort_unstable();
        self.foreign = ids;
    }

    /// Whether `id` is the id its own text answers with.
    pub(super) fn is_answer(&self, id: u32) -> bool {
        !self.shadowed || self.text(id).is_some_and(|text| self.get(text.as_bytes()) == Some(id))
    }

    /// The text of a token; `None` for ids never given.
    pub(super) fn text(&self, id: u32) -> Option<&str> {
        span_text(&self.arena, *self.spans.get(id as usize)?)
    }

    /// Largest id plus one.
    pub(super) fn len(&self) -> usize {
        self.spans.len()
    }

    pub(super) fn shrink(&mut self) {
        self.arena.shrink_to_fit();
        self.spans.shrink_to_fit();
    }
}

fn span_text(arena: &str, span: TokenSpan) -> Option<&str> {
    if span.len == HOLE { None } else { arena.get(span.start as usize..(span.start + span.len) as usize) }
}
