//! Tokenizers from `tokenizer.json`.
//!
//! The file is read in one pass: vocabulary and merge rules go straight from the bytes into the flat tables, nothing
//! of them is kept as JSON.

use std::borrow::Cow;
use std::collections::{BTreeMap, HashMap};
use std::fmt;

use serde::Deserialize;
use serde::de::{DeserializeSeed, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::Value;

use super::added::{AddedToken, Leftmost};
use super::deadline::EncodeDeadline;
use super::decode::TokenDecoder;
use super::error::{TokenizerError, shorten};
use super::json_parts::{self, PostProcessor, TokenizerComponents};
use super::limits;
use super::model::{self, Affixes, Alphabet, Fallback, Merges, TokenizerModel, Twice, Unknown};
use super::split::PreTokenizer;
use super::unigram::Unigram;
use super::vocab::{NO_TOKEN, TokenTable};
use super::wordpiece::WordPiece;
use super::{Partition, SpecialIds, Tokenizer, normalize};

/// The models, by the names that files give them.
const KINDS: [&str; 4] = ["BPE", WORD_PIECE, UNIGRAM, WORD_LEVEL];
const WORD_PIECE: &str = "WordPiece";
const UNIGRAM: &str = "Unigram";
const WORD_LEVEL: &str = "WordLevel";

impl Tokenizer {
    /// Builds a tokenizer from the bytes of a `tokenizer.json`; `name` goes into messages.
    ///
    /// BOS is known where the file's template puts a token in front; EOS and the rest come from
    /// [`Tokenizer::apply_config`].
    ///
    /// # Errors
    /// [`TokenizerError::Json`] with line and column, [`TokenizerError::Unsupported`] with the component's name,
    /// [`TokenizerError::Field`], [`TokenizerError::Pattern`], [`TokenizerError::Limit`].
    pub fn from_json(bytes: &[u8], name: &str) -> Result<Self, TokenizerError> {
        TokenizerError::limit(name, "size of the file in bytes", bytes.len(), limits::MAX_FILE_BYTES)?;
        let text = std::str::from_utf8(bytes).map_err(|error| TokenizerError::Json {
            name: name.to_owned(),
            detail: format!("byte {} is not UTF-8", error.valid_up_to()),
            line: 1 + bytes[..error.valid_up_to()].iter().filter(|&&b| b == b'\n').count(),
            column: 0,
        })?;
        let mut loader = Loader { name, ..Loader::default() };
        let mut json = serde_json::Deserializer::from_str(text);
        let read = json.deserialize_map(TopLevel(&mut loader)).and_then(|()| json.end());
        if let Some(fault) = loader.fault.take() {
            return Err(fault);
        }
        read.map_err(|error| TokenizerError::Json {
            name: name.to_owned(),
            detail: shorten(&error.to_string()),
            line: error.line(),
            column: error.column(),
        })?;
        loader.finish()
    }

    /// Takes ids and flags from a `tokenizer_config.json`: `bos_token`, `eos_token`, `unk_token`, `pad_token`, and
    /// `add_bos_token`/`add_eos_token`, which beat the template of `tokenizer.json` where they are written.
    ///
    /// # Errors
    /// [`TokenizerError::Json`] for broken JSON, [`TokenizerError::Field`] for a flag whose token is unknown.
    pub fn apply_config(&mut self, bytes: &[u8], name: &str) -> Result<(), TokenizerError> {
        TokenizerError::limit(name, "size of the file in bytes", bytes.len(), limits::MAX_FILE_BYTES)?;
        let config: SpecialTokensConfig = serde_json::from_slice(bytes).map_err(|error| TokenizerError::Json {
            name: name.to_owned(),
            detail: shorten(&error.to_string()),
            line: error.line(),
            column: error.column(),
        })?;
        let id = |token: &Option<TokenText>| token.as_ref().and_then(|t| self.tokens.get(t.text().as_bytes()));
        let (bos, eos) = (id(&config.bos_token).or(self.ids.bos), id(&config.eos_token).or(self.ids.eos));
        let (unk, pad) = (id(&config.unk_token).or(self.ids.unk), id(&config.pad_token).or(self.ids.pad));
        let flagged = |flag: Option<bool>, id: Option<u32>, field: &str| match (flag, id) {
            (Some(true), Some(id)) => Ok(Some(vec![id])),
            (Some(true), None) => Err(TokenizerError::field(name, field, "is true, but the token is not known")),
            (Some(false), _) => Ok(Some(Vec::new())),
            (None, _) => Ok(None),
        };
        let prefix = flagged(config.add_bos_token, bos, "add_bos_token")?;
        let suffix = flagged(config.add_eos_token, eos, "add_eos_token")?;
        self.prefix = prefix.unwrap_or_else(|| std::mem::take(&mut self.prefix));
        self.suffix = suffix.unwrap_or_else(|| std::mem::take(&mut self.suffix));
        (self.ids.bos, self.ids.eos, self.ids.unk, self.ids.pad) = (bos, eos, unk, pad);
        self.add_ends(eos);
        Ok(())
    }
}

#[derive(Deserialize)]
struct SpecialTokensConfig {
    bos_token: Option<TokenText>,
    eos_token: Option<TokenText>,
    unk_token: Option<TokenText>,
    pad_token: Option<TokenText>,
    add_bos_token: Option<bool>,
    add_eos_token: Option<bool>,
}

#[derive(Deserialize)]
#[serde(untagged)]
enum TokenText {
    Plain(String),
    Described { content: String },
}

impl TokenText {
    fn text(&self) -> &str {
        match self {
            Self::Plain(text) | Self::Described { content: text } => text,
        }
    }
}

#[derive(Deserialize)]
struct AddedEntry {
    id: u32,
    content: String,
    #[serde(default)]
    single_word: bool,
    #[serde(default)]
    lstrip: bool,
    #[serde(default)]
    rstrip: bool,
    #[serde(default)]
    normalized: bool,
    #[serde(default)]
    special: bool,
}

#[derive(Default)]
struct Loader<'n> {
    name: &'n str,
    fault: Option<TokenizerError>,
    added: Vec<AddedEntry>,
    normalizer: Value,
    pre_tokenizer: Value,
    post_processor: Value,
    decoder: Value,
    has_model: bool,
    vocab: Option<TokenTable>,
    merges: Option<Merges>,
    /// There is a list of rules, be it an empty one.
    has_merges: bool,
    /// Rules that came before the vocabulary they are about.
    early_merges: Vec<(String, String)>,
    kind: Option<String>,
    unk_token: Option<String>,
    fuse_unk: bool,
    byte_fallback: bool,
    ignore_merges: bool,
    /// No merge rule ever applies.
    never_merges: bool,
    continuing_prefix: Option<String>,
    word_suffix: Option<String>,
    /// Scores of a Unigram model, by token id.
    scores: Option<Vec<f64>>,
    unk_id: Option<u32>,
    max_word_chars: Option<usize>,
}

