//! Tokenizers from the `tokenizer.ggml.*` metadata of a GGUF file.
//!
//! `tokenizer.ggml.model` = `llama` is SentencePiece-BPE, `gpt2` is byte-level BPE split by `tokenizer.ggml.pre`.
//! Other models (`bert`, `t5`, `rwkv`, `plamo2`, ...) are typed errors with their name.
//!
//! Defaults for absent keys: `llama`: BOS 1, EOS 2, unknown 0, BOS added, space in front; `gpt2`: no ids, BOS added
//! only for the Llama-3 and Tekken families, no space. No Unicode normalisation takes place, also where the model's
//! `tokenizer.json` has one.
//!
//! Knows nothing of the GGUF container: any reader fills [`GgufVocab`] with borrowed strings.

use std::collections::HashMap;

use super::added::{AddedToken, LongestFirst};
use super::decode::{Spelling, TokenDecoder};
use super::error::TokenizerError;
use super::gguf_split;
use super::limits;
use super::model::{self, Alphabet, Fallback, Merges, TokenizerModel, Twice, Unknown};
use super::normalize::Normalizer;
use super::pattern::Pattern;
use super::split::{Behavior, PreTokenizer};
use super::vocab::{NO_TOKEN, TokenTable};
use super::{Partition, SpecialIds, Tokenizer};

/// Token types of `tokenizer.ggml.token_type`.
pub(super) mod kind {
    pub(crate) const NORMAL: i32 = 1;
    pub(crate) const UNKNOWN: i32 = 2;
    pub(crate) const CONTROL: i32 = 3;
    pub(crate) const USER_DEFINED: i32 = 4;
    pub(crate) const UNUSED: i32 = 5;
    pub(crate) const BYTE: i32 = 6;
}

/// The tokenizer metadata of a GGUF file, borrowed from its reader. Absent keys are `None`.
#[derive(Clone, Debug, Default)]
pub struct GgufVocab<'a> {
    /// Name for messages, usually the file name.
    pub name: &'a str,
    /// `tokenizer.ggml.model`.
    pub model: &'a str,
    /// `tokenizer.ggml.pre`.
    pub pre: Option<&'a str>,
    /// `general.name`: decides whether special tokens swallow the white space behind them (Phi-3).
    pub model_name: Option<&'a str>,
    /// `tokenizer.ggml.tokens`, by id.
    pub tokens: Vec<&'a str>,
    /// `tokenizer.ggml.scores`, by id.
    pub scores: Option<Vec<f32>>,
    /// `tokenizer.ggml.token_type`, by id.
    pub token_types: Option<Vec<i32>>,
    /// `tokenizer.ggml.merges`: pairs joined by a space, best first.
    pub merges: Option<Vec<&'a str>>,
    /// `tokenizer.ggml.bos_token_id`.
    pub bos: Option<u32>,
    /// `tokenizer.ggml.eos_token_id`.
    pub eos: Option<u32>,
    /// `tokenizer.ggml.unknown_token_id`.
    pub unk: Option<u32>,
    /// `tokenizer.ggml.padding_token_id`.
    pub pad: Option<u32>,
    /// `tokenizer.ggml.eot_token_id`.
    pub eot: Option<u32>,
    /// `tokenizer.ggml.eom_token_id`.
    pub eom: Option<u32>,
    /// `tokenizer.ggml.add_bos_token`.
    pub add_bos: Option<bool>,
    /// `tokenizer.ggml.add_eos_token`.
    pub add_eos: Option<bool>,
    /// `tokenizer.ggml.add_space_prefix`.
    pub add_space_prefix: Option<bool>,
}

