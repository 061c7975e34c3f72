//! Tokenizer and templates from the files of a model.

use super::TextProcessor;
use crate::error::SessionError;
use std::path::{Path, PathBuf};
use yirage_mmap::{is_there, read_bytes_if_there, read_text, read_text_if_there};
use yirage_model::chat::{MAX_TEMPLATES, TemplateSources, Templates};
use yirage_model::gguf::Gguf;
use yirage_model::tokenizer::{GgufVocab, Tokenizer, limits};

/// Longest `tokenizer_config.json`, in bytes: it may hold a vocabulary's added tokens and templates.
const MAX_CONFIG_BYTES: u64 = 64 << 20;

/// Where a folder keeps the templates that have names, each in a file of that name.
const NAMED_TEMPLATES: &str = "additional_chat_templates";

pub(super) fn of_gguf(gguf: &Gguf) -> Result<Option<TextProcessor>, SessionError> {
    if gguf.get("tokenizer.ggml.model").is_none() {
        return Ok(None);
    }
    let tokenizer = Tokenizer::from_gguf(GgufVocab::from_header(gguf)?)?;
    const KEY: &str = "tokenizer.chat_template";
    let named = |(key, value): (&'_ str, &'_ yirage_model::gguf::GgufValue)| {
        let rest = key.strip_prefix(KEY)?;
        let name = if rest.is_empty() { None } else { Some(rest.strip_prefix('.')?.to_owned()) };
        Some((name, value.as_str()?.to_owned()))
    };
    let templates: Vec<(Option<String>, String)> = gguf.metadata().filter_map(named).collect();
    let gguf = templates.iter().map(|(name, source)| (name.as_deref(), source.as_str())).collect();
    let templates = Templates::resolve(&TemplateSources { gguf, ..TemplateSources::default() })?;
    Ok(Some(TextProcessor { tokenizer, templates }))
}

pub(super) fn of_folder(folder: &Path) -> Result<Option<TextProcessor>, SessionError> {
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
    Ok(Some(TextProcessor { tokenizer, templates: Templates::resolve(&sources)? }))
}

/// Name and source of each `NAME.jinja` in `folder`, in order; none where there is no such folder.
fn named_templates(folder: &Path) -> Result<Vec<(String, String)>, SessionError> {
    if !is_there(folder)? {
        return Ok(Vec::new());
    }
    let mut paths: Vec<PathBuf> = Vec::new();
    for entry in std::fs::read_dir(folder).map_err(|e| unlisted(folder, e))? {
        let path = entry.map_err(|e| unlisted(folder, e))?.path();
        if path.extension().is_some_and(|end| end == "jinja") {
            paths.push(path);
        }
    }
    if paths.len() > MAX_TEMPLATES {
        return Err(SessionError::Templates { folder: folder.to_path_buf(), count: paths.len(), most: MAX_TEMPLATES });
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

fn unlisted(folder: &Path, source: std::io::Error) -> SessionError {
    SessionError::Folder { folder: folder.to_path_buf(), source }
}
