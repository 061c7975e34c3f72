//! A model's texts: its tokenizer and its chat templates.

mod source;

use crate::error::SessionError;
use serde_json::{Value, json};
use std::time::{SystemTime, UNIX_EPOCH};
use yirage_model::Checkpoint;
use yirage_model::chat::{ChatInputs, ChatTemplate, RenderedChat, Templates};
use yirage_model::tokenizer::{EncodeOptions, Tokenizer};

/// A tokenizer with the model's chat templates.
pub struct TextProcessor {
    /// The tokenizer.
    pub tokenizer: Tokenizer,
    /// The sources of all templates by name.
    pub templates: Templates,
}

impl TextProcessor {
    /// The texts of a checkpoint; `None` where it has no tokenizer.
    ///
    /// # Errors
    /// Files that are there and wrong.
    pub fn load(checkpoint: &Checkpoint) -> Result<Option<TextProcessor>, SessionError> {
        match (checkpoint.gguf(), checkpoint.folder()) {
            (Some(gguf), _) => source::of_gguf(gguf),
            (None, Some(folder)) => source::of_folder(folder),
            (None, None) => Ok(None),
        }
    }

    /// Encodes a prompt that is sent as it is. The tokens that the model wants in front are added; those behind are
    /// not, since the text goes on. `parse_special` says whether special tokens are read in the text; none is what the
    /// tokenizer does by itself.
    ///
    /// # Errors
    /// [`SessionError::Tokenizer`].
    pub fn encode_raw(&self, text: &str, parse_special: Option<bool>) -> Result<Vec<u32>, SessionError> {
        let parse_special = parse_special.unwrap_or(self.tokenizer.default_options().parse_special);
        self.encode_behind_prefix(text, parse_special)
    }

    /// Renders a conversation through the template and encodes it; BOS stands at the front once at most.
    ///
    /// # Errors
    /// [`SessionError::Chat`], [`SessionError::Tokenizer`].
    pub fn encode_chat(&self, template: &ChatTemplate, messages: &[Value]) -> Result<Vec<u32>, SessionError> {
        self.encode_rendered(&self.render(template, ChatInputs::new(messages))?)
    }

    /// Renders what `inputs` say of a conversation, whose messages and tools get the shape that the template reads. The
    /// texts of the special tokens and the time are put in here.
    ///
    /// # Errors
    /// [`SessionError::Chat`].
    pub fn render<'a>(&'a self, template: &ChatTemplate, inputs: ChatInputs<'a>) -> Result<RenderedChat, SessionError> {
        let piece = |id: Option<u32>| id.and_then(|id| self.tokenizer.piece(id)).unwrap_or_default();
        let reads = template.capabilities();
        let messages = reads.adapt(inputs.messages);
        let tools = inputs.tools.map(|tools| reads.adapt_tools(tools.to_vec()));
        Ok(template.render(&ChatInputs {
            messages: &messages,
            tools: tools.as_deref(),
            bos_token: piece(self.tokenizer.bos()),
            eos_token: piece(self.tokenizer.eos()),
            now: SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |d| d.as_secs() as i64),
            ..inputs
        })?)
    }

    /// Encodes what a template made; BOS stands at the front once at most.
    ///
    /// # Errors
    /// [`SessionError::Tokenizer`].
    pub fn encode_rendered(&self, rendered: &RenderedChat) -> Result<Vec<u32>, SessionError> {
        if rendered.starts_with_bos {
            let options = EncodeOptions { add_special: false, parse_special: true };
            return Ok(self.tokenizer.encode(&rendered.text, options)?);
        }
        self.encode_behind_prefix(&rendered.text, true)
    }

    fn encode_behind_prefix(&self, text: &str, parse_special: bool) -> Result<Vec<u32>, SessionError> {
        let mut ids = self.tokenizer.prefix().to_vec();
        ids.extend(self.tokenizer.encode(text, EncodeOptions { add_special: false, parse_special })?);
        Ok(ids)
    }
}

/// A message of a conversation.
pub fn message(role: &str, content: &str) -> Value {
    json!({"role": role, "content": content})
}
