//! A tokenizer of a `tokenizer.json` as the `tokenizer.ggml.*` metadata of a GGUF file.
//!
//! Byte-level BPE becomes `gpt2` with the name of its rules of splitting text; BPE of characters with byte fallback, which
//! `tokenizer.json` files have in the place of SentencePiece's, becomes `llama`, whose scores are the order of the rules. What
//! neither states (normalisation, another splitting, tokens around texts that are not BOS and EOS) is an error; whoever writes
//! a file compares what both make of texts, too.

use super::bytes;
use super::error::TokenizerError;
use super::gguf::kind;
use super::gguf_split;
use super::model::{Alphabet, Merges, TokenizerModel};
use super::normalize::Normalizer;
use super::pattern::Pattern;
use super::split::{Behavior, PreTokenizer, Prepend};
use super::{Partition, SpecialIds, Tokenizer};
use crate::gguf::{GgufArray, GgufValue};

/// The score of a token that was added to the model's own, and of an id that no token has.
const ADDED: f32 = -1000.0;
const ABSENT: f32 = -10_000.0;

/// What a file does not say of a tokenizer: the texts are then other ones, where they are not normalised already.
const COMPOSES: &str =
    "the tokenizer composes characters (NFC), which GGUF files do not state and their readers leave out";

/// The same of tokens that are found under conditions.
const SWALLOWS: &str =
    "some special tokens swallow white space beside them or stand alone only, which GGUF files do not state";

/// A tokenizer's metadata.
#[derive(Clone, PartialEq, Debug)]
pub struct GgufTokenizer {
    /// Keys and values.
    pub entries: Vec<(&'static str, GgufValue)>,
    /// What the file cannot say, in words.
    pub notes: Vec<&'static str>,
}

impl Tokenizer {
    /// The metadata of this tokenizer, for a model whose embedding has so many `rows`; ids that no token has are padded.
    /// `ids` are those of special tokens, as far as the model's files name them.
    ///
    /// # Errors
    /// [`TokenizerError::Unsupported`] for a part that GGUF metadata have no word for, [`TokenizerError::Field`] for tokens
    /// beyond the rows and rules that scores cannot order.
    pub fn to_gguf(&self, rows: usize, ids: &SpecialIds) -> Result<GgufTokenizer, TokenizerError> {
        let TokenizerModel::Bpe { merges, alphabet, ignore_merges } = &self.model else {
            return Err(self.not_stated("model", "a model other than BPE"));
        };
        if self.tokens.len() > rows {
            let detail = format!("has ids up to {}, and the model {rows} rows", self.tokens.len() - 1);
            return Err(TokenizerError::field(&self.name, "model.vocab", detail));
        }
        let mut out = GgufTokenizer { entries: Vec::new(), notes: Vec::new() };
        let text = |text: &str| GgufValue::String(text.to_owned());
        let spm = matches!(alphabet, Alphabet::Chars(..));
        let (tokens, types) = self.tokens_and_types(rows, spm, ids.unk);
        let tokens = GgufValue::Array(GgufArray::String(tokens.into_iter().collect()));
        let space_prefix = match alphabet {
            Alphabet::Chars(fallback, affixes) => {
                if fallback.bytes.is_none() || !affixes.prefix.is_empty() || !affixes.suffix.is_empty() {
                    return Err(self.not_stated("model", "BPE of characters without byte fallback, or with affixes"));
                }
                let scores = self.scores(merges, rows, &types)?;
                out.entries.push(("tokenizer.ggml.model", text("llama")));
                out.entries.push(("tokenizer.ggml.pre", text("default")));
                out.entries.push(("tokenizer.ggml.tokens", tokens));
                out.entries.push(("tokenizer.ggml.scores", GgufValue::Array(GgufArray::F32(scores))));
                Some(self.space_prefix()?)
            }
            Alphabet::Bytes(_) => {
                match self.normalizers.as_slice() {
                    [] => {}
                    [Normalizer::Nfc] => out.notes.push(COMPOSES),
                    _ => return Err(self.not_stated("normalizer", "a normaliser other than NFC")),
                }
                out.entries.push(("tokenizer.ggml.model", text("gpt2")));
                out.entries.push(("tokenizer.ggml.pre", text(self.rules(*ignore_merges)?)));
                out.entries.push(("tokenizer.ggml.tokens", tokens));
                None
            }
        };
        out.entries.push(("tokenizer.ggml.token_type", GgufValue::Array(GgufArray::I32(types))));
        if !spm {
            let merges = merges.in_order().map(|(left, right)| format!("{} {}", self.own(left), self.own(right)));
            out.entries.push(("tokenizer.ggml.merges", GgufValue::Array(GgufArray::String(merges.collect()))));
        }
        if let Partition::Leftmost { raw, normalized } = &self.partition
            && (raw.has_conditions() || normalized.has_conditions())
        {
            out.notes.push(SWALLOWS);
        }
        self.special(ids, &mut out)?;
        if let Some(prefix) = space_prefix {
            out.entries.push(("tokenizer.ggml.add_space_prefix", GgufValue::Bool(prefix)));
        }
        Ok(out)
    }

    fn not_stated(&self, part: &'static str, what: &str) -> TokenizerError {
        TokenizerError::NotStated { name: self.name.clone(), part, what: what.to_owned() }
    }

    fn own(&self, id: u32) -> &str {
        self.tokens.text(id).unwrap_or_default()
    }

