//! Fills [`GgufVocab`] from a parsed GGUF header of this crate.

use super::error::TokenizerError;
use super::gguf::GgufVocab;
use crate::gguf::{Gguf, GgufValue};

impl<'a> GgufVocab<'a> {
    /// Borrows the tokenizer metadata of `gguf`.
    ///
    /// # Errors
    /// [`TokenizerError::Field`] for a key that is required and absent, or present with another type.
    pub fn from_header(gguf: &'a Gguf) -> Result<Self, TokenizerError> {
        let reader = GgufMetaReader { gguf };
        let model = reader.get("tokenizer.ggml.model", GgufValue::as_str)?;
        let tokens = reader.strings("tokenizer.ggml.tokens")?;
        let absent = |key: &str| TokenizerError::field(gguf.name(), key, "is absent: the file has no tokenizer");
        Ok(Self {
            name: gguf.name(),
            model: model.ok_or_else(|| absent("tokenizer.ggml.model"))?,
            pre: reader.get("tokenizer.ggml.pre", GgufValue::as_str)?,
            model_name: gguf.get("general.name").and_then(GgufValue::as_str),
            tokens: tokens.ok_or_else(|| absent("tokenizer.ggml.tokens"))?,
            scores: reader.get("tokenizer.ggml.scores", |v| Some(v.as_array()?.as_f32s()?.to_vec()))?,
            token_types: reader.get("tokenizer.ggml.token_type", |v| Some(v.as_array()?.as_i32s()?.to_vec()))?,
            merges: reader.strings("tokenizer.ggml.merges")?,
            bos: reader.get("tokenizer.ggml.bos_token_id", GgufValue::as_u32)?,
            eos: reader.get("tokenizer.ggml.eos_token_id", GgufValue::as_u32)?,
            unk: reader.get("tokenizer.ggml.unknown_token_id", GgufValue::as_u32)?,
            pad: reader.get("tokenizer.ggml.padding_token_id", GgufValue::as_u32)?,
            eot: reader.get("tokenizer.ggml.eot_token_id", GgufValue::as_u32)?,
            eom: reader.get("tokenizer.ggml.eom_token_id", GgufValue::as_u32)?,
            add_bos: reader.get("tokenizer.ggml.add_bos_token", GgufValue::as_bool)?,
            add_eos: reader.get("tokenizer.ggml.add_eos_token", GgufValue::as_bool)?,
            add_space_prefix: reader.get("tokenizer.ggml.add_space_prefix", GgufValue::as_bool)?,
        })
    }
}

struct GgufMetaReader<'a> {
    gguf: &'a Gguf,
}

impl<'a> GgufMetaReader<'a> {
    fn get<T>(&self, key: &str, read: impl Fn(&'a GgufValue) -> Option<T>) -> Result<Option<T>, TokenizerError> {
        let Some(value) = self.gguf.get(key) else { return Ok(None) };
        let wrong = || format!("has the type {}, which does not fit", value.type_name());
        read(value).map(Some).ok_or_else(|| TokenizerError::field(self.gguf.name(), key, wrong()))
    }

    fn strings(&self, key: &str) -> Result<Option<Vec<&'a str>>, TokenizerError> {
        self.get(key, |value| Some(value.as_strings()?.iter().collect()))
    }
}