impl Loader<'_> {
    fn fail<E: serde::de::Error>(&mut self, fault: TokenizerError) -> E {
        let error = E::custom(&fault);
        self.fault.get_or_insert(fault);
        error
    }

    fn merge(&mut self, left: &str, right: &str) -> Result<(), TokenizerError> {
        let name = self.name;
        let Some(vocab) = &self.vocab else {
            TokenizerError::limit(name, "number of merge rules", self.early_merges.len() + 1, limits::MAX_MERGES)?;
            self.early_merges.push((left.to_owned(), right.to_owned()));
            return Ok(());
        };
        let merges = self.merges.get_or_insert_default();
        TokenizerError::limit(name, "number of merge rules", merges.len() + 1, limits::MAX_MERGES)?;
        let rank = merges.len();
        let skip = self.continuing_prefix.as_ref().map_or(0, String::len);
        merges.push(vocab, (left, right, skip), Twice::LastCounts).map_err(|text| {
            let detail = format!("rule {rank} is about {:?}, which is not in the vocabulary", shorten(&text));
            TokenizerError::field(name, "model.merges", detail)
        })
    }

    fn finish(mut self) -> Result<Tokenizer, TokenizerError> {
        let name = self.name;
        if !self.has_model {
            return Err(TokenizerError::field(name, "model", "is absent"));
        }
        if self.vocab.is_none() {
            return Err(TokenizerError::field(name, "model.vocab", "is absent"));
        }
        for (left, right) in std::mem::take(&mut self.early_merges) {
            self.merge(&left, &right)?;
        }
        let mut vocab = self.vocab.take().unwrap_or_else(|| TokenTable::with_capacity(0));
        self.settle_added(&mut vocab)?;
        vocab.shrink();
        let parts = TokenizerComponents {
            normalizers: json_parts::normalizers(name, &self.normalizer)?,
            splitting: json_parts::pre_tokenizers(name, &self.pre_tokenizer)?,
            decoder: json_parts::decoder(name, &self.decoder)?,
            template: json_parts::template(name, &self.post_processor, &vocab)?,
        };
        self.assemble(vocab, parts)
    }

    /// Gives added tokens their ids: a token of the model keeps that of the model, whatever its entry says. Of entries
    /// about the same token the last counts; it is special if any of them says so.
    fn settle_added(&mut self, vocab: &mut TokenTable) -> Result<(), TokenizerError> {
        let mut by_id: BTreeMap<u32, AddedEntry> = BTreeMap::new();
        let mut foreign = Vec::new();
        for mut token in std::mem::take(&mut self.added) {
            if token.content.is_empty() {
                continue;
            }
            match vocab.get(token.content.as_bytes()) {
                Some(id) => token.id = id,
                None => {
                    vocab.insert(self.name, token.id, &token.content)?;
                    foreign.push(token.id);
                }
            }
            token.special |= by_id.get(&token.id).is_some_and(|before| before.special);
            by_id.insert(token.id, token);
        }
        vocab.set_foreign(foreign);
        self.added = by_id.into_values().collect();
        Ok(())
    }

    fn assemble(mut self, vocab: TokenTable, parts: TokenizerComponents) -> Result<Tokenizer, TokenizerError> {
        let name = self.name;
        let unk = self.unk_token.as_ref().and_then(|text| vocab.get(text.as_bytes())).or(self.unk_id);
        let mut steps = parts.splitting.steps;
        // A model that reads bytes does not see what stands for none of the text.
        let reads_bytes = parts.splitting.byte_level && !normalize::may_insert(&parts.normalizers);
        let model = self.model(&vocab, reads_bytes)?;
        if parts.splitting.byte_level && !matches!(model, TokenizerModel::Bpe { alphabet: Alphabet::Bytes(_), .. }) {
            steps.push(PreTokenizer::Bytes);
        }
        let PostProcessor { prefix, suffix, pair } = parts.template;
        let ids = SpecialIds { bos: prefix.first().copied(), unk, ..SpecialIds::default() };
        let (partition, respelled) = self.partition(&parts.normalizers)?;
        Ok(Tokenizer {
            special: self.added.iter().filter(|t| t.special).map(|t| t.id).collect(),
            added: self.added.iter().map(|t| t.id).collect(),
            partition,
            respelled,
            name: name.to_owned(),
            tokens: vocab,
            model,
            normalizers: parts.normalizers,
            patterns: parts.splitting.patterns,
            steps,
            decoder: TokenDecoder::Chain(parts.decoder),
            ids,
            prefix,
            suffix,
            pair,
            parse_special: true,
        })
    }

    /// The model that the file names; files that name none are told apart by what is there.
    fn model(&mut self, vocab: &TokenTable, byte_level: bool) -> Result<TokenizerModel, TokenizerError> {
        let guess = match (&self.continuing_prefix, self.max_word_chars, &self.unk_token) {
            _ if self.scores.is_some() => UNIGRAM,
            _ if self.has_merges => "BPE",
            (Some(_), Some(_), Some(_)) => WORD_PIECE,
            (_, _, Some(_)) => WORD_LEVEL,
            _ => "BPE",
        };
        let kind = self.kind.take().unwrap_or_else(|| guess.to_owned());
        let own = |text: &Option<String>| text.as_ref().and_then(|text| vocab.own(text.as_bytes()));
        match (kind.as_str(), self.scores.take()) {
            (UNIGRAM, Some(scores)) => {
                let model = Unigram::new(self.name, vocab, scores, self.unk_id, self.byte_fallback)?;
                Ok(TokenizerModel::Unigram(model))
            }
            (UNIGRAM, None) => {
                Err(TokenizerError::field(self.name, "model.vocab", "is not a list of tokens and scores"))
            }
            (_, Some(_)) => Err(TokenizerError::field(self.name, "model.vocab", "is not a map from token to id")),
            (WORD_PIECE, None) => Ok(TokenizerModel::WordPiece(self.word_piece(vocab)?)),
            (WORD_LEVEL, None) => Ok(TokenizerModel::WordLevel { unk: own(&self.unk_token) }),
            _ => {
                let unknown = match (&self.unk_token, own(&self.unk_token)) {
                    (None, _) => Unknown::Dropped,
                    (Some(_), Some(id)) => Unknown::Token(id),
                    (Some(_), None) => Unknown::Refused,
                };
                Ok(self.bpe(vocab, byte_level, unknown))
            }
        }
    }

    fn bpe(&mut self, vocab: &TokenTable, byte_level: bool, unknown: Unknown) -> TokenizerModel {
        let affixes = Affixes {
            prefix: self.continuing_prefix.take().unwrap_or_default(),
            suffix: self.word_suffix.take().unwrap_or_default(),
        };
        let bytes = model::byte_alphabet(vocab);
        let whole = bytes.iter().all(|&id| id != NO_TOKEN) || unknown == Unknown::Dropped && !self.byte_fallback;
        let alphabet = if byte_level && whole && affixes.prefix.is_empty() && affixes.suffix.is_empty() {
            Alphabet::Bytes(bytes)
        } else {
            let bytes = self.byte_fallback.then(|| vocab.byte_tokens());
            Alphabet::Chars(Fallback { bytes, unknown, fuse_unk: self.fuse_unk }, affixes)
        };
        let merges = self.merges.take().filter(|_| !self.never_merges).unwrap_or_default();
        TokenizerModel::Bpe { merges, alphabet, ignore_merges: self.ignore_merges }
    }

    fn word_piece(&mut self, vocab: &TokenTable) -> Result<WordPiece, TokenizerError> {
        let absent = |key: &str| TokenizerError::field(self.name, format!("model.{key}"), "is absent");
        let unk = self.unk_token.as_deref().ok_or_else(|| absent("unk_token"))?;
        let prefix = self.continuing_prefix.clone().ok_or_else(|| absent("continuing_subword_prefix"))?;
        let most = self.max_word_chars.ok_or_else(|| absent("max_input_chars_per_word"))?;
        WordPiece::new(self.name, vocab, unk, prefix, most)
    }

    /// The searches for added tokens, and how decoding writes those that are searched for in normalised text.
    fn partition(
        &self,
        normalizers: &[normalize::Normalizer],
    ) -> Result<(Partition, HashMap<u32, String>), TokenizerError> {
        let mut raw = Vec::new();
        let mut normalized = Vec::new();
        let mut respelled = HashMap::new();
        let watch = EncodeDeadline::new(self.added.iter().map(|t| t.content.len()).sum());
        for t in &self.added {
            let mut token = AddedToken {
                id: t.id,
                text: t.content.clone(),
                special: t.special,
                single_word: t.single_word,
                lstrip: t.lstrip,
                rstrip: t.rstrip,
            };
            if !t.normalized {
                raw.push(token);
                continue;
            }
            token.text = normalize::apply(normalizers, Cow::Borrowed(&t.content), &watch)?.0.into_owned();
            let what = "length of a normalized added token in bytes";
            TokenizerError::limit(self.name, what, token.text.len(), limits::MAX_TOKEN_BYTES)?;
            if token.text != t.content {
                respelled.insert(t.id, token.text.clone());
            }
            if !token.text.is_empty() {
                normalized.push(token);
            }
        }
        let (raw, normalized) = (Leftmost::new(self.name, raw)?, Leftmost::new(self.name, normalized)?);
        Ok((Partition::Leftmost { raw, normalized }, respelled))
    }
}

