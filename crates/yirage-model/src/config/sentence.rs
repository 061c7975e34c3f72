//! What lies beside a model about vectors of whole texts: the files of sentence-transformers, or keys of a GGUF file.
//!
//! Knows nothing of how a vector is computed.

use super::access::{Section, mismatch};
use super::names::AS_WRITTEN;
use super::parse_object;
use crate::checkpoint::Checkpoint;
use crate::error::ModelError;
use crate::gguf::{Gguf, GgufValue};
use crate::limits::CONFIG_BYTES;
use serde_json::Value;
use std::collections::BTreeMap;
use std::path::{Component, Path, PathBuf};
use yirage_mmap::{read_bytes, read_bytes_if_there};

/// How vectors of tokens become one of their text.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Pooling {
    /// The mean of all.
    Mean,
    /// The first.
    Cls,
    /// The last.
    Last,
}

/// Suggestions of a model's makers for vectors of texts.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct SentenceConfig {
    /// How a text's vector is made.
    pub pooling: Pooling,
    /// Whether vectors get the length 1.
    pub normalise: bool,
    /// Tokens of the longest text the model is meant for, where stated.
    pub longest: Option<u32>,
    /// Whether files say how a vector is made: the model is meant for vectors.
    pub stated: bool,
    /// Texts that stand before others, by the names of what these are for.
    pub prompts: BTreeMap<String, String>,
    /// The name of the one that stands before a text of which nothing is said.
    pub default_prompt: Option<String>,
}

/// Names of a pooling in older and current files, and those that are computed.
const POOLINGS: &[(&str, &str, Option<Pooling>)] = &[
    ("pooling_mode_mean_tokens", "mean", Some(Pooling::Mean)),
    ("pooling_mode_cls_token", "cls", Some(Pooling::Cls)),
    ("pooling_mode_lasttoken", "lasttoken", Some(Pooling::Last)),
    ("pooling_mode_max_tokens", "max", None),
    ("pooling_mode_mean_sqrt_len_tokens", "mean_sqrt_len_tokens", None),
    ("pooling_mode_weightedmean_tokens", "weightedmean", None),
];

impl SentenceConfig {
    /// What sentence-transformers does with a model that comes without its files.
    const BARE: SentenceConfig = SentenceConfig {
        pooling: Pooling::Mean,
        normalise: false,
        longest: None,
        stated: false,
        prompts: BTreeMap::new(),
        default_prompt: None,
    };

    /// The suggestions beside a checkpoint.
    ///
    /// # Errors
    /// [`ModelError::Unsupported`] for modules and poolings that are not computed; [`ModelError`] for malformed files.
    pub fn load(checkpoint: &Checkpoint) -> Result<SentenceConfig, ModelError> {
        if let Some(gguf) = checkpoint.gguf() {
            return Ok(SentenceConfig::of_gguf(gguf));
        }
        let Some(folder) = checkpoint.folder() else { return Ok(SentenceConfig::BARE) };
        let longest = longest(&folder.join("sentence_bert_config.json"))?;
        let mut config = SentenceConfig { longest, ..SentenceConfig::BARE };
        config.read_prompts(&folder.join("config_sentence_transformers.json"))?;
        let path = folder.join("modules.json");
        let Some(bytes) = read_bytes_if_there(&path, CONFIG_BYTES)? else { return Ok(config) };
        let file = path.display().to_string();
        let modules: Value = serde_json::from_slice(&bytes).map_err(|e| ModelError::json(&file, &e))?;
        let modules = modules.as_array().ok_or_else(|| mismatch(&file, "the file", "a list of modules", &modules))?;
        for module in modules {
            let kind = module.get("type").and_then(Value::as_str);
            let kind = kind.ok_or_else(|| mismatch(&file, "type", "a module's type", module))?;
            match kind.rsplit('.').next().unwrap_or(kind) {
                "Transformer" => {}
                "Pooling" => {
                    config.pooling = pooling(&inside(folder, module, &file)?)?;
                    config.stated = true;
                }
                "Normalize" => config.normalise = true,
                other => {
                    let (what, why) = (format!("the module {other}"), format!("{file}: {kind} is behind the encoder"));
                    return Err(ModelError::Unsupported { what, why });
                }
            }
        }
        Ok(config)
    }

