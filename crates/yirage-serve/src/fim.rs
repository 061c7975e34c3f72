//! Prompts to fill in: the text before and behind a gap, between the tokens that a model was trained on.
//!
//! The tokens are found by their texts, as llama.cpp finds them (`llama-vocab.cpp`). Models name them in many ways.

use crate::error::ApiError;
use yirage_model::tokenizer::{EncodeOptions, Tokenizer};
use yirage_session::TextProcessor;

const BEFORE: &[&str] =
    &["<|fim_prefix|>", "<fim-prefix>", "<fim_prefix>", "<PRE>", "▁<PRE>", "<｜fim▁begin｜>", "<|code_prefix|>"];
const BEHIND: &[&str] =
    &["<|fim_suffix|>", "<fim-suffix>", "<fim_suffix>", "<SUF>", "▁<SUF>", "<｜fim▁hole｜>", "<|code_suffix|>"];
const MIDDLE: &[&str] =
    &["<|fim_middle|>", "<fim-middle>", "<fim_middle>", "<MID>", "▁<MID>", "<｜fim▁end｜>", "<|code_middle|>"];
const REPOSITORY: &[&str] = &["<|fim_repo|>", "<|repo_name|>", "<fim-repo>", "<REPO>", "<reponame>"];
const FILE: &[&str] = &["<|file_sep|>"];

/// What llama.cpp calls the project that all files are of.
const PROJECT: &str = "myproject\n";

/// Another file of the project.
pub(crate) struct FimFile {
    pub(crate) name: String,
    pub(crate) text: String,
}

/// A text with a gap.
pub(crate) struct Gap<'a> {
    pub(crate) before: &'a str,
    pub(crate) behind: &'a str,
    /// What the filling begins with.
    pub(crate) begun: &'a str,
    pub(crate) files: &'a [FimFile],
}

fn token(tokenizer: &Tokenizer, names: &[&str]) -> Option<u32> {
    names.iter().find_map(|name| tokenizer.token_id(name))
}

impl Gap<'_> {
    /// The prompt by which a model fills the gap. `field` is the one that asks for it.
    ///
    /// # Errors
    /// A model that was not made for it, by the token that it lacks.
    pub(crate) fn prompt(&self, texts: &TextProcessor, field: &str) -> Result<Vec<u32>, ApiError> {
        let tokenizer = &texts.tokenizer;
        let need = |names: &[&str]| {
            token(tokenizer, names).ok_or_else(|| {
                let why = format!("the model was not made to fill in: it has none of the tokens {}", names.join(" "));
                ApiError::unsupported(field, &why)
            })
        };
        let (before, behind, middle) = (need(BEFORE)?, need(BEHIND)?, need(MIDDLE)?);
        let encode = |text: &str| {
            let options = EncodeOptions { add_special: false, parse_special: false };
            tokenizer.encode(text, options).map_err(|e| ApiError::field(field, e.to_string()))
        };
        let mut ids = tokenizer.prefix().to_vec();
        if !self.files.is_empty() {
            if let Some(repository) = token(tokenizer, REPOSITORY) {
                ids.push(repository);
                ids.extend(encode(PROJECT)?);
            }
            let mark = token(tokenizer, FILE);
            for file in self.files {
                match mark {
                    Some(mark) => {
                        ids.push(mark);
                        ids.extend(encode(&format!("{}\n", file.name))?);
                    }
                    // A model without a mark of files gets a line that llama.cpp uses for one.
                    None => ids.extend(encode("\n\n--- snippet ---\n\n")?),
                }
                ids.extend(encode(&file.text)?);
            }
            if let Some(mark) = mark {
                ids.push(mark);
                ids.extend(encode("filename\n")?);
            }
        }
        ids.push(before);
        ids.extend(encode(self.before)?);
        ids.push(behind);
        ids.extend(encode(self.behind)?);
        ids.push(middle);
        ids.extend(encode(self.begun)?);
        Ok(ids)
    }
}
