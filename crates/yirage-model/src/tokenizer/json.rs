//! Tokenizers from `tokenizer.json`.
//!
//! The file is read in one pass: vocabulary and merge rules go straight from the bytes into the flat tables, nothing
//! of them is kept as JSON.

use std::borrow::Cow;
use std::fmt;

use serde::Deserialize;
use serde::de::{DeserializeSeed, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::Value;

use super::added::{Added, Leftmost};
use super::error::{TokenizerError, shorten};
use super::json_parts::{self, Parts, Template};
use super::limits;
use super::model::{self, Alphabet, Fallback, Merges, Model};
use super::vocab::TokenTable;
use super::watch::Watch;
use super::wordpiece::WordPiece;
use super::{Partition, SpecialIds, Tokenizer, normalize};

/// The model of BERT, by the name that files give it.
const WORD_PIECE: &str = "WordPiece";

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
        let config: Config = serde_json::from_slice(bytes).map_err(|error| TokenizerError::Json {
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
struct Config {
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
    /// Rules that came before the vocabulary they are about.
    early_merges: Vec<(String, String)>,
    kind: Option<String>,
    unk_token: Option<String>,
    fuse_unk: bool,
    byte_fallback: bool,
    ignore_merges: bool,
    continuing_prefix: Option<String>,
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
        merges.push(vocab, left, right).map_err(|text| {
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
        for token in &self.added {
            vocab.insert(name, token.id, &token.content)?;
        }
        vocab.shrink();
        let parts = Parts {
            normalizers: json_parts::normalizers(name, &self.normalizer)?,
            splitting: json_parts::pre_tokenizers(name, &self.pre_tokenizer)?,
            decoder: json_parts::decoder(name, &self.decoder)?,
            template: json_parts::template(name, &self.post_processor, &vocab)?,
        };
        self.assemble(vocab, parts)
    }

    fn assemble(mut self, vocab: TokenTable, parts: Parts) -> Result<Tokenizer, TokenizerError> {
        let name = self.name;
        let unk = self.unk_token.as_ref().and_then(|text| vocab.get(text.as_bytes()));
        let model = match self.kind.as_deref() {
            Some(WORD_PIECE) => Model::WordPiece(self.word_piece(&vocab)?),
            _ => self.bpe(&vocab, parts.splitting.byte_level, unk)?,
        };
        let Template { prefix, suffix, pair } = parts.template;
        let ids = SpecialIds { bos: prefix.first().copied(), unk, ..SpecialIds::default() };
        let sorted = |wanted: &dyn Fn(&AddedEntry) -> bool| {
            let mut ids: Vec<u32> = self.added.iter().filter(|t| wanted(t)).map(|t| t.id).collect();
            ids.sort_unstable();
            ids
        };
        Ok(Tokenizer {
            special: sorted(&|t| t.special),
            added: sorted(&|_| true),
            partition: self.partition(&parts.normalizers)?,
            name: name.to_owned(),
            tokens: vocab,
            model,
            normalizers: parts.normalizers,
            steps: parts.splitting.steps,
            decoder: parts.decoder,
            ids,
            prefix,
            suffix,
            pair,
            parse_special: true,
        })
    }

    fn bpe(&mut self, vocab: &TokenTable, byte_level: bool, unk: Option<u32>) -> Result<Model, TokenizerError> {
        if self.continuing_prefix.as_ref().is_some_and(|prefix| !prefix.is_empty()) {
            return Err(TokenizerError::unsupported(self.name, "model", "BPE with continuing_subword_prefix"));
        }
        let alphabet = if byte_level {
            Alphabet::Bytes(model::byte_alphabet(vocab))
        } else {
            let bytes = if self.byte_fallback { model::byte_fallback(vocab) } else { None };
            Alphabet::Chars(Fallback { bytes, unk, fuse_unk: self.fuse_unk })
        };
        let merges = self.merges.take().unwrap_or_default();
        Ok(Model::Bpe { merges, alphabet, ignore_merges: self.ignore_merges })
    }

    fn word_piece(&mut self, vocab: &TokenTable) -> Result<WordPiece, TokenizerError> {
        let absent = |key: &str| TokenizerError::field(self.name, format!("model.{key}"), "is absent");
        let unk = self.unk_token.as_deref().ok_or_else(|| absent("unk_token"))?;
        let prefix = self.continuing_prefix.clone().ok_or_else(|| absent("continuing_subword_prefix"))?;
        let most = self.max_word_chars.ok_or_else(|| absent("max_input_chars_per_word"))?;
        WordPiece::new(self.name, vocab, unk, prefix, most)
    }

    fn partition(&self, normalizers: &[normalize::Normalizer]) -> Result<Partition, TokenizerError> {
        let mut raw = Vec::new();
        let mut normalized = Vec::new();
        let watch = Watch::new(self.added.iter().map(|t| t.content.len()).sum());
        for t in self.added.iter().filter(|t| !t.content.is_empty()) {
            let mut token = Added {
                id: t.id,
                text: t.content.clone(),
                special: t.special,
                single_word: t.single_word,
                lstrip: t.lstrip,
                rstrip: t.rstrip,
            };
            if t.normalized {
                token.text = normalize::apply(normalizers, Cow::Borrowed(&t.content), &watch)?.into_owned();
                let what = "length of a normalized added token in bytes";
                TokenizerError::limit(self.name, what, token.text.len(), limits::MAX_TOKEN_BYTES)?;
                normalized.push(token);
            } else {
                raw.push(token);
            }
        }
        let (raw, normalized) = (Leftmost::new(self.name, raw)?, Leftmost::new(self.name, normalized)?);
        Ok(Partition::Leftmost { raw, normalized })
    }
}

/// A string that stays borrowed from the file where it has no escapes.
struct Text<'de>(Cow<'de, str>);

impl<'de> Deserialize<'de> for Text<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct TextVisitor;
        impl<'de> Visitor<'de> for TextVisitor {
            type Value = Text<'de>;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a string")
            }
            fn visit_borrowed_str<E>(self, text: &'de str) -> Result<Text<'de>, E> {
                Ok(Text(Cow::Borrowed(text)))
            }
            fn visit_str<E>(self, text: &str) -> Result<Text<'de>, E> {
                Ok(Text(Cow::Owned(text.to_owned())))
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
        while let Some(Text(key)) = map.next_key()? {
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
        while let Some(Text(key)) = map.next_key()? {
            match key.as_ref() {
                "type" => {
                    let kind: String = map.next_value()?;
                    if kind != "BPE" && kind != WORD_PIECE {
                        return Err(loader.fail(TokenizerError::unsupported(loader.name, "model", kind)));
                    }
                    loader.kind = Some(kind);
                }
                "vocab" => map.next_value_seed(VocabSeed(loader))?,
                "merges" => map.next_value_seed(MergesSeed(loader))?,
                "unk_token" => loader.unk_token = map.next_value()?,
                "fuse_unk" => loader.fuse_unk = map.next_value::<Option<bool>>()?.unwrap_or(false),
                "byte_fallback" => loader.byte_fallback = map.next_value::<Option<bool>>()?.unwrap_or(false),
                "ignore_merges" => loader.ignore_merges = map.next_value::<Option<bool>>()?.unwrap_or(false),
                "dropout" => refuse_set(loader, "dropout", &map.next_value()?)?,
                "continuing_subword_prefix" => loader.continuing_prefix = map.next_value()?,
                "max_input_chars_per_word" => loader.max_word_chars = map.next_value()?,
                "end_of_word_suffix" => refuse_set(loader, "end_of_word_suffix", &map.next_value()?)?,
                _ => drop(map.next_value::<IgnoredAny>()?),
            }
        }
        Ok(())
    }
}

/// Options of BPE that change the algorithm and that no supported model uses: anything but "off" is refused by name.
fn refuse_set<E: serde::de::Error>(loader: &mut Loader<'_>, field: &str, value: &Value) -> Result<(), E> {
    let off = value.is_null() || value.as_str() == Some("") || value.as_f64() == Some(0.0);
    if off {
        Ok(())
    } else {
        Err(loader.fail(TokenizerError::unsupported(loader.name, "model", format!("BPE with {field}"))))
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
        f.write_str("a map from token to id")
    }
    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        let loader = self.0;
        let mut table = TokenTable::with_capacity(1 << 15);
        while let Some((Text(text), id)) = map.next_entry::<Text<'de>, u32>()? {
            table.insert(loader.name, id, &text).map_err(|fault| loader.fail(fault))?;
        }
        loader.vocab = Some(table);
        Ok(())
    }
    fn visit_seq<A: SeqAccess<'de>>(self, _: A) -> Result<(), A::Error> {
        Err(self.0.fail(TokenizerError::unsupported(self.0.name, "model", "Unigram")))
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
        match rule.split_once(' ') {
            Some((left, right)) if !right.contains(' ') => {
                self.0.merge(left, right).map_err(|fault| self.0.fail(fault))
            }
            _ => Err(E::custom(format!("merge rule {:?} is not two parts", shorten(rule)))),
        }
    }
    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<(), A::Error> {
        let parts = (seq.next_element::<Text<'de>>()?, seq.next_element::<Text<'de>>()?);
        match (parts, seq.next_element::<IgnoredAny>()?) {
            ((Some(Text(left)), Some(Text(right))), None) => {
                self.0.merge(&left, &right).map_err(|fault| self.0.fail(fault))
            }
            _ => Err(serde::de::Error::custom("a merge rule is not two parts")),
        }
    }
}
