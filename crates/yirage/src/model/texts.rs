//! A model's texts: its tokenizer and its chat templates.

use crate::failure::Failure;
use crate::options::Layers;
use serde_json::{Value, json};
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};
use yirage_mmap::{is_there, read_bytes_if_there, read_text, read_text_if_there};
use yirage_model::Checkpoint;
use yirage_model::chat::{ChatInputs, ChatTemplate, MAX_TEMPLATES, TemplateSources, Templates};
use yirage_model::gguf::Gguf;
use yirage_model::tokenizer::{EncodeOptions, GgufVocab, Tokenizer, limits};

/// Longest `tokenizer_config.json`, in bytes: it may hold a vocabulary's added tokens and templates.
const MAX_CONFIG_BYTES: u64 = 64 << 20;

/// Where a folder keeps the templates that have names, each in a file of that name.
const NAMED_TEMPLATES: &str = "additional_chat_templates";

/// A tokenizer with the model's chat templates.
pub(crate) struct Texts {
    /// The tokenizer.
    pub(crate) tokenizer: Tokenizer,
    /// The sources of all templates by name.
    pub(crate) templates: Templates,
}

impl Texts {
    /// The texts of a checkpoint; `None` where it has no tokenizer.
    ///
    /// # Errors
    /// [`Failure::Tokenizer`], [`Failure::Chat`], [`Failure::Io`] for files that are there but wrong.
    pub(crate) fn load(checkpoint: &Checkpoint) -> Result<Option<Texts>, Failure> {
        match (checkpoint.gguf(), checkpoint.folder()) {
            (Some(gguf), _) => of_gguf(gguf),
            (None, Some(folder)) => of_folder(folder),
            (None, None) => Ok(None),
        }
    }

    /// The template that the options choose: none with `--raw` or for a model without any, the one of
    /// `--chat-template`, else the model's default. Of these two options the one of the higher layer holds.
    ///
    /// # Errors
    /// [`Failure::Usage`] for a name that the model does not have, and for both options in one layer;
    /// [`Failure::Other`] where none is the default; [`Failure::Chat`] for a template that is broken.
    pub(crate) fn template(&self, layers: &Layers) -> Result<Option<ChatTemplate>, Failure> {
        const NAME: &str = "chat-template";
        let raw = layers.switch("raw")?;
        if raw && layers.one_of(&["raw", NAME])? != Some(NAME) {
            return Ok(None);
        }
        let wanted = layers.text(NAME);
        let chosen = self.templates.choose(wanted, false).map_err(|error| match wanted {
            Some(_) => Failure::Usage(format!("{}: {error}", layers.label(NAME))),
            None => Failure::Other(format!("{error}; choose one with --{NAME}, or none with --raw")),
        })?;
        Ok(chosen.map(|(name, source)| ChatTemplate::new(name, source)).transpose()?)
    }

    /// Encodes a prompt that is sent as it is. The tokens that the model wants in front are added; those behind are
    /// not, since the text goes on.
    ///
    /// # Errors
    /// [`Failure::Tokenizer`].
    pub(crate) fn encode_raw(&self, text: &str, parse_special: Option<bool>) -> Result<Vec<u32>, Failure> {
        let parse_special = parse_special.unwrap_or(self.tokenizer.default_options().parse_special);
        self.encode_behind_prefix(text, parse_special)
    }

    /// Renders a conversation through the template and encodes it; BOS stands at the front once at most.
    ///
    /// # Errors
    /// [`Failure::Chat`], [`Failure::Tokenizer`].
    pub(crate) fn encode_chat(&self, template: &ChatTemplate, messages: &[Value]) -> Result<Vec<u32>, Failure> {
        let piece = |id: Option<u32>| id.and_then(|id| self.tokenizer.piece(id)).unwrap_or_default();
        let inputs = ChatInputs {
            bos_token: piece(self.tokenizer.bos()),
            eos_token: piece(self.tokenizer.eos()),
            now: SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |d| d.as_secs() as i64),
            ..ChatInputs::new(messages)
        };
        let rendered = template.render(&inputs)?;
        if rendered.starts_with_bos {
            let options = EncodeOptions { add_special: false, parse_special: true };
            return Ok(self.tokenizer.encode(&rendered.text, options)?);
        }
        self.encode_behind_prefix(&rendered.text, true)
    }

    fn encode_behind_prefix(&self, text: &str, parse_special: bool) -> Result<Vec<u32>, Failure> {
        let mut ids = self.tokenizer.prefix().to_vec();
        ids.extend(self.tokenizer.encode(text, EncodeOptions { add_special: false, parse_special })?);
        Ok(ids)
    }
}

