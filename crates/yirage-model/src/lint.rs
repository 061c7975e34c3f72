//! What a user should know about a model before running it: findings for `yirage inspect`.
//!
//! Builds the model as loading does, so that whatever loading refuses is a finding, but looks at no weights (only a head
//! that a file holds beside a tied embedding is compared with it). It does not parse tokenizers or templates: their own
//! loading says what is wrong with them.

use crate::arch::{self, BuildOptions};
use crate::checkpoint::{Checkpoint, StoredType, TensorInfo};
use crate::config::{GenerationConfig, RawConfig, is_read_from_gguf};
use crate::error::ModelError;
use crate::gguf::{Gguf, GgufValue};
use crate::limits::CONFIG_BYTES;
use std::collections::BTreeMap;
use yirage_mmap::read_bytes;

/// How much a finding matters.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Severity {
    /// Good to know.
    Note,
    /// The model runs, but not as its makers meant.
    Warning,
    /// The model cannot run.
    Error,
}

/// One finding.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct LintFinding {
    /// How much it matters.
    pub severity: Severity,
    /// What is the matter, with the numbers.
    pub what: String,
    /// The file, key or tensor.
    pub place: String,
    /// What to do.
    pub remedy: String,
}

/// Names of the embedding whose rows are the vocabulary, by container and family.
const EMBEDDINGS: &[&str] = &[
    "token_embd.weight",
    "model.embed_tokens.weight",
    "model.language_model.embed_tokens.weight",
    "language_model.model.embed_tokens.weight",
    "transformer.wte.weight",
    "gpt_neox.embed_in.weight",
];

/// All findings about `checkpoint`, the gravest first.
pub fn lint(checkpoint: &Checkpoint) -> Vec<LintFinding> {
    let mut linter = Linter { checkpoint, findings: Vec::new() };
    match RawConfig::load(checkpoint) {
        Ok(config) => linter.config(&config),
        Err(e) => linter.failure("the configuration cannot be read", &e),
    }
    linter.decoded();
    match checkpoint.gguf() {
        Some(gguf) => linter.gguf(gguf),
        None => linter.folder(),
    }
    linter.findings.sort_by_key(|f| std::cmp::Reverse(f.severity));
    linter.findings
}

struct Linter<'a> {
    checkpoint: &'a Checkpoint,
    findings: Vec<LintFinding>,
}