/// A string that stays borrowed from the file where it has no escapes.
struct BorrowedText<'de>(Cow<'de, str>);

impl<'de> Deserialize<'de> for BorrowedText<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct TextVisitor;
        impl<'de> Visitor<'de> for TextVisitor {
            type Value = BorrowedText<'de>;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a string")
            }
            fn visit_borrowed_str<E>(self, text: &'de str) -> Result<BorrowedText<'de>, E> {
                Ok(BorrowedText(Cow::Borrowed(text)))
            }
            fn visit_str<E>(self, text: &str) -> Result<BorrowedText<'de>, E> {
                Ok(BorrowedText(Cow::Owned(text.to_owned())))
            }
        }
        deserializer.deserialize_str(TextVisitor)
    }
}

struct TopLevel<'a, 'n>(&'a mut Loader<'n>);

impl<'de> Visitor<'de> for TopLevel<'_, '_> {
    type Value = ();
    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object with the key `model`")
    }
    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        let loader = self.0;
        while let Some(BorrowedText(key)) = map.next_key()? {
            match key.as_ref() {
                "added_tokens" => {
                    loader.added = map.next_value::<Option<Vec<AddedEntry>>>()?.unwrap_or_default();
                    TokenizerError::limit(loader.name, "number of added tokens", loader.added.len(), limits::MAX_ADDED)
                        .map_err(|fault| loader.fail(fault))?;
                }
                "normalizer" => loader.normalizer = map.next_value()?,
                "pre_tokenizer" => loader.pre_tokenizer = map.next_value()?,
                "post_processor" => loader.post_processor = map.next_value()?,
                "decoder" => loader.decoder = map.next_value()?,
                "model" => map.next_value_seed(ModelSeed(loader))?,
                _ => drop(map.next_value::<IgnoredAny>()?),
            }
        }
        Ok(())
    }
}

