//! The tokenizer and the chat templates of a folder as GGUF metadata, and whether the file makes the same tokens.

use super::ModelTexts;
use crate::error::ConvertError;
use serde_json::Value;
use yirage_model::chat::DEFAULT_TEMPLATE;
use yirage_model::gguf::{Gguf, GgufArray, GgufValue};
use yirage_model::tokenizer::{EncodeOptions, GgufVocab, SpecialIds, Tokenizer};
use yirage_model::{Checkpoint, GenerationConfig, RawConfig};

/// Metadata of a vocabulary.
pub(crate) struct VocabularyMetadata {
    pub(crate) entries: Vec<(String, GgufValue)>,
    pub(crate) notes: Vec<String>,
}

impl VocabularyMetadata {
    pub(crate) fn new(
        checkpoint: &Checkpoint,
        config: &RawConfig,
        texts: &ModelTexts<'_>,
    ) -> Result<VocabularyMetadata, ConvertError> {
        let rows = config.u32("vocab_size")? as usize;
        let ids = special_ids(texts.tokenizer, config);
        let made = texts.tokenizer.to_gguf(rows, &ids)?;
        let mut entries: Vec<_> = made.entries.into_iter().map(|(key, value)| (key.to_owned(), value)).collect();
        let mut notes: Vec<String> = made.notes.into_iter().map(str::to_owned).collect();
        entries.extend(templates(texts));
        // Readers know other ends of texts by their names.
        let ends = GenerationConfig::load(checkpoint, config)?.eos;
        let others: Vec<u32> = ends.into_iter().filter(|end| ids.eos.is_some_and(|eos| *end != eos)).collect();
        if !others.is_empty() {
            notes.push(format!("beside {:?} the tokens {others:?} end texts, which the file does not say", ids.eos));
        }
        Ok(VocabularyMetadata { entries, notes })
    }
}

/// The ids that the tokenizer's files name, and then those that the configuration does.
fn special_ids(tokenizer: &Tokenizer, config: &RawConfig) -> SpecialIds {
    let stated = |key: &str| {
        let value = config.get(key)?;
        let id = value.as_array().and_then(|list| list.first()).unwrap_or(value);
        Value::as_u64(id).and_then(|id| u32::try_from(id).ok()).filter(|&id| tokenizer.piece(id).is_some())
    };
    let known = tokenizer.special_ids();
    SpecialIds {
        bos: known.bos.or_else(|| stated("bos_token_id")),
        eos: known.eos.or_else(|| stated("eos_token_id")),
        unk: known.unk.or_else(|| stated("unk_token_id")),
        pad: known.pad.or_else(|| stated("pad_token_id")),
        ends: known.ends.clone(),
    }
}

/// The template without a name, the names of the others, and those.
fn templates(texts: &ModelTexts<'_>) -> Vec<(String, GgufValue)> {
    const KEY: &str = "tokenizer.chat_template";
    let text = |source: &str| GgufValue::String(source.to_owned());
    let (default, named): (Vec<_>, Vec<_>) = texts.templates.iter().partition(|(name, _)| *name == DEFAULT_TEMPLATE);
    let mut out = Vec::new();
    if !named.is_empty() {
        let names = named.iter().map(|(name, _)| *name).collect();
        out.push(("tokenizer.chat_templates".to_owned(), GgufValue::Array(GgufArray::String(names))));
    }
    out.extend(named.iter().map(|(name, source)| (format!("{KEY}.{name}"), text(source))));
    out.extend(default.iter().map(|(_, source)| (KEY.to_owned(), text(source))));
    out
}

/// Texts of what tokenizers do differently: spaces, numbers, signs, cases, scripts, code, bytes.
const SAMPLES: &[&str] = &[
    "",
    "Hello",
    " Hello",
    "Hello world, this is a text.",
    "  two  spaces   three    four",
    "tab\tand\nlines\n\nand\r\nmore\n\n\n  \n\t\t x ",
    "0 12 345 6789 12345678901 3.14159 1,000,000 0x7f -5e-10",
    "it's you're we've I'm she'll he'd IT'S YOU'RE WE'VE I'M",
    "(a+b)*[c]/{d}=<e>!?.,;:...---===###```\"\"''@$%^&~|\\",
    "camelCase snake_case CONSTANT_CASE kebab-case path/to/file.rs",
    "fn main() {\n    println!(\"{}\", x as u32);\n\treturn;\n}\n",
    "Z\u{fc}rich na\u{ef}ve \u{153}uvre stra\u{df}e \u{130}stanbul",
    "\u{41f}\u{440}\u{438}\u{432}\u{435}\u{442}, \u{43c}\u{438}\u{440}! \u{3a9}\u{3bc}\u{3ad}\u{3b3}\u{3b1}",
    "\u{4f60}\u{597d}\u{4e16}\u{754c}\u{3002}\u{3053}\u{3093}\u{306b}\u{3061}\u{306f}\u{c548}\u{b155}\u{d558}\u{c138}\u{c694}",
    "\u{627}\u{644}\u{633}\u{644}\u{627}\u{645} \u{5e9}\u{5dc}\u{5d5}\u{5dd} \u{928}\u{92e}\u{938}\u{94d}\u{924}\u{947}",
    "\u{1f600}\u{1f468}\u{200d}\u{1f469}\u{200d}\u{1f467} \u{2764}\u{fe0f}\u{20ac}\u{2014}\u{2026}\u{a0}\u{3000}x",
    "\u{0}\u{1}\u{7f}\u{fffd}\u{10ffff}",
    "<|not a token|> <s> </s> [INST] <unk> \u{2581}x",
];

/// Compares the tokens of a model's own tokenizer with those by the file.
pub(crate) fn same_tokens(tokenizer: &Tokenizer, written: &Gguf) -> Result<(), ConvertError> {
    let again = Tokenizer::from_gguf(GgufVocab::from_header(written)?)?;
    let options = [(true, false), (false, false), (false, true)];
    let options = options.map(|(add_special, parse_special)| EncodeOptions { add_special, parse_special });
    for (text, options) in SAMPLES.iter().flat_map(|text| options.map(|options| (text, options))) {
        let (read, written) = (tokenizer.encode(text, options)?, again.encode(text, options)?);
        if read != written {
            let (file, text) = (tokenizer.name().to_owned(), (*text).to_owned());
            return Err(ConvertError::OtherTokens { file, text, read, written });
        }
    }
    Ok(())
}
