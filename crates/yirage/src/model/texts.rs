//! A model's texts: its tokenizer and its chat template.

use crate::failure::Failure;
use serde_json::{Value, json};
use std::path::Path;
use std::time::{SystemTime, UNIX_EPOCH};
use yirage_model::Checkpoint;
use yirage_model::chat::{ChatInputs, ChatTemplate, TemplateSources, Templates};
use yirage_model::gguf::Gguf;
use yirage_model::tokenizer::{EncodeOptions, GgufVocab, Tokenizer, limits};

/// Longest `tokenizer_config.json`, in bytes: it may hold a vocabulary's added tokens and templates.
const MAX_CONFIG_BYTES: u64 = 64 << 20;

/// A tokenizer with the model's chat template.
pub(crate) struct Texts {
    /// The tokenizer.
    pub(crate) tokenizer: Tokenizer,
    /// The template, where the model has one.
    pub(crate) template: Option<ChatTemplate>,
    /// The template's source.
    pub(crate) source: Option<String>,
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
    let (template, source) = chosen(&TemplateSources { gguf, ..TemplateSources::default() })?;
    Ok(Some(Texts { tokenizer, template, source }))
}

fn of_folder(folder: &Path) -> Result<Option<Texts>, Failure> {
    let path = folder.join("tokenizer.json");
    let Some(bytes) = read_if_there(&path, limits::MAX_FILE_BYTES as u64)? else { return Ok(None) };
    let mut tokenizer = Tokenizer::from_json(&bytes, &path.display().to_string())?;
    let config_path = folder.join("tokenizer_config.json");
    let config = read_if_there(&config_path, MAX_CONFIG_BYTES)?;
    if let Some(config) = &config {
        tokenizer.apply_config(config, &config_path.display().to_string())?;
    }
    let jinja = read_if_there(&folder.join("chat_template.jinja"), MAX_CONFIG_BYTES)?;
    let jinja = jinja.as_deref().map(String::from_utf8_lossy);
    let sources = TemplateSources { jinja: jinja.as_deref(), config: config.as_deref(), ..TemplateSources::default() };
    let (template, source) = chosen(&sources)?;
    Ok(Some(Texts { tokenizer, template, source }))
}

/// The template for plain conversations, with its source.
fn chosen(sources: &TemplateSources<'_>) -> Result<(Option<ChatTemplate>, Option<String>), Failure> {
    let templates = Templates::resolve(sources)?;
    let Some((name, source)) = templates.choose(None, false)? else { return Ok((None, None)) };
    Ok((Some(ChatTemplate::new(name, source)?), Some(source.to_owned())))
}

fn read_if_there(path: &Path, most: u64) -> Result<Option<Vec<u8>>, Failure> {
    if !path.is_file() {
        return Ok(None);
    }
    let length = std::fs::metadata(path).map_err(|e| Failure::io(path, e))?.len();
    if length > most {
        let what = format!("{}: {length} bytes are more than the {most} such a file may have", path.display());
        return Err(Failure::Other(what));
    }
    std::fs::read(path).map(Some).map_err(|e| Failure::io(path, e))
}