struct ModelSeed<'a, 'n>(&'a mut Loader<'n>);

impl<'de> DeserializeSeed<'de> for ModelSeed<'_, '_> {
    type Value = ();
    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_map(self)
    }
}

impl<'de> Visitor<'de> for ModelSeed<'_, '_> {
    type Value = ();
    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a model object")
    }
    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        let loader = self.0;
        loader.has_model = true;
        while let Some(BorrowedText(key)) = map.next_key()? {
            match key.as_ref() {
                "type" => {
                    let kind: String = map.next_value()?;
                    if !KINDS.contains(&kind.as_str()) {
                        return Err(loader.fail(TokenizerError::unsupported(loader.name, "model", kind)));
                    }
                    loader.kind = Some(kind);
                }
                "vocab" => map.next_value_seed(VocabSeed(loader))?,
                "merges" => {
                    loader.has_merges = true;
                    map.next_value_seed(MergesSeed(loader))?;
                }
                "unk_token" => loader.unk_token = map.next_value()?,
                "fuse_unk" => loader.fuse_unk = map.next_value::<Option<bool>>()?.unwrap_or(false),
                "byte_fallback" => loader.byte_fallback = map.next_value::<Option<bool>>()?.unwrap_or(false),
                "ignore_merges" => loader.ignore_merges = map.next_value::<Option<bool>>()?.unwrap_or(false),
                "dropout" => loader.never_merges = dropout(loader, map.next_value::<Option<f64>>()?)?,
                "continuing_subword_prefix" => {
                    loader.continuing_prefix = map.next_value()?;
                    let late =
                        loader.merges.is_some() && loader.continuing_prefix.as_ref().is_some_and(|p| !p.is_empty());
                    if late {
                        let detail = "stands behind `merges`, which cannot be read without it";
                        let fault = TokenizerError::field(loader.name, "model.continuing_subword_prefix", detail);
                        return Err(loader.fail(fault));
                    }
                }
                "end_of_word_suffix" => loader.word_suffix = map.next_value()?,
                "unk_id" => loader.unk_id = map.next_value()?,
                "max_input_chars_per_word" => loader.max_word_chars = map.next_value()?,
                _ => drop(map.next_value::<IgnoredAny>()?),
            }
        }
        Ok(())
    }
}

