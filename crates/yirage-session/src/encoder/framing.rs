//! How texts are put to a model for vectors and scores: prompts before them, and the text that Qwen3's rerankers read.

use crate::error::SessionError;
use std::collections::BTreeMap;
use yirage_model::Checkpoint;
use yirage_model::config::SentenceConfig;
use yirage_model::tokenizer::{EncodeOptions, FramedTokens, Tokenizer};

/// What stands before a pair, between its parts and behind it (Qwen3-Reranker's description).
const BEFORE: &str = "<|im_start|>system\nJudge whether the Document meets the requirements based on the Query and the Instruct provided. Note that the answer can only be \"yes\" or \"no\".<|im_end|>\n<|im_start|>user\n";
const BEHIND: &str = "<|im_end|>\n<|im_start|>assistant\n<think>\n\n</think>\n\n";
/// What an answer is where nobody says otherwise.
const INSTRUCTION: &str = "Given a web search query, retrieve relevant passages that answer the query";

/// How texts are framed.
pub(super) struct TextFraming {
    prompts: BTreeMap<String, String>,
    usual: Option<String>,
    /// Whether pairs are put to a decoder, as a question to be answered with yes or no.
    asks: bool,
}

impl TextFraming {
    /// What the files beside a model say.
    ///
    /// # Errors
    /// Files that are there and wrong.
    pub(super) fn load(checkpoint: &Checkpoint, asks: bool) -> Result<TextFraming, SessionError> {
        let SentenceConfig { prompts, default_prompt: usual, .. } = SentenceConfig::load(checkpoint)?;
        Ok(TextFraming { prompts, usual, asks })
    }

    /// What stands before a text.
    ///
    /// # Errors
    /// [`SessionError::Prompt`].
    pub(super) fn prompt(&self, name: Option<&str>) -> Result<&str, SessionError> {
        let Some(name) = name.or(self.usual.as_deref()) else { return Ok("") };
        let names = || self.prompts.keys().cloned().collect();
        let missing = || SessionError::Prompt { name: name.to_owned(), names: names() };
        self.prompts.get(name).map(String::as_str).ok_or_else(missing)
    }

    /// A query and a text. With a `limit` the end of a longer pair is left out, and what stands behind it is not.
    ///
    /// # Errors
    /// [`SessionError::Instruction`]; as [`Tokenizer::frame_pair`].
    pub(super) fn pair(
        &self,
        tokenizer: &Tokenizer,
        (query, text): (&str, &str),
        instruction: Option<&str>,
        limit: Option<usize>,
    ) -> Result<FramedTokens, SessionError> {
        if !self.asks {
            return match instruction {
                Some(_) => Err(SessionError::Instruction),
                None => Ok(tokenizer.frame_pair(query, text, limit)?),
            };
        }
        let marks = EncodeOptions { add_special: false, parse_special: true };
        let plain = EncodeOptions { add_special: false, ..tokenizer.default_options() };
        let before = tokenizer.encode(BEFORE, marks)?;
        let behind = tokenizer.encode(BEHIND, marks)?;
        let instruction = instruction.unwrap_or(INSTRUCTION);
        let mut pair =
            tokenizer.encode(&format!("<Instruct>: {instruction}\n<Query>: {query}\n<Document>: {text}"), plain)?;
        let room = limit.map_or(pair.len(), |limit| limit.saturating_sub(before.len() + behind.len()));
        let cut = pair.len().saturating_sub(room);
        pair.truncate(room);
        let ids = [before, pair, behind].concat();
        Ok(FramedTokens { types: vec![0; ids.len()], ids, cut })
    }
}