/// A message of a conversation.
pub(crate) fn message(role: &str, content: &str) -> Value {
    json!({"role": role, "content": content})
}

fn of_gguf(gguf: &Gguf) -> Result<Option<Texts>, Failure> {
    if gguf.get("tokenizer.ggml.model").is_none() {
        return Ok(None);
    }
    let tokenizer = Tokenizer::from_gguf(GgufVocab::from_header(gguf)?)?;
    const KEY: &str = "tokenizer.chat_template";
    let named = |(key, value): (&'_ str, &'_ yirage_model::gguf::Value)| {
        let rest = key.strip_prefix(KEY)?;
        let name = if rest.is_empty() { None } else { Some(rest.strip_prefix('.')?.to_owned()) };
        Some((name, value.as_str()?.to_owned()))
    };
    let templates: Vec<(Option<String>, String)> = gguf.metadata().filter_map(named).collect();
    let gguf = templates.iter().map(|(name, source)| (name.as_deref(), source.as_str())).collect();
    let templates = Templates::resolve(&TemplateSources { gguf, ..TemplateSources::default() })?;
    Ok(Some(Texts { tokenizer, templates }))
}

fn of_folder(folder: &Path) -> Result<Option<Texts>, Failure> {
    let path = folder.join("tokenizer.json");
    let Some(bytes) = read_bytes_if_there(&path, limits::MAX_FILE_BYTES as u64)? else { return Ok(None) };
    let mut tokenizer = Tokenizer::from_json(&bytes, &path.display().to_string())?;
    let config_path = folder.join("tokenizer_config.json");
    let config = read_bytes_if_there(&config_path, MAX_CONFIG_BYTES)?;
    if let Some(config) = &config {
        tokenizer.apply_config(config, &config_path.display().to_string())?;
    }
    let jinja = read_text_if_there(&folder.join("chat_template.jinja"), MAX_CONFIG_BYTES)?;
    let named = named_templates(&folder.join(NAMED_TEMPLATES))?;
    let sources = TemplateSources {
        jinja: jinja.as_deref(),
        additional: named.iter().map(|(name, source)| (name.as_str(), source.as_str())).collect(),
        config: config.as_deref(),
        ..TemplateSources::default()
    };
    Ok(Some(Texts { tokenizer, templates: Templates::resolve(&sources)? }))
}

/// Name and source of each `NAME.jinja` in `folder`, in order; none where there is no such folder.
fn named_templates(folder: &Path) -> Result<Vec<(String, String)>, Failure> {
    if !is_there(folder)? {
        return Ok(Vec::new());
    }
    let mut paths: Vec<PathBuf> = Vec::new();
    for entry in std::fs::read_dir(folder).map_err(|e| Failure::io(folder, e))? {
        let path = entry.map_err(|e| Failure::io(folder, e))?.path();
        if path.extension().is_some_and(|end| end == "jinja") {
            paths.push(path);
        }
    }
    if paths.len() > MAX_TEMPLATES {
        let (count, folder) = (paths.len(), folder.display());
        return Err(Failure::Other(format!(
            "{folder}: {count} templates are more than the {MAX_TEMPLATES} of any model"
        )));
    }
    paths.sort();
    let mut named = Vec::new();
    for path in paths {
        let source = read_text(&path, MAX_CONFIG_BYTES)?;
        let name = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        named.push((name, source));
    }
    Ok(named)
}