/// Whether merge rules never apply. A share of them that is left out by chance is refused: the same text would become
/// other tokens each time.
fn dropout<E: serde::de::Error>(loader: &mut Loader<'_>, share: Option<f64>) -> Result<bool, E> {
    match share {
        None | Some(0.0) => Ok(false),
        Some(1.0) => Ok(true),
        Some(_) => Err(loader.fail(TokenizerError::unsupported(loader.name, "model", "BPE with dropout"))),
    }
}

struct VocabSeed<'a, 'n>(&'a mut Loader<'n>);

impl<'de> DeserializeSeed<'de> for VocabSeed<'_, '_> {
    type Value = ();
    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for VocabSeed<'_, '_> {
    type Value = ();
    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a map from token to id, or a list of tokens and scores")
    }
    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        let loader = self.0;
        let mut table = TokenTable::with_capacity(1 << 15);
        while let Some((BorrowedText(text), id)) = map.next_entry::<BorrowedText<'de>, u32>()? {
            table.insert(loader.name, id, &text).map_err(|fault| loader.fail(fault))?;
        }
        loader.vocab = Some(table);
        Ok(())
    }
    /// Tokens with their scores, by id; of a token that is there twice the last id counts.
    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<(), A::Error> {
        let loader = self.0;
        let mut table = TokenTable::with_capacity(1 << 15);
        let mut scores = Vec::new();
        while let Some((BorrowedText(text), score)) = seq.next_element::<(BorrowedText<'de>, f64)>()? {
            let id = u32::try_from(scores.len()).unwrap_or(u32::MAX);
            table.insert(loader.name, id, &text).map_err(|fault| loader.fail(fault))?;
            scores.push(score);
        }
        (loader.vocab, loader.scores) = (Some(table), Some(scores));
        Ok(())
    }
}

