//! A model that generates text, with what a conversation needs.

use super::adapter_files::AdapterFiles;
use super::prefill_server::PrefillServer;
use super::slots::{SlotFiles, Slots};
use crate::error::ApiError;
use crate::response_parser::{CallFrame, ModelCallFrame, OutputFormat, calls_as_text};
use crate::vocabulary::Vocabulary;
use serde_json::Value;
use std::borrow::Cow;
use std::sync::{Arc, OnceLock};
use yirage_model::chat::{ChatInputs, ChatTemplate};
use yirage_model::tokenizer::EncodeOptions;
use yirage_session::{ModelFingerprint, ModelHandle, SessionError, TextProcessor};

/// A model with its chat templates, parsed once.
pub struct Generator {
    model: ModelHandle,
    chat: Option<GeneratorTemplate>,
    /// The one for conversations with tools, where the model has one of its own.
    tools: Option<GeneratorTemplate>,
    /// Sequences it runs at once.
    max_seqs: usize,
    slots: Slots,
    /// What the model is, for servers that take what it has computed.
    fingerprint: Option<ModelFingerprint>,
    /// Who computes prompts for it.
    prefill: Option<PrefillServer>,
    /// Where clients may load adapters from; none where they may not.
    pub(super) adapter_files: Option<AdapterFiles>,
    /// Its tokens for grammars, made when one is first wanted; or why there are none.
    vocabulary: OnceLock<Result<Arc<Vocabulary>, String>>,
}

/// A chat template with what its source says of the model.
pub(crate) struct GeneratorTemplate {
    pub(crate) template: ChatTemplate,
    pub(crate) source: String,
    pub(crate) family: OutputFormat,
    /// Special tokens that mark something: they are shown in the text.
    pub(crate) marks: Arc<[u32]>,
    /// How calls are written that have to come; none where no form of calls is known.
    pub(crate) own: Option<Arc<ModelCallFrame>>,
}

impl GeneratorTemplate {
    /// Messages as the template can show them: calls of the past that it would leave out are part of the content, as the
    /// model writes them.
    pub(crate) fn with_calls_shown<'m>(&self, messages: &'m [Value]) -> Cow<'m, [Value]> {
        match &self.own {
            Some(own) if !self.template.capabilities().calls => Cow::Owned(calls_as_text(&own.frame, messages)),
            _ => Cow::Borrowed(messages),
        }
    }

    /// Whether calls of these messages are left out of the prompt: neither the template shows them, nor is it known how the
    /// model writes them.
    pub(crate) fn loses_calls(&self, messages: &[Value]) -> bool {
        let shown = self.own.is_some() || self.template.capabilities().calls;
        !shown && messages.iter().any(|message| message["tool_calls"].is_array())
    }
}

/// The special tokens that mark something in a family's answers.
fn marks(texts: &TextProcessor, family: &OutputFormat) -> Arc<[u32]> {
    let tokenizer = &texts.tokenizer;
    let size = u32::try_from(tokenizer.vocab_size()).unwrap_or(u32::MAX);
    let marks = |id: &u32| {
        tokenizer.is_special(*id) && tokenizer.piece(*id).is_some_and(|text| !text.is_empty() && family.marks(text))
    };
    (0..size).filter(marks).collect()
}

/// The tokens that are marks in a frame: those of a meaning of their own, and words in brackets that are one token.
fn tokens(texts: &TextProcessor, frame: &CallFrame) -> Vec<(String, u32)> {
    let tokenizer = &texts.tokenizer;
    let size = u32::try_from(tokenizer.vocab_size()).unwrap_or(u32::MAX);
    let options = EncodeOptions { add_special: false, parse_special: true };
    let token = |id: u32| {
        let text = tokenizer.piece(id).filter(|text| !text.is_empty())?;
        let bracketed = text.len() > 3 && text.starts_with(['<', '[']) && text.ends_with(['>', ']']);
        let may_be = tokenizer.is_special(id) || bracketed;
        let is = may_be && frame.texts().any(|of| of.contains(text));
        (is && tokenizer.encode(text, options).is_ok_and(|ids| ids == [id])).then(|| (text.to_owned(), id))
    };
    (0..size).filter_map(token).collect()
}