    fn tokens_and_types(&self, rows: usize, spm: bool, unk: Option<u32>) -> (Vec<String>, Vec<i32>) {
        let one = |id: u32| match self.tokens.text(id) {
            None => (format!("[PAD{id}]"), kind::UNUSED),
            Some(text) if spm && Some(id) == unk => (text.to_owned(), kind::UNKNOWN),
            Some(text) if self.is_special(id) || self.is_added(id) && looks_special(text) => {
                (text.to_owned(), kind::CONTROL)
            }
            // Readers look for such tokens in the text as it is.
            Some(text) if self.is_added(id) => (text.replace('\u{2581}', " "), kind::USER_DEFINED),
            Some(text) if spm && bytes::fallback_byte(text).is_some() => (text.to_owned(), kind::BYTE),
            Some(text) => (text.to_owned(), kind::NORMAL),
        };
        (0..rows).map(|id| one(id as u32)).unzip()
    }

    /// The order of the rules as scores of what they make: of the tokens that could be made, the one with the highest score
    /// is. Several rules that make one token must stand together for that.
    fn scores(&self, merges: &Merges, rows: usize, types: &[i32]) -> Result<Vec<f32>, TokenizerError> {
        let of_kind = |kind: i32| match kind {
            kind::UNUSED => ABSENT,
            kind::CONTROL | kind::USER_DEFINED => ADDED,
            _ => 0.0,
        };
        let mut scores: Vec<f32> = types.iter().map(|&kind| of_kind(kind)).collect();
        let mut made: Vec<Option<u32>> = vec![None; rows];
        let mut latest = None;
        let mut count = 0u32;
        for joined in merges.joined_in_order() {
            let first = made[joined as usize];
            if first.is_none() {
                made[joined as usize] = Some(count);
                scores[joined as usize] = -(count as f32);
                count += 1;
            }
            if first.is_some() && latest != Some(joined) {
                let detail = format!(
                    "makes {:?} by rules that do not stand together, which scores of tokens cannot say",
                    self.own(joined)
                );
                return Err(TokenizerError::field(&self.name, "model.merges", detail));
            }
            latest = Some(joined);
        }
        Ok(scores)
    }

    /// Whether a space is put in front of a text, of a tokenizer that writes spaces as U+2581.
    fn space_prefix(&self) -> Result<bool, TokenizerError> {
        let is_mark = |text: &str| text == "\u{2581}";
        let marks = |normalizer: &Normalizer| matches!(normalizer, Normalizer::Replace(Pattern::Literal(from), to) if from == " " && is_mark(to));
        let fronted = match self.normalizers.as_slice() {
            [Normalizer::Prepend(front), mark] if is_mark(front) && marks(mark) => Some(true),
            [mark] if marks(mark) => Some(false),
            [] => None,
            _ => return Err(self.not_stated("normalizer", "a normaliser other than spaces written as U+2581")),
        };
        match (fronted, self.steps.as_slice()) {
            (Some(fronted), []) => Ok(fronted),
            // No space is left to cut at.
            (Some(fronted), [PreTokenizer::Split { pattern: Pattern::Literal(at), behavior, invert: false }])
                if at == " " && *behavior == Behavior::MergedWithPrevious =>
            {
                Ok(fronted)
            }
            (None, [PreTokenizer::Metaspace { mark: '\u{2581}', prepend, .. }]) => Ok(*prepend != Prepend::Never),
            _ => Err(self.not_stated("pre_tokenizer", "another splitting than at spaces")),
        }
    }

    /// The name of the rules of splitting text.
    fn rules(&self, ignore_merges: bool) -> Result<&'static str, TokenizerError> {
        let patterns = self.patterns.as_deref();
        let named = patterns.and_then(|patterns| gguf_split::named(patterns, ignore_merges));
        named.ok_or_else(|| {
            let what = match patterns {
                Some(patterns) => format!("rules of splitting that have no name there: {patterns:?}"),
                None => "a splitting that is not by patterns alone".to_owned(),
            };
            self.not_stated("pre_tokenizer", &super::error::shorten(&what))
        })
    }

    fn special(&self, ids: &SpecialIds, out: &mut GgufTokenizer) -> Result<(), TokenizerError> {
        let added = |found: &[u32], id: Option<u32>, what: &str| match (found, id) {
            ([], _) => Ok(false),
            ([one], Some(id)) if *one == id => Ok(true),
            _ => Err(self.not_stated("post_processor", what)),
        };
        let bos = added(&self.prefix, ids.bos, "tokens in front of a text that are not BOS")?;
        let eos = added(&self.suffix, ids.eos, "tokens behind a text that are not EOS")?;
        let named = [
            ("tokenizer.ggml.bos_token_id", ids.bos),
            ("tokenizer.ggml.eos_token_id", ids.eos),
            ("tokenizer.ggml.unknown_token_id", ids.unk),
            ("tokenizer.ggml.padding_token_id", ids.pad),
        ];
        out.entries.extend(named.into_iter().filter_map(|(key, id)| Some((key, GgufValue::U32(id?)))));
        out.entries.push(("tokenizer.ggml.add_bos_token", GgufValue::Bool(bos)));
        out.entries.push(("tokenizer.ggml.add_eos_token", GgufValue::Bool(eos)));
        Ok(())
    }
}

/// Tokens that are control tokens by their names, whatever a file says of them, as converters agree.
fn looks_special(text: &str) -> bool {
    let within = |front: &str, back: &str| text.starts_with(front) && text.ends_with(back);
    matches!(text, "<pad>" | "<mask>" | "<2mass>" | "[@BOS@]")
        || within("<|", "|>")
        || within("<\u{ff5c}", "\u{ff5c}>")
        || within("<unused", ">")
}
