//! What a model's files say about generating: where text ends, and suggested sampling.

use super::access::Section;
use super::names::AS_WRITTEN;
use super::{RawConfig, access, parse_object};
use crate::checkpoint::Checkpoint;
use crate::error::ModelError;
use crate::gguf::{Gguf, GgufArray, GgufValue};
use crate::limits::CONFIG_BYTES;
use std::path::Path;
use yirage_mmap::read_bytes_if_there;

/// Suggestions of a model's makers. Requests and options override every one.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct GenerationConfig {
    /// Ids that end a text, sorted, each once.
    pub eos: Vec<u32>,
    /// Id that begins a text.
    pub bos: Option<u32>,
    /// `false` asks for the most likely token whatever the values below say.
    pub do_sample: Option<bool>,
    /// Sampling temperature.
    pub temperature: Option<f64>,
    /// Number of tokens sampled from.
    pub top_k: Option<u32>,
    /// Probability mass sampled from.
    pub top_p: Option<f64>,
    /// Least probability relative to the most likely token's.
    pub min_p: Option<f64>,
    /// Divisor of the logits of tokens seen before.
    pub repetition_penalty: Option<f64>,
    /// Token ids of the files that are none and are left out, in words.
    pub ignored: Vec<String>,
}

/// Control tokens that end a turn or a text by the conventions of their vocabularies. GGUF files name one or two ids;
/// models end turns by the others as well.
const ENDINGS: &[&str] = &[
    "<|eot_id|>",
    "<|eom_id|>",
    "<|im_end|>",
    "<|end|>",
    "<|endoftext|>",
    "<|end_of_text|>",
    "<end_of_turn>",
    "<|return|>",
    "<|call|>",
    "<|observation|>",
];

/// Ends a message but not a turn, in vocabularies that have [`HARMONY_RETURN`].
const HARMONY_END: &str = "<|end|>";
const HARMONY_RETURN: &str = "<|return|>";

impl GenerationConfig {
    /// The suggestions beside a checkpoint: `generation_config.json` where there is one, completed by `config`; or GGUF
    /// metadata.
    ///
    /// # Errors
    /// [`ModelError`] for a malformed file.
    pub fn load(checkpoint: &Checkpoint, config: &RawConfig) -> Result<GenerationConfig, ModelError> {
        if let Some(gguf) = checkpoint.gguf() {
            return GenerationConfig::from_gguf(gguf);
        }
        let path = checkpoint.folder().unwrap_or(Path::new("")).join("generation_config.json");
        let bytes = read_bytes_if_there(&path, CONFIG_BYTES)?;
        let bytes = bytes.as_deref().unwrap_or(b"{}");
        GenerationConfig::from_json(bytes, &path.display().to_string(), config)
    }

    /// Parses a `generation_config.json`; token ids that it does not state are taken from `config`.
    ///
    /// # Errors
    /// [`ModelError::Json`] or [`ModelError::Config`].
    pub fn from_json(bytes: &[u8], file: &str, config: &RawConfig) -> Result<GenerationConfig, ModelError> {
        let values = parse_object(bytes, file)?;
        let s = Section { file, prefix: "", values: &values, names: &AS_WRITTEN };
        let mut ids = TokenIds { own: &s, config, ignored: Vec::new() };
        let settings = GenerationConfig {
            eos: sorted(ids.read("eos_token_id")?),
            bos: ids.read("bos_token_id")?.first().copied(),
            do_sample: s.opt_bool("do_sample")?,
            temperature: s.opt_f64("temperature")?,
            top_k: s.opt_u32("top_k")?,
            top_p: s.opt_f64("top_p")?,
            min_p: s.opt_f64("min_p")?,
            repetition_penalty: s.opt_f64("repetition_penalty")?,
            // Nothing fills batches here: whatever is stated as that id changes nothing.
            ignored: ids.ignored_with("pad_token_id"),
        };
        settings.check(file, ["temperature", "top_p", "min_p", "repetition_penalty"])?;
        Ok(settings)
    }

    /// Reads GGUF metadata.
    ///
    /// # Errors
    /// [`ModelError::Config`] for values of another type.
    pub fn from_gguf(gguf: &Gguf) -> Result<GenerationConfig, ModelError> {
        let mut eos = endings_by_text(gguf);
        for key in ["eos", "eot", "eom"] {
            eos.extend(id(gguf, &format!("tokenizer.ggml.{key}_token_id"))?);
        }
        let settings = GenerationConfig {
            eos: sorted(eos),
            bos: id(gguf, "tokenizer.ggml.bos_token_id")?,
            do_sample: None,
            temperature: number(gguf, "general.sampling.temp")?,
            top_k: id(gguf, "general.sampling.top_k")?,
            top_p: number(gguf, "general.sampling.top_p")?,
            min_p: number(gguf, "general.sampling.min_p")?,
            repetition_penalty: number(gguf, "general.sampling.penalty_repeat")?,
            ignored: Vec::new(),
        };
        let keys = ["temp", "top_p", "min_p", "penalty_repeat"].map(|key| format!("general.sampling.{key}"));
        settings.check(gguf.name(), keys.each_ref().map(String::as_str))?;
        Ok(settings)
    }

