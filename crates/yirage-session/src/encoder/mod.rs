//! An encoder with its texts on a thread of its own, for many callers at once.
//!
//! What several callers ask for while a step runs is computed together in the next ones. An input's result is the same
//! bytes whatever it is computed with, and a call that is refused harms no other.

mod framing;
mod thread;

use crate::error::SessionError;
use crate::texts::TextProcessor;
use crate::worker::message_of;
use framing::TextFraming;
use std::sync::mpsc::{SyncSender, sync_channel};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::thread::JoinHandle;
use thread::{CALLS, EncoderCall, EncoderModel, EncoderTask};
use yirage_engine::{
    DecoderEncoder, DecoderTask, Embedding, Encoder, EncoderFacts, EncoderInput, EncoderOptions, LoadProgressFn, Notice,
};
use yirage_hal::Device;
use yirage_model::Checkpoint;
use yirage_model::tokenizer::{FramedTokens, Tokenizer};

/// An encoder that takes calls. Every method may be called from any thread; dropped, it is unloaded.
pub struct TextEncoder {
    facts: EncoderFacts,
    notices: Vec<Notice>,
    tokenizer: Tokenizer,
    framing: TextFraming,
    /// None once it is dropped.
    calls: Option<SyncSender<EncoderCall>>,
    thread: Mutex<Option<JoinHandle<()>>>,
    /// What the thread died of, once somebody has met it.
    died: OnceLock<String>,
}

impl TextEncoder {
    /// Loads the encoder of `checkpoint` on `device`, and gives it to a thread. `progress` gets bytes of weights done, and
    /// of all.
    ///
    /// # Errors
    /// Whatever is wrong with files, options or the device; [`SessionError::NoTokenizer`]; [`SessionError::Thread`].
    pub fn load(
        checkpoint: &Checkpoint,
        device: Arc<dyn Device>,
        options: &EncoderOptions,
        progress: LoadProgressFn<'_>,
    ) -> Result<TextEncoder, SessionError> {
        let tokenizer = TextProcessor::load(checkpoint)?.map(|texts| texts.tokenizer);
        let token = |text: &str| tokenizer.as_ref().and_then(|tokenizer| tokenizer.token_id(text));
        let mut encoder = match DecoderTask::of(checkpoint, token)? {
            Some(task) => {
                EncoderModel::Decoder(Box::new(DecoderEncoder::load(checkpoint, task, device, options, progress)?))
            }
            None => EncoderModel::Encoder(Box::new(Encoder::load(checkpoint, device, options, progress)?)),
        };
        let missing = || SessionError::NoTokenizer { model: checkpoint.label() };
        let tokenizer = tokenizer.ok_or_else(missing)?;
        let framing = TextFraming::load(checkpoint, matches!(encoder, EncoderModel::Decoder(_)))?;
        let (facts, notices) = (encoder.facts().clone(), encoder.notices());
        let (calls, asked) = sync_channel(CALLS);
        let thread = std::thread::Builder::new().name("yirage-encoder".into());
        let thread = thread.spawn(move || thread::run(encoder, &asked)).map_err(SessionError::Thread)?;
        let thread = Mutex::new(Some(thread));
        Ok(TextEncoder { facts, notices, tokenizer, framing, calls: Some(calls), thread, died: OnceLock::new() })
    }

    /// What was loaded.
    pub fn facts(&self) -> &EncoderFacts {
        &self.facts
    }

    /// What its owner should know of the load.
    pub fn notices(&self) -> &[Notice] {
        &self.notices
    }

    /// Its tokenizer.
    pub fn tokenizer(&self) -> &Tokenizer {
        &self.tokenizer
    }

    /// A text in the model's frame, behind the prompt of this name, else the one that its makers put before every text.
    ///
    /// # Errors
    /// [`SessionError::Prompt`] for a name that there is not; as [`Tokenizer::frame`].
    pub fn frame(&self, text: &str, prompt: Option<&str>, limit: Option<usize>) -> Result<FramedTokens, SessionError> {
        match self.framing.prompt(prompt)? {
            "" => Ok(self.tokenizer.frame(text, limit)?),
            before => Ok(self.tokenizer.frame(&format!("{before}{text}"), limit)?),
        }
    }

    /// A query and a text that may answer it, as the model reads them together. An `instruction` says what an answer is, for models
    /// that read one.
    ///
    /// # Errors
    /// [`SessionError::Instruction`] for models that read none; as [`Tokenizer::frame_pair`].
    pub fn frame_pair(
        &self,
        query: &str,
        text: &str,
        instruction: Option<&str>,
        limit: Option<usize>,
    ) -> Result<FramedTokens, SessionError> {
        self.framing.pair(&self.tokenizer, (query, text), instruction, limit)
    }

    /// A vector for each input, in order.
    ///
    /// # Errors
    /// As [`Encoder::embed`]; [`SessionError::Gone`].
    pub fn embed(&self, inputs: Vec<EncoderInput>, how: Embedding) -> Result<Vec<Vec<f32>>, SessionError> {
        self.call(inputs, EncoderTask::Embeddings(how))
    }

    /// The scores of each input, one a label, in order.
    ///
    /// # Errors
    /// As [`Encoder::score`]; [`SessionError::Gone`].
    pub fn score(&self, inputs: Vec<EncoderInput>) -> Result<Vec<Vec<f32>>, SessionError> {
        self.call(inputs, EncoderTask::Reranking)
    }

    fn call(&self, inputs: Vec<EncoderInput>, wanted: EncoderTask) -> Result<Vec<Vec<f32>>, SessionError> {
        let (answer, given) = sync_channel(1);
        let calls = self.calls.as_ref().ok_or_else(|| self.thread_error())?;
        calls.send(EncoderCall { inputs, wanted, answer }).map_err(|_| self.thread_error())?;
        Ok(given.recv().map_err(|_| self.thread_error())??)
    }

    /// Why there is no thread any more.
    fn thread_error(&self) -> SessionError {
        let why = self.died.get_or_init(|| match self.join() {
            Some(Err(why)) => why,
            Some(Ok(())) | None => "its thread has ended".into(),
        });
        SessionError::Gone { why: why.clone() }
    }

    fn join(&self) -> Option<Result<(), String>> {
        let thread = self.thread.lock().unwrap_or_else(PoisonError::into_inner).take()?;
        Some(thread.join().map_err(|panic| message_of(&*panic)))
    }
}

impl Drop for TextEncoder {
    fn drop(&mut self) {
        // The thread ends when nobody can ask any more.
        self.calls = None;
        self.join();
    }
}