impl Tokenizer {
    /// Builds a tokenizer from GGUF metadata.
    ///
    /// # Errors
    /// [`TokenizerError::Unsupported`] for a model or splitting rule this crate lacks, [`TokenizerError::Field`] for
    /// tables that contradict each other, [`TokenizerError::Limit`] beyond [`super::limits`].
    pub fn from_gguf(vocab: GgufVocab<'_>) -> Result<Self, TokenizerError> {
        let name = vocab.name;
        let spm = match vocab.model {
            "llama" => true,
            "gpt2" => false,
            other => return Err(TokenizerError::unsupported(name, "model", other)),
        };
        check_lengths(&vocab)?;
        let mut tokens = TokenTable::with_capacity(vocab.tokens.len());
        for (id, &text) in vocab.tokens.iter().enumerate() {
            let placeholder = if text.is_empty() { format!("[EMPTY_{id}]") } else { String::new() };
            let text = if text.is_empty() { placeholder.as_str() } else { text };
            if let Some(first) = tokens.insert(name, id as u32, text)? {
                let detail = format!("ids {first} and {id} are the same token {text:?}");
                return Err(TokenizerError::field(name, "tokenizer.ggml.tokens", detail));
            }
        }
        tokens.shrink();
        let kinds = kinds(&vocab, &tokens);
        let mut rules = gguf_split::Rules { patterns: &[], ignore_merges: false, add_bos: true };
        if !spm {
            let pre = vocab.pre.unwrap_or("default");
            rules = gguf_split::rules(pre).ok_or_else(|| TokenizerError::unknown_rules(name, pre))?;
        }
        let ids = special_ids(&vocab, &tokens, spm);
        let (prefix, suffix) = surroundings(&vocab, &ids, rules.add_bos)?;
        let space_prefix = spm && vocab.add_space_prefix.unwrap_or(true);
        let by_kind =
            |wanted: &[i32]| (0u32..).zip(&kinds).filter(|(_, k)| wanted.contains(k)).map(|(id, _)| id).collect();
        Ok(Self {
            partition: partition(name, &vocab, &tokens, &kinds)?,
            model: if spm { spm_model(&vocab, &tokens, ids.unk)? } else { bpe_model(&vocab, &tokens, rules)? },
            normalizers: if spm { spm_normalizers(space_prefix) } else { Vec::new() },
            patterns: (!spm).then(|| rules.patterns.iter().map(|&source| source.to_owned()).collect()),
            steps: rules.patterns.iter().map(|source| isolate(name, source)).collect::<Result<_, _>>()?,
            decoder: decoder(spm, space_prefix),
            special: by_kind(&[kind::CONTROL, kind::UNKNOWN, kind::UNUSED]),
            added: by_kind(&[kind::CONTROL, kind::UNKNOWN, kind::USER_DEFINED]),
            name: name.to_owned(),
            respelled: HashMap::new(),
            tokens,
            ids,
            prefix,
            suffix,
            pair: None,
            parse_special: false,
        })
    }
}

fn check_lengths(vocab: &GgufVocab<'_>) -> Result<(), TokenizerError> {
    let n = vocab.tokens.len();
    TokenizerError::limit(vocab.name, "number of tokens", n, limits::MAX_VOCAB)?;
    let tables = [
        ("tokenizer.ggml.scores", vocab.scores.as_ref().map(Vec::len)),
        ("tokenizer.ggml.token_type", vocab.token_types.as_ref().map(Vec::len)),
    ];
    for (field, len) in tables {
        if let Some(len) = len.filter(|&len| len < n) {
            return Err(TokenizerError::field(vocab.name, field, format!("has {len} entries for {n} tokens")));
        }
    }
    if n == 0 {
        return Err(TokenizerError::field(vocab.name, "tokenizer.ggml.tokens", "is empty"));
    }
    Ok(())
}

/// Tokens that end a turn or a message by convention: control tokens even where the file forgot to say so.
const END_NAMES: [&str; 24] = [
    "<|eot_id|>",
    "<|im_end|>",
    "<|end|>",
    "<|return|>",
    "<|call|>",
    "<|flush|>",
    "<|calls|>",
    "<end_of_turn>",
    "<|endoftext|>",
    "</s>",
    "<|eom_id|>",
    "<EOT>",
    "_<EOT>",
    "[EOT]",
    "[EOS]",
    "<|end_of_text|>",
    "<end_of_utterance>",
    "<eos>",
    "<turn|>",
    "<|tool_response>",
    "<｜end▁of▁sentence｜>",
    "[e~[",
    "<|fim_pad|>",
    "<|file_sep|>",
];

/// Markers inside a message that callers need to see: text, not control.
const VISIBLE_NAMES: [&str; 4] = ["<|channel|>", "<|message|>", "<|start|>", "<|constrain|>"];

