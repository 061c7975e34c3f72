//! Which template wins, where a model brings several.
//!
//! In falling order: the caller's own; `chat_template.jinja` (with `additional_chat_templates/*.jinja` for the named
//! ones); the `chat_template` key of `tokenizer_config.json` (a string, or a list of `{name, template}`); GGUF's
//! `tokenizer.chat_template` and `tokenizer.chat_template.<name>`. A source wins per name: a `tool_use` template of a
//! lower source still counts where the higher ones have none of that name. A template of nothing but white space is none.

use std::collections::BTreeMap;

use serde::Deserialize;

use super::{ChatError, MAX_TEMPLATES};

/// The texts a model may bring its templates in; absent ones are `None` or empty.
#[derive(Clone, Debug, Default)]
pub struct TemplateSources<'a> {
    /// A template the user gave.
    pub user: Option<&'a str>,
    /// `chat_template.jinja`.
    pub jinja: Option<&'a str>,
    /// `additional_chat_templates/<name>.jinja`: name and source.
    pub additional: Vec<(&'a str, &'a str)>,
    /// The bytes of `tokenizer_config.json`.
    pub config: Option<&'a [u8]>,
    /// GGUF: `tokenizer.chat_template` (name `None`) and `tokenizer.chat_template.<name>`.
    pub gguf: Vec<(Option<&'a str>, &'a str)>,
}

/// What the unnamed template of a model is called.
pub const DEFAULT_TEMPLATE: &str = "default";

/// The templates of a model by name; the unnamed one is [`DEFAULT_TEMPLATE`].
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Templates {
    by_name: BTreeMap<String, String>,
}

#[derive(Deserialize)]
struct ChatTemplateConfig {
    #[serde(default)]
    chat_template: Option<ConfigTemplate>,
}

#[derive(Deserialize)]
#[serde(untagged)]
enum ConfigTemplate {
    One(String),
    Many(Vec<NamedTemplate>),
}

#[derive(Deserialize)]
struct NamedTemplate {
    name: String,
    template: String,
}

impl Templates {
    /// Collects the templates of all sources by the order of this module.
    ///
    /// # Errors
    /// [`ChatError::Source`] for a broken `tokenizer_config.json`, [`ChatError::Limit`] for too many templates.
    pub fn resolve(sources: &TemplateSources<'_>) -> Result<Self, ChatError> {
        let mut all: Vec<(String, String)> = Vec::new();
        let mut offer = |name: &str, source: &str| {
            // Some files say "no template" by an empty one.
            if !source.trim().is_empty() {
                all.push((name.to_owned(), source.to_owned()));
            }
        };
        sources.user.iter().for_each(|source| offer(DEFAULT_TEMPLATE, source));
        sources.jinja.iter().for_each(|source| offer(DEFAULT_TEMPLATE, source));
        sources.additional.iter().for_each(|(name, source)| offer(name, source));
        match sources.config.map(from_config).transpose()?.flatten() {
            Some(ConfigTemplate::One(source)) => offer(DEFAULT_TEMPLATE, &source),
            Some(ConfigTemplate::Many(list)) => list.iter().for_each(|t| offer(&t.name, &t.template)),
            None => {}
        }
        sources.gguf.iter().for_each(|(name, source)| offer(name.unwrap_or(DEFAULT_TEMPLATE), source));
        if all.len() > MAX_TEMPLATES {
            let what = "number of templates";
            let (name, limit) = (DEFAULT_TEMPLATE.to_owned(), MAX_TEMPLATES as u64);
            return Err(ChatError::Limit { name, line: 0, what, limit });
        }
        let mut by_name = BTreeMap::new();
        for (name, source) in all {
            by_name.entry(name).or_insert(source);
        }
        Ok(Self { by_name })
    }

    /// The template to use: the one asked for; else `tool_use` where tools are given and the model has one; else
    /// `default`. `Ok(None)` where the model has no template at all.
    ///
    /// # Errors
    /// [`ChatError::Unknown`] for a name the model lacks, or where it has only named templates and none fits.
    pub fn choose(&self, name: Option<&str>, with_tools: bool) -> Result<Option<(&str, &str)>, ChatError> {
        let entry = |name: &str| self.by_name.get_key_value(name).map(|(n, s)| (n.as_str(), s.as_str()));
        let found = match name {
            Some(name) => entry(name),
            None => entry("tool_use").filter(|_| with_tools).or_else(|| entry(DEFAULT_TEMPLATE)),
        };
        if found.is_none() && (name.is_some() || !self.by_name.is_empty()) {
            let known: Vec<&str> = self.by_name.keys().map(String::as_str).collect();
            let name = name.unwrap_or(DEFAULT_TEMPLATE).to_owned();
            let known = if known.is_empty() { "none".to_owned() } else { known.join(", ") };
            return Err(ChatError::Unknown { name, known });
        }
        Ok(found)
    }

    /// Names and sources, in the order of the names.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &str)> {
        self.by_name.iter().map(|(name, source)| (name.as_str(), source.as_str()))
    }
}

fn from_config(bytes: &[u8]) -> Result<Option<ConfigTemplate>, ChatError> {
    let config: ChatTemplateConfig = serde_json::from_slice(bytes)
        .map_err(|error| ChatError::Source { name: "tokenizer_config.json".to_owned(), detail: error.to_string() })?;
    Ok(config.chat_template)
}