    /// Refuses suggestions that nobody could follow; `keys` are what `file` calls temperature, top-p, min-p and the
    /// repetition penalty.
    fn check(&self, file: &str, keys: [&str; 4]) -> Result<(), ModelError> {
        let values = [self.temperature, self.top_p, self.min_p, self.repetition_penalty];
        let ranges = [
            (0.0..=100.0, "a number from 0 to 100"),
            (f64::from(f32::MIN_POSITIVE)..=1.0, "a number above 0, at most 1"),
            (0.0..=1.0, "a number from 0 to 1"),
            (0.01..=100.0, "a number from 0.01 to 100"),
        ];
        for ((key, value), (range, expected)) in keys.into_iter().zip(values).zip(ranges) {
            if let Some(value) = value.filter(|x| !range.contains(x)) {
                return Err(access::mismatch(file, key, expected, &value.into()));
            }
        }
        Ok(())
    }
}

/// Token ids of `generation_config.json`, or of `config.json` where that states none.
struct TokenIds<'a> {
    own: &'a Section<'a>,
    config: &'a RawConfig,
    ignored: Vec<String>,
}

impl TokenIds<'_> {
    /// The ids under `key`. Negative numbers mean that there is none, and are reported.
    fn read(&mut self, key: &str) -> Result<Vec<u32>, ModelError> {
        let mut found = access::signed_ids(self.own, key)?;
        let mut file = self.own.file;
        if found.is_empty() {
            (found, file) = (access::signed_ids(&self.config.top(), key)?, self.config.file());
        }
        let (ids, none): (Vec<i64>, Vec<i64>) = found.into_iter().partition(|&id| id >= 0);
        self.ignored.extend(none.iter().map(|id| format!("{file}: {key} is {id}, which is no token; it is left out")));
        Ok(ids.into_iter().filter_map(|id| u32::try_from(id).ok()).collect())
    }

    /// All that is left out, with the value of `key` where it is not a token id.
    fn ignored_with(mut self, key: &str) -> Vec<String> {
        let stated = self.own.get(key).map(|v| (self.own.file, v));
        let stated = stated.or(self.config.get(key).map(|v| (self.config.file(), v)));
        if let Some((file, value)) = stated.filter(|(_, v)| access::as_u32(v).is_none()) {
            self.ignored
                .push(format!("{file}: {key} is {}, which is no token; it is left out", access::describe_value(value)));
        }
        self.ignored
    }
}

fn sorted(mut ids: Vec<u32>) -> Vec<u32> {
    ids.sort_unstable();
    ids.dedup();
    ids
}

/// Ids of [`ENDINGS`] that the vocabulary has as special tokens.
fn endings_by_text(gguf: &Gguf) -> Vec<u32> {
    const NORMAL: i32 = 1;
    let Some(tokens) = gguf.get("tokenizer.ggml.tokens").and_then(GgufValue::as_strings) else { return Vec::new() };
    let types = gguf.get("tokenizer.ggml.token_type").and_then(GgufValue::as_array).and_then(GgufArray::as_i32s);
    let special = |i: usize| types.and_then(|t| t.get(i)).is_some_and(|&t| t != NORMAL);
    let found = tokens.iter().enumerate().filter(|(i, text)| ENDINGS.contains(text) && special(*i));
    let found: Vec<(u32, &str)> = found.map(|(i, text)| (i as u32, text)).collect();
    let harmony = found.iter().any(|(_, text)| *text == HARMONY_RETURN);
    found.into_iter().filter(|(_, text)| !(harmony && *text == HARMONY_END)).map(|(i, _)| i).collect()
}

fn id(gguf: &Gguf, key: &str) -> Result<Option<u32>, ModelError> {
    read(gguf, key, "an integer from 0 to 4294967295", GgufValue::as_u32)
}

fn number(gguf: &Gguf, key: &str) -> Result<Option<f64>, ModelError> {
    read(gguf, key, "a float", GgufValue::as_f64)
}

fn read<T>(gguf: &Gguf, key: &str, expected: &str, as_t: fn(&GgufValue) -> Option<T>) -> Result<Option<T>, ModelError> {
    let Some(value) = gguf.get(key) else { return Ok(None) };
    as_t(value).map(Some).ok_or_else(|| super::gguf_mismatch::mismatch(gguf, key, expected, value))
}