/// Token types with the corrections that runtimes of this format agree on.
fn kinds(vocab: &GgufVocab<'_>, tokens: &TokenTable) -> Vec<i32> {
    let n = vocab.tokens.len();
    let mut kinds = vocab.token_types.as_ref().map_or_else(|| vec![kind::NORMAL; n], |k| k[..n].to_vec());
    let id = |text: &str| tokens.get(text.as_bytes()).map(|id| id as usize);
    END_NAMES.iter().filter_map(|t| id(t)).for_each(|id| kinds[id] = kind::CONTROL);
    VISIBLE_NAMES.iter().filter_map(|t| id(t)).for_each(|id| kinds[id] = kind::USER_DEFINED);
    if let Some(end) = id("<|end|>").filter(|_| has_harmony(tokens)) {
        kinds[end] = kind::USER_DEFINED;
    }
    kinds
}

/// Formats in which `<|end|>` ends a message but not the answer.
fn has_harmony(tokens: &TokenTable) -> bool {
    let has = |text: &str| tokens.get(text.as_bytes()).is_some();
    has("<|return|>") && has("<|call|>") || has("<|calls|>") && has("<|flush|>")
}

fn special_ids(vocab: &GgufVocab<'_>, tokens: &TokenTable, spm: bool) -> SpecialIds {
    let known = |id: Option<u32>, default: u32| {
        let id = id.or(spm.then_some(default));
        id.filter(|&id| (id as usize) < vocab.tokens.len())
    };
    let (bos, eos, unk) = (known(vocab.bos, 1), known(vocab.eos, 2), known(vocab.unk, 0));
    let in_range = |id: &u32| (*id as usize) < vocab.tokens.len();
    let skipped = |text: &str| {
        text == "<|end|>" && has_harmony(tokens) || text == "</s>" && tokens.get(b"<|tool_response>").is_some()
    };
    let named = END_NAMES.iter().filter(|t| !skipped(t)).filter_map(|t| tokens.get(t.as_bytes()));
    let mut ends: Vec<u32> = named.chain([eos, vocab.eot, vocab.eom].into_iter().flatten()).filter(in_range).collect();
    ends.sort_unstable();
    ends.dedup();
    SpecialIds { bos, eos, unk, pad: vocab.pad.filter(in_range), ends }
}

fn surroundings(
    vocab: &GgufVocab<'_>,
    ids: &SpecialIds,
    bos_by_default: bool,
) -> Result<(Vec<u32>, Vec<u32>), TokenizerError> {
    let missing = |flag: &str, id: &str| {
        TokenizerError::field(vocab.name, flag, format!("is true, but {id} is absent or out of range"))
    };
    let prefix = match (vocab.add_bos.unwrap_or(bos_by_default), ids.bos) {
        (true, Some(id)) => vec![id],
        // Old files of the Llama-3 family without an id: nothing was promised in writing.
        (true, None) if vocab.add_bos.is_none() => Vec::new(),
        (true, None) => return Err(missing("tokenizer.ggml.add_bos_token", "tokenizer.ggml.bos_token_id")),
        (false, _) => Vec::new(),
    };
    let suffix = match (vocab.add_eos.unwrap_or(false), ids.eos) {
        (true, Some(id)) => vec![id],
        (true, None) => return Err(missing("tokenizer.ggml.add_eos_token", "tokenizer.ggml.eos_token_id")),
        (false, _) => Vec::new(),
    };
    Ok((prefix, suffix))
}

fn partition(
    name: &str,
    vocab: &GgufVocab<'_>,
    tokens: &TokenTable,
    kinds: &[i32],
) -> Result<Partition, TokenizerError> {
    let lower = vocab.model_name.unwrap_or_default().to_lowercase();
    let phi3 = lower.contains("phi-3") || lower.contains("phi3");
    let select = |wanted: &[i32]| -> Vec<AddedToken> {
        let of_kind = (0u32..).zip(kinds).filter(|(_, k)| wanted.contains(k));
        let added = of_kind.filter_map(|(id, _)| tokens.text(id).map(|text| (id, text)));
        added
            .map(|(id, text)| {
                let rstrip = phi3 && !["<unk>", "<s>", "<|endoftext|>"].contains(&text);
                AddedToken { id, text: text.to_owned(), special: true, single_word: false, lstrip: false, rstrip }
            })
            .collect()
    };
    Ok(Partition::LongestFirst {
        all: LongestFirst::new(name, select(&[kind::CONTROL, kind::UNKNOWN, kind::USER_DEFINED]))?,
        always: LongestFirst::new(name, select(&[kind::USER_DEFINED]))?,
    })
}

