//! Tokenizers: text to ids and back, from `tokenizer.json` or from the metadata of a GGUF file.
//!
//! One engine serves both: normalisers, a search for added tokens, splitting into words, pair merging (BPE by ranked
//! pairs or SentencePiece-BPE by scores), the longest tokens (WordPiece), the best sum of scores (Unigram) or whole words
//! (WordLevel), byte fallback, a template of tokens around the text, and a streaming decoder.
//!
//! **Why own tables.** Measured on one core of a shared x86-64 machine, release build, gemma-3's `tokenizer.json`
//! (262,144 tokens, 514,906 merge rules, 33 MB): crate `tokenizers` 0.23.2 loads it in 1,290 ms with 331 MB of peak
//! memory beyond the file, `kitoken` 0.11.1 in 1,120 ms with 244 MB. The bar was 200 ms and 60 MB. The library stays
//! as the oracle of the tests; `loading_time` in `tests/suite/tokenizer_oracle.rs` prints this module's own figures.
//!
//! **Conventions.** `tokenizer.json` follows the reference library of that format. GGUF follows the runtimes of that
//! format: no normalisation, the longest special token first, user-defined tokens found even where special ones are
//! not parsed, BOS and EOS by the file's flags or by the model type's default. Where published splitting patterns
//! and their adaptations in GGUF runtimes differ, the published pattern is used, since the model was trained with it.
//!
//! This module does not know files, models or chat: callers hand it bytes or borrowed tables.

mod added;
mod bert;
mod bytes;
mod charsmap;
mod deadline;
mod decode;
mod decode_chain;
mod error;
mod framed;
pub mod gguf;
mod gguf_meta;
mod gguf_split;
pub mod json;
mod json_parts;
pub mod limits;
mod merge;
mod model;
mod normalize;
mod oniguruma;
mod pattern;
mod scripts;
mod split;
mod to_gguf;
mod unigram;
mod vocab;
mod wordpiece;

use std::borrow::Cow;
use std::collections::HashMap;

pub use decode::Detokenizer;
pub use error::TokenizerError;
pub use framed::FramedTokens;
pub use gguf::GgufVocab;
pub use to_gguf::GgufTokenizer;

use added::{Fragment, Leftmost, LongestFirst};
use deadline::EncodeDeadline;
use framed::PairPart;
use model::{EncodeScratch, TokenizerModel};
use normalize::{Beginning, Normalizer};
use split::PreTokenizer;

/// How one text is encoded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EncodeOptions {
    /// Put the tokens around the text that the file asks for (BOS, EOS).
    pub add_special: bool,
    /// Turn the text of special tokens into their ids. Needed for rendered chat templates, unwanted for user text.
    pub parse_special: bool,
}

/// Ids with a meaning of their own, where known.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SpecialIds {
    /// Begins a text.
    pub bos: Option<u32>,
    /// Ends a text.
    pub eos: Option<u32>,
    /// Stands for what the vocabulary cannot express.
    pub unk: Option<u32>,
    /// Fills batches.
    pub pad: Option<u32>,
    /// All ids that end generation, ascending: `eos`, and the ends of turn or message the file names.
    pub ends: Vec<u32>,
}

#[derive(Debug)]
enum Partition {
    /// `tokenizer.json`: tokens searched in the text as given, and tokens searched in the normalised text.
    Leftmost { raw: Leftmost, normalized: Leftmost },
    /// GGUF: all special tokens, and those found even where special tokens are not parsed.
    LongestFirst { all: LongestFirst, always: LongestFirst },
}

/// A tokenizer. Immutable once loaded and configured; `Send` and `Sync`.
#[derive(Debug)]
pub struct Tokenizer {
    name: String,
    tokens: vocab::TokenTable,
    model: TokenizerModel,
    partition: Partition,
    normalizers: Vec<Normalizer>,
    steps: Vec<PreTokenizer>,
    /// Patterns by which words are cut out, one after the other, where nothing else is done; none where more is.
    patterns: Option<Vec<String>>,
    decoder: decode::TokenDecoder,
    /// How decoding writes added tokens that are searched for in normalised text, where that differs.
    respelled: HashMap<u32, String>,
    /// Sorted ids that are special, and sorted ids of all added tokens.
    special: Vec<u32>,
    added: Vec<u32>,
    ids: SpecialIds,
    prefix: Vec<u32>,
    suffix: Vec<u32>,
    /// What stands where in a pair of texts, where the file says so.
    pair: Option<Vec<PairPart>>,
    parse_special: bool,
}