impl Generator {
    /// A model that runs `max_seqs` sequences at once, with the chat template called `name`, else its default.
    ///
    /// # Errors
    /// [`SessionError::Chat`] for a template that is broken or not there.
    pub fn new(model: ModelHandle, max_seqs: usize, name: Option<&str>) -> Result<Generator, SessionError> {
        let of = |with_tools| -> Result<Option<GeneratorTemplate>, SessionError> {
            let Some(texts) = model.texts() else { return Ok(None) };
            let Some((name, source)) = texts.templates.choose(name, with_tools)? else { return Ok(None) };
            let (template, source) = (ChatTemplate::new(name, source)?, source.to_owned());
            let (family, frame) = OutputFormat::of(texts, &template, &source);
            let own = frame.map(|frame| {
                let tokens = tokens(texts, &frame);
                Arc::new(ModelCallFrame::new(frame, tokens, model.ends()))
            });
            Ok(Some(GeneratorTemplate { template, family, marks: marks(texts, &family), own, source }))
        };
        let chat = of(false)?;
        let tools = of(true)?.filter(|tools| chat.as_ref().is_none_or(|chat| chat.source != tools.source));
        Ok(Generator {
            model,
            chat,
            tools,
            max_seqs,
            slots: Slots::default(),
            fingerprint: None,
            prefill: None,
            adapter_files: None,
            vocabulary: OnceLock::new(),
        })
    }

    /// The same model, for which clients may load adapters.
    #[must_use]
    pub fn with_adapter_files(self, files: AdapterFiles) -> Generator {
        Generator { adapter_files: Some(files), ..self }
    }

    /// The same model, whose slots may be written to files.
    #[must_use]
    pub fn with_slot_files(self, files: SlotFiles) -> Generator {
        Generator { slots: Slots::with_files(files), ..self }
    }

    /// The same model, whose prompts go to and come from other servers of it by what it is.
    #[must_use]
    pub fn with_fingerprint(self, fingerprint: ModelFingerprint) -> Generator {
        Generator { fingerprint: Some(fingerprint), ..self }
    }

    /// The same model, whose long prompts another server computes.
    #[must_use]
    pub fn with_prefill_server(self, server: PrefillServer) -> Generator {
        Generator { prefill: Some(server), ..self }
    }

    pub(crate) fn fingerprint(&self) -> Option<ModelFingerprint> {
        self.fingerprint
    }

    /// Who computes long prompts, and what the model is; none without either.
    pub(crate) fn prefill_server(&self) -> Option<(&PrefillServer, &ModelFingerprint)> {
        self.prefill.as_ref().zip(self.fingerprint.as_ref())
    }

    pub(crate) fn slots(&self) -> &Slots {
        &self.slots
    }

    pub(crate) fn model(&self) -> &ModelHandle {
        &self.model
    }

    /// Its tokens for grammars.
    ///
    /// # Errors
    /// Why there can be no grammar.
    pub(crate) fn vocabulary(&self) -> Result<&Arc<Vocabulary>, &String> {
        self.vocabulary.get_or_init(|| Vocabulary::new(&self.model)).as_ref()
    }

    pub(crate) fn max_seqs(&self) -> usize {
        self.max_seqs
    }

    /// Tokenizer and templates.
    ///
    /// # Errors
    /// A model without a tokenizer, which takes and gives token ids alone.
    pub(crate) fn texts(&self) -> Result<&TextProcessor, ApiError> {
        self.model.texts().ok_or_else(|| ApiError::invalid("the model has no tokenizer: send token ids as the prompt"))
    }

    /// The template of a conversation with or without tools.
    ///
    /// # Errors
    /// A model without any.
    pub(crate) fn template(&self, with_tools: bool) -> Result<&GeneratorTemplate, ApiError> {
        let template = self.tools.as_ref().filter(|_| with_tools).or(self.chat.as_ref());
        template.ok_or_else(|| {
            ApiError::field("messages", "the model has no chat template; send its prompt to /v1/completions")
        })
    }

    /// The template's source, where there is one.
    pub(crate) fn template_source(&self) -> Option<&str> {
        self.chat.as_ref().map(|chat| chat.source.as_str())
    }

    /// The text that a template makes of a conversation, as `end` ends it, and its tokens.
    ///
    /// # Errors
    /// [`SessionError::Chat`], [`SessionError::Tokenizer`]; what `end` says.
    pub(crate) fn render(
        &self,
        of: &GeneratorTemplate,
        inputs: ChatInputs<'_>,
        end: impl FnOnce(String) -> Result<String, ApiError>,
    ) -> Result<(String, Vec<u32>), ApiError> {
        let texts = self.texts()?;
        let mut rendered = texts.render(&of.template, inputs)?;
        rendered.text = end(rendered.text)?;
        let ids = texts.encode_rendered(&rendered)?;
        Ok((rendered.text, ids))
    }
}