struct MergesSeed<'a, 'n>(&'a mut Loader<'n>);

impl<'de> DeserializeSeed<'de> for MergesSeed<'_, '_> {
    type Value = ();
    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_seq(self)
    }
}

impl<'de> Visitor<'de> for MergesSeed<'_, '_> {
    type Value = ();
    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a list of merge rules")
    }
    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<(), A::Error> {
        while seq.next_element_seed(MergeSeed(self.0))?.is_some() {}
        Ok(())
    }
}

/// One rule: `"left right"` or `["left", "right"]`.
struct MergeSeed<'a, 'n>(&'a mut Loader<'n>);

impl<'de> DeserializeSeed<'de> for MergeSeed<'_, '_> {
    type Value = ();
    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for MergeSeed<'_, '_> {
    type Value = ();
    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a merge rule: two parts in one string or in a list")
    }
    fn visit_str<E: serde::de::Error>(self, rule: &str) -> Result<(), E> {
        if rule.starts_with("#version") {
            return Ok(());
        }
        match rule.split_once(' ') {
            Some((left, right)) if !right.contains(' ') => {
                self.0.merge(left, right).map_err(|fault| self.0.fail(fault))
            }
            _ => Err(E::custom(format!("merge rule {:?} is not two parts", shorten(rule)))),
        }
    }
    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<(), A::Error> {
        let parts = (seq.next_element::<BorrowedText<'de>>()?, seq.next_element::<BorrowedText<'de>>()?);
        match (parts, seq.next_element::<IgnoredAny>()?) {
            ((Some(BorrowedText(left)), Some(BorrowedText(right))), None) => {
                self.0.merge(&left, &right).map_err(|fault| self.0.fail(fault))
            }
            _ => Err(serde::de::Error::custom("a merge rule is not two parts")),
        }
    }
}