impl Tokenizer {
    /// Encodes `text`.
    ///
    /// # Errors
    /// [`TokenizerError::TextTooLong`], [`TokenizerError::Search`] for a pattern of the file that explodes on this
    /// text, [`TokenizerError::Unrepresentable`] for a character a defective vocabulary has no token for.
    pub fn encode(&self, text: &str, options: EncodeOptions) -> Result<Vec<u32>, TokenizerError> {
        if text.len() > limits::MAX_TEXT_BYTES {
            return Err(TokenizerError::TextTooLong { bytes: text.len(), limit: limits::MAX_TEXT_BYTES });
        }
        let mut out = Vec::with_capacity(text.len() / 3 + 4);
        if options.add_special {
            out.extend_from_slice(&self.prefix);
        }
        let mut scratch = EncodeScratch::default();
        let watch = EncodeDeadline::new(text.len());
        let fragments = match &self.partition {
            Partition::Leftmost { raw, .. } => raw.partition(text, options.parse_special, &watch)?,
            Partition::LongestFirst { all, .. } if options.parse_special => all.partition(text, &watch)?,
            Partition::LongestFirst { always, .. } => always.partition(text, &watch)?,
        };
        for fragment in fragments {
            match fragment {
                Fragment::Token(id) => out.push(id),
                Fragment::Text(range) => {
                    let at_start = range.start == 0;
                    self.encode_fragment(
                        &text[range],
                        at_start,
                        options.parse_special,
                        &watch,
                        &mut scratch,
                        &mut out,
                    )?;
                }
            }
        }
        if options.add_special {
            out.extend_from_slice(&self.suffix);
        }
        Ok(out)
    }

    fn encode_fragment(
        &self,
        text: &str,
        at_start: bool,
        parse_special: bool,
        watch: &EncodeDeadline,
        scratch: &mut EncodeScratch,
        out: &mut Vec<u32>,
    ) -> Result<(), TokenizerError> {
        let (text, beginning) = normalize::apply(&self.normalizers, Cow::Borrowed(text), watch)?;
        let fragments = match &self.partition {
            Partition::Leftmost { normalized, .. } => normalized.partition(&text, parse_special, watch)?,
            Partition::LongestFirst { .. } => vec![Fragment::Text(0..text.len())],
        };
        for fragment in fragments {
            match fragment {
                Fragment::Token(id) => out.push(id),
                Fragment::Text(range) => {
                    let of = |bytes: usize| bytes.clamp(range.start, range.end) - range.start;
                    let beginning = beginning.map(of);
                    let beginning = Beginning { first: if at_start { beginning.first } else { 0 }, ..beginning };
                    let pieces = split::apply(&self.steps, Cow::Borrowed(&text[range]), beginning, watch)?;
                    for word in pieces.ranges {
                        self.model.encode(&self.tokens, &pieces.text[word], scratch, watch, out)?;
                    }
                }
            }
        }
        Ok(())
    }

    /// The options a caller without an opinion should use: special tokens around the text, special strings parsed for
    /// `tokenizer.json` and not for GGUF.
    pub fn default_options(&self) -> EncodeOptions {
        EncodeOptions { add_special: true, parse_special: self.parse_special }
    }

    /// The name given at load.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Largest id plus one; ids in between may be unused.
    pub fn vocab_size(&self) -> usize {
        self.tokens.len()
    }

    /// The token as the file writes it (`Ġworld`, `▁world`); `None` for an id the vocabulary lacks.
    pub fn piece(&self, id: u32) -> Option<&str> {
        self.tokens.text(id)
    }

    /// The id of a token written as the file writes it.
    pub fn token_id(&self, piece: &str) -> Option<u32> {
        self.tokens.get(piece.as_bytes())
    }

    /// Whether `id` is a control token that is not part of the text.
    pub fn is_special(&self, id: u32) -> bool {
        self.special.binary_search(&id).is_ok()
    }

    fn is_added(&self, id: u32) -> bool {
        self.added.binary_search(&id).is_ok()
    }

    /// Ids with a meaning of their own.
    pub fn special_ids(&self) -> &SpecialIds {
        &self.ids
    }

    /// The id that begins a text.
    pub fn bos(&self) -> Option<u32> {
        self.ids.bos
    }

    /// The id that ends a text.
    pub fn eos(&self) -> Option<u32> {
        self.ids.eos
    }

    /// Tokens put in front of a text encoded with `add_special`.
    pub fn prefix(&self) -> &[u32] {
        &self.prefix
    }

    /// Tokens put behind a text encoded with `add_special`.
    pub fn suffix(&self) -> &[u32] {
        &self.suffix
    }

    /// Adds ids that end generation, as `generation_config.json` lists them; ids the vocabulary lacks are ignored.
    pub fn add_ends(&mut self, ids: impl IntoIterator<Item = u32>) {
        let known = ids.into_iter().filter(|&id| self.tokens.text(id).is_some());
        self.ids.ends.extend(known);
        self.ids.ends.sort_unstable();
        self.ids.ends.dedup();
    }
}