impl Linter<'_> {
    fn add(&mut self, severity: Severity, place: impl Into<String>, what: impl Into<String>, remedy: &str) {
        let (place, what, remedy) = (place.into(), what.into(), remedy.to_owned());
        self.findings.push(LintFinding { severity, what, place, remedy });
    }

    /// An error whose own text carries place and remedy.
    fn failure(&mut self, what: &str, e: &ModelError) {
        let place = self.checkpoint.label();
        self.add(Severity::Error, place, format!("{what}: {e}"), "follow the message");
    }

    fn formats(&mut self) {
        let mut unsupported: BTreeMap<String, Vec<&TensorInfo>> = BTreeMap::new();
        let odd = |t: &&TensorInfo| t.dtype != StoredType::U8 && self.checkpoint.format(t).is_err();
        for t in self.checkpoint.tensors().filter(odd) {
            unsupported.entry(t.dtype.to_string()).or_default().push(t);
        }
        for (dtype, tensors) in unsupported {
            let place = format!("tensor {:?}", tensors[0].name);
            let what = match tensors.len() {
                1 => format!("stored as {dtype}, which is not supported"),
                n => format!("this and {} more tensors are stored as {dtype}, which is not supported", n - 1),
            };
            self.add(Severity::Error, place, what, "use another quantisation of the model, or its original weights");
        }
    }

    /// What takes other memory than it takes in the files.
    fn decoded(&mut self) {
        for decoded in self.checkpoint.decoded_tensors() {
            let remedy = "nothing; where memory is short, another quantisation of the model";
            self.add(Severity::Note, "weights", format!("decoded when loaded: {decoded}"), remedy);
        }
    }

    fn config(&mut self, config: &RawConfig) {
        // What a model is built for changes neither what it reads nor what it refuses.
        let options = BuildOptions::plain(1);
        let Err(refused) = arch::build(self.checkpoint, config, options) else { return self.settings(config) };
        self.formats();
        match refused {
            ModelError::UnsupportedFormat { .. } => {}
            ModelError::Unsupported { .. } => self.failure("the model is not supported", &refused),
            _ => self.failure("the model does not hold together", &refused),
        }
        self.settings(config);
    }

    /// What the configuration and the generation settings say of the vocabulary.
    fn settings(&mut self, config: &RawConfig) {
        let embedding = EMBEDDINGS.iter().find_map(|name| self.checkpoint.tensor(name));
        let rows = embedding.and_then(|t| t.shape.first().copied());
        if let (Some(rows), Ok(Some(vocab))) = (rows, config.opt_u32("vocab_size"))
            && rows != vocab as usize
        {
            let what = format!("states {vocab}, but the embedding has {rows} rows");
            self.add(Severity::Warning, "vocab_size", what, "use the configuration that belongs to these weights");
        }
        match GenerationConfig::load(self.checkpoint, config) {
            Err(e) => self.failure("the generation settings cannot be read", &e),
            Ok(generation) => self.endings(&generation, rows),
        }
    }

    fn endings(&mut self, generation: &GenerationConfig, rows: Option<usize>) {
        for what in &generation.ignored {
            self.add(Severity::Note, "token ids", what.clone(), "nothing, unless the model was to use them");
        }
        if generation.eos.is_empty() {
            let remedy = "give stop strings or a token limit with each request";
            self.add(Severity::Warning, "eos_token_id", "no token ends a text", remedy);
        }
        for &id in &generation.eos {
            if let Some(rows) = rows.filter(|&rows| id as usize >= rows) {
                let what = format!("token {id} ends a text, but the embedding has {rows} rows");
                self.add(Severity::Warning, "eos_token_id", what, "use the settings that belong to these weights");
            }
        }
    }

    fn gguf(&mut self, gguf: &Gguf) {
        const TOKENS: &str = "tokenizer.ggml.tokens";
        let length = |key: &str| gguf.get(key).and_then(GgufValue::as_array).map(|a| a.len());
        match length(TOKENS) {
            None => self.no_tokenizer(TOKENS),
            Some(tokens) => {
                let rows = self.checkpoint.tensor("token_embd.weight").and_then(|t| t.shape.first().copied());
                if let Some(rows) = rows.filter(|&rows| rows != tokens) {
                    let what = format!("{tokens} tokens, but the embedding has {rows} rows");
                    self.add(Severity::Warning, TOKENS, what, "convert the model again from its original");
                }
                for key in ["tokenizer.ggml.scores", "tokenizer.ggml.token_type"] {
                    if let Some(n) = length(key).filter(|&n| n != tokens) {
                        let what = format!("{n} entries for {tokens} tokens");
                        self.add(Severity::Error, key, what, "convert the model again from its original");
                    }
                }
            }
        }
        if gguf.get("tokenizer.chat_template").is_none() {
            self.no_template("tokenizer.chat_template");
        }
        let prefix = format!("{}.", gguf.architecture().unwrap_or_default());
        for (key, _) in gguf.metadata() {
            if let Some(suffix) = key.strip_prefix(&prefix)
                && !is_read_from_gguf(suffix)
            {
                self.add(Severity::Note, key, "is not read", "nothing, unless the model needs it to compute as meant");
            }
        }
    }

    fn folder(&mut self) {
        let Some(folder) = self.checkpoint.folder() else { return };
        if !folder.join("tokenizer.json").is_file() {
            self.no_tokenizer("tokenizer.json");
        }
        // A template may lie in a file of its own or in this one; a plain search spares parsing it here.
        let inside = read_bytes(&folder.join("tokenizer_config.json"), CONFIG_BYTES)
            .is_ok_and(|text| text.windows(15).any(|w| w == b"\"chat_template\""));
        if !inside && !folder.join("chat_template.jinja").is_file() {
            self.no_template("chat_template.jinja");
        }
    }

    fn no_tokenizer(&mut self, place: &str) {
        let remedy = "give token ids instead of text, or get the missing part from the model's source";
        self.add(Severity::Warning, place, "there is no tokenizer", remedy);
    }

    fn no_template(&mut self, place: &str) {
        let remedy = "nothing for a base model, which continues text; else get the instruction-tuned version";
        self.add(Severity::Note, place, "there is no chat template", remedy);
    }
}
