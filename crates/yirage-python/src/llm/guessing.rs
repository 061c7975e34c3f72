//! `speculative_config`: how tokens are guessed ahead, by vLLM's names. No output depends on it.

use crate::failure::{PyFailure, PyOutcome};
use crate::log::{Level, say};
use pyo3::prelude::*;
use pyo3::types::PyDict;
use std::path::PathBuf;
use yirage_engine::Speculation;
use yirage_engine::limits::MAX_DRAFTS;

const METHOD: &str = "method";
const COUNT: &str = "num_speculative_tokens";
const LEAST: &str = "prompt_lookup_min";
const LONGEST: &str = "prompt_lookup_max";
const MODEL: &str = "model";

/// What `speculative_config` may be, where it is not `None`.
#[derive(FromPyObject)]
pub(super) enum SpeculativeConfig<'py> {
    Word(String),
    Keys(Bound<'py, PyDict>),
}

/// How an engine guesses.
pub(super) struct Guessing {
    pub(super) speculation: Speculation,
    /// The smaller model that guesses.
    pub(super) draft: Option<String>,
}

impl Guessing {
    /// # Errors
    /// A word or key that is none, a number out of its range, a method that does not exist here.
    pub(super) fn of(config: Option<SpeculativeConfig<'_>>) -> PyOutcome<Guessing> {
        match config {
            None => Ok(Guessing { speculation: Speculation::default(), draft: None }),
            Some(SpeculativeConfig::Word(word)) if word == "auto" => {
                Ok(Guessing { speculation: Speculation::lookup(), draft: None })
            }
            Some(SpeculativeConfig::Word(word)) => {
                let text = format!("speculative_config={word:?}: 'auto', None or a dict with 'method' is wanted");
                Err(PyFailure::option(text))
            }
            Some(SpeculativeConfig::Keys(keys)) => Guessing::of_keys(&keys),
        }
    }

    fn of_keys(keys: &Bound<'_, PyDict>) -> PyOutcome<Guessing> {
        let known = [METHOD, COUNT, LEAST, LONGEST, MODEL];
        for key in keys.keys() {
            let key: String = key.extract()?;
            if !known.contains(&key.as_str()) {
                let text = format!("speculative_config has {key:?}: its keys are {}", known.join(", "));
                return Err(PyFailure::option(text));
            }
        }
        let method: Option<String> = keys.get_item(METHOD)?.map(|method| method.extract()).transpose()?;
        let draft: Option<PathBuf> = keys.get_item(MODEL)?.map(|model| model.extract()).transpose()?;
        let most = number(keys, COUNT, 1)?.unwrap_or(Speculation::MOST);
        let (lookup, mtp) = match (method.as_deref(), &draft) {
            (Some("ngram"), None) => (true, false),
            (Some("mtp"), None) => (false, true),
            (Some("draft_model") | None, Some(_)) => (false, false),
            (Some("ngram"), Some(_)) => {
                return Err(PyFailure::option("speculative_config: 'ngram' guesses without a model"));
            }
            (Some("mtp"), Some(_)) => {
                let text = "speculative_config: by 'mtp' the model's own layer guesses, without a model beside it";
                return Err(PyFailure::option(text));
            }
            (Some("draft_model") | None, None) => {
                let text = "speculative_config names nobody who guesses: 'method': 'ngram' or 'mtp', or 'model': PATH";
                return Err(PyFailure::option(text));
            }
            (Some(other), _) => {
                let why = "tokens are guessed by 'ngram', by 'draft_model' and by 'mtp'";
                return Err(PyFailure::unsupported(format!("speculative_config with method {other:?}"), why));
            }
        };
        if keys.contains(LONGEST)? {
            let told = "speculative_config: prompt_lookup_max changes nothing, the longest match is taken";
            say(keys.py(), Level::Info, told)?;
        }
        let ngram = number(keys, LEAST, 0)?.unwrap_or(0);
        let draft = draft.map(|model| model.to_string_lossy().into_owned());
        Ok(Guessing { speculation: Speculation { most, lookup, ngram, mtp, ..Speculation::default() }, draft })
    }
}

/// A number of the dict, from `least` to the most guesses that a step can have.
fn number(keys: &Bound<'_, PyDict>, key: &str, least: u32) -> PyOutcome<Option<u32>> {
    let Some(given) = keys.get_item(key)? else { return Ok(None) };
    match given.extract::<u32>().ok().filter(|n| (least..=MAX_DRAFTS).contains(n)) {
        Some(number) => Ok(Some(number)),
        None => {
            let text = format!("speculative_config: {key}={given}: a number from {least} to {MAX_DRAFTS} is wanted");
            Err(PyFailure::option(text))
        }
    }
}