    /// What llama.cpp does with a file: vectors get the length 1.
    fn of_gguf(gguf: &Gguf) -> SentenceConfig {
        let pooling = match gguf.arch_key("pooling_type").and_then(GgufValue::as_u32) {
            Some(1) => Pooling::Mean,
            Some(2) => Pooling::Cls,
            Some(3) => Pooling::Last,
            _ => return SentenceConfig::BARE,
        };
        SentenceConfig { pooling, normalise: true, stated: true, ..SentenceConfig::BARE }
    }

    fn read_prompts(&mut self, path: &Path) -> Result<(), ModelError> {
        let Some(bytes) = read_bytes_if_there(path, CONFIG_BYTES)? else { return Ok(()) };
        let file = path.display().to_string();
        let values = parse_object(&bytes, &file)?;
        let s = Section { file: &file, prefix: "", values: &values, names: &AS_WRITTEN };
        self.default_prompt = s.opt_str("default_prompt_name")?.map(str::to_owned);
        let Some(prompts) = s.get("prompts").filter(|prompts| !prompts.is_null()) else { return Ok(()) };
        let texts = prompts.as_object().ok_or_else(|| mismatch(&file, "prompts", "texts by names", prompts))?;
        for (name, text) in texts {
            let text = text.as_str().ok_or_else(|| mismatch(&file, "prompts", "texts by names", text))?;
            self.prompts.insert(name.clone(), text.to_owned());
        }
        match &self.default_prompt {
            Some(name) if !self.prompts.contains_key(name) => {
                Err(mismatch(&file, "default_prompt_name", "one of prompts", &Value::from(name.as_str())))
            }
            _ => Ok(()),
        }
    }
}

fn longest(path: &Path) -> Result<Option<u32>, ModelError> {
    let Some(bytes) = read_bytes_if_there(path, CONFIG_BYTES)? else { return Ok(None) };
    let file = path.display().to_string();
    let values = parse_object(&bytes, &file)?;
    let s = Section { file: &file, prefix: "", values: &values, names: &AS_WRITTEN };
    match s.opt_u32("max_seq_length")? {
        Some(0) => Err(mismatch(&file, "max_seq_length", "an integer above 0", &Value::from(0))),
        found => Ok(found),
    }
}

/// The configuration of a module, whose folder is named by a file that nobody trusts.
fn inside(folder: &Path, module: &Value, file: &str) -> Result<PathBuf, ModelError> {
    let stated = module.get("path").unwrap_or(&Value::Null);
    let path = stated.as_str().map(Path::new);
    let plain = |p: &&Path| p.components().all(|part| matches!(part, Component::Normal(_)));
    let path = path.filter(plain).ok_or_else(|| mismatch(file, "path", "a folder beside the file", stated))?;
    Ok(folder.join(path).join("config.json"))
}

fn pooling(path: &Path) -> Result<Pooling, ModelError> {
    let file = path.display().to_string();
    let values = parse_object(&read_bytes(path, CONFIG_BYTES)?, &file)?;
    let s = Section { file: &file, prefix: "", values: &values, names: &AS_WRITTEN };
    let mut wanted = Vec::new();
    for (key, name, _) in POOLINGS {
        if s.opt_bool(key)? == Some(true) {
            wanted.push(*name);
        }
    }
    if s.get("pooling_mode").is_some() {
        wanted = s.opt_str("pooling_mode")?.into_iter().collect();
    }
    let computed = match wanted[..] {
        [] => Some(Pooling::Mean),
        [name] => POOLINGS.iter().find(|p| p.1 == name).and_then(|p| p.2),
        _ => None,
    };
    computed.ok_or_else(|| ModelError::Unsupported {
        what: format!("the pooling {}", wanted.join(" and ")),
        why: format!("{file}: names it; one of mean, cls and lasttoken is computed"),
    })
}