fn spm_model(vocab: &GgufVocab<'_>, tokens: &TokenTable, unk: Option<u32>) -> Result<TokenizerModel, TokenizerError> {
    let n = vocab.tokens.len();
    let priorities = match &vocab.scores {
        Some(scores) => scores[..n].iter().map(|&score| priority(score)).collect(),
        None => vec![0; n],
    };
    let fallback = Fallback {
        bytes: Some(byte_tokens(tokens)),
        unknown: unk.map_or(Unknown::Refused, Unknown::Token),
        fuse_unk: false,
    };
    Ok(TokenizerModel::Spm { priorities, fallback })
}

/// The tokens of the bytes. A byte without a token that names it is the character of that byte, as where `\t` has taken
/// the place of `<0x09>`.
fn byte_tokens(tokens: &TokenTable) -> Box<[u32; 256]> {
    let mut ids = tokens.byte_tokens();
    for (byte, id) in (0..=127u8).zip(ids.iter_mut()).filter(|(_, id)| **id == NO_TOKEN) {
        *id = tokens.get(&[byte]).unwrap_or(NO_TOKEN);
    }
    ids
}

/// Turns "larger score first" into "smaller number first"; the two zeros are equal, NaN comes last.
fn priority(score: f32) -> u32 {
    if score.is_nan() {
        return u32::MAX;
    }
    let bits = (score + 0.0_f32).to_bits();
    let ascending = if bits >> 31 == 1 { !bits } else { bits | 1 << 31 };
    !ascending
}

fn bpe_model(
    vocab: &GgufVocab<'_>,
    tokens: &TokenTable,
    rules: gguf_split::Rules,
) -> Result<TokenizerModel, TokenizerError> {
    let field = "tokenizer.ggml.merges";
    let list = vocab.merges.as_deref().ok_or_else(|| TokenizerError::field(vocab.name, field, "is absent"))?;
    TokenizerError::limit(vocab.name, "number of merge rules", list.len(), limits::MAX_MERGES)?;
    let mut merges = Merges::with_capacity(list.len());
    for (rank, rule) in list.iter().enumerate() {
        // The left part may be a space itself in some files, so the cut is the first space after its first byte.
        let cut = rule.char_indices().skip(1).find(|(_, c)| *c == ' ').map(|(at, _)| at);
        let Some(cut) = cut else {
            let detail = format!("rule {rank} is {:?}, not two parts", super::error::shorten(rule));
            return Err(TokenizerError::field(vocab.name, field, detail));
        };
        // Rules about tokens that were cut out of the vocabulary can never apply.
        let _unused = merges.push(tokens, (&rule[..cut], &rule[cut + 1..], 0), Twice::FirstCounts);
    }
    let alphabet = Alphabet::Bytes(model::byte_alphabet(tokens));
    Ok(TokenizerModel::Bpe { merges, alphabet, ignore_merges: rules.ignore_merges })
}

fn isolate(name: &str, source: &str) -> Result<PreTokenizer, TokenizerError> {
    Ok(PreTokenizer::Split { pattern: Pattern::regex(name, source)?, behavior: Behavior::Isolated, invert: false })
}

fn spm_normalizers(space_prefix: bool) -> Vec<Normalizer> {
    let mark = Normalizer::Replace(Pattern::Literal(" ".into()), "▁".into());
    if space_prefix { vec![Normalizer::Prepend("▁".into()), mark] } else { vec![mark] }
}

fn decoder(spm: bool, space_prefix: bool) -> TokenDecoder {
    let spelling = if spm { Spelling::Spm } else { Spelling::ByteLevel };
    TokenDecoder::Joined { spelling, strip_start: space_prefix.then_some((' ', 1)) }
}

#[cfg(test)]
mod tests {
    use super::priority;

    #[test]
    fn priorities_order_scores_descending() {
        let scores = [f32::INFINITY, 3.5, 0.0, -1.0, -1.5, -1e30, f32::NEG_INFINITY, f32::NAN];
        assert!(scores.windows(2).all(|pair| priority(pair[0]) < priority(pair[1])));
        assert_eq!(priority(0.0), priority(-0.0));
    }
}
