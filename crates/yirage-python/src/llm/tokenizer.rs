//! The model's tokenizer, as Python calls it.

use super::conversation::Conversation;
use super::load::LoadedLlm;
use super::prompt::no_texts;
use crate::failure::{Class, PyFailure, PyOutcome};
use pyo3::prelude::*;
use std::path::PathBuf;
use std::sync::Arc;
use yirage_model::Checkpoint;
use yirage_model::tokenizer::{EncodeOptions, Tokenizer as Native};
use yirage_session::{SessionError, TextProcessor};

/// Where a tokenizer is.
pub(super) enum TokenizerSource {
    /// With a model that is loaded.
    Model(Arc<LoadedLlm>),
    /// By itself.
    Texts(Box<TextProcessor>),
}

impl TokenizerSource {
    fn tokenizer(&self) -> PyOutcome<&Native> {
        match self {
            TokenizerSource::Model(ready) => ready.tokenizer(),
            TokenizerSource::Texts(texts) => Ok(&texts.tokenizer),
        }
    }

    /// Tokenizer and templates.
    fn texts(&self) -> PyOutcome<&TextProcessor> {
        match self {
            TokenizerSource::Texts(texts) => Ok(texts),
            TokenizerSource::Model(ready) => match &**ready {
                LoadedLlm::Generates(model) => model.texts().ok_or_else(no_texts),
                LoadedLlm::Encodes(_) => {
                    Err(PyFailure::unsupported("a chat template of an encoder", "it continues no conversation"))
                }
            },
        }
    }
}

/// The tokenizer of a model.
#[pyclass(name = "Tokenizer", frozen, module = "yirage")]
pub(crate) struct PyTokenizer(pub(super) TokenizerSource);

/// The tokenizer of a model's files, of which no weight is read.
///
/// Raises:
///     ModelError, RequestError: files without a tokenizer.
#[pyfunction]
pub(crate) fn load_tokenizer(py: Python<'_>, model_path: PathBuf) -> PyOutcome<PyTokenizer> {
    let path = super::resolve_model(py, &model_path.to_string_lossy())?;
    let texts = py.detach(|| TextProcessor::load(&Checkpoint::open(&path)?))?;
    Ok(PyTokenizer(TokenizerSource::Texts(Box::new(texts.ok_or_else(no_texts)?))))
}

impl LoadedLlm {
    /// The tokenizer.
    ///
    /// # Errors
    /// A model without one.
    pub(super) fn tokenizer(&self) -> PyOutcome<&Native> {
        match self {
            LoadedLlm::Generates(model) => Ok(&model.texts().ok_or_else(no_texts)?.tokenizer),
            LoadedLlm::Encodes(encoder) => Ok(encoder.tokenizer()),
        }
    }
}

#[pymethods]
impl PyTokenizer {
    /// The tokens of a text, with those that the model wants around it.
    #[pyo3(signature = (text, add_special_tokens = true))]
    fn encode(&self, text: &str, add_special_tokens: bool) -> PyOutcome<Vec<u32>> {
        let tokenizer = self.0.tokenizer()?;
        let options = EncodeOptions { add_special: add_special_tokens, ..tokenizer.default_options() };
        Ok(tokenizer.encode(text, options).map_err(SessionError::from)?)
    }

    /// The text of tokens.
    #[pyo3(signature = (token_ids, skip_special_tokens = false))]
    fn decode(&self, token_ids: Vec<u32>, skip_special_tokens: bool) -> PyOutcome<String> {
        let tokenizer = self.0.tokenizer()?;
        let size = tokenizer.vocab_size();
        if let Some(id) = token_ids.iter().find(|&&id| id as usize >= size) {
            return Err(PyFailure::Ours(
                Class::Request,
                format!("token {id}: the vocabulary has {size}, counted from 0"),
            ));
        }
        Ok(tokenizer.decode(&token_ids, skip_special_tokens))
    }

    /// A conversation as the model's template writes it, encoded; as text with ``tokenize=False``.
    #[pyo3(signature = (messages, *, tokenize = true))]
    fn apply_chat_template<'py>(
        &self,
        py: Python<'py>,
        messages: &Bound<'py, PyAny>,
        tokenize: bool,
    ) -> PyOutcome<Bound<'py, PyAny>> {
        let ids = Conversation::read(messages, None)?.encode(self.0.texts()?)?;
        if tokenize {
            return Ok(ids.into_pyobject(py)?.into_any());
        }
        Ok(self.0.tokenizer()?.decode(&ids, false).into_pyobject(py)?.into_any())
    }

    /// Largest token plus one.
    #[getter]
    fn vocab_size(&self) -> PyOutcome<usize> {
        Ok(self.0.tokenizer()?.vocab_size())
    }

    /// The token that begins a text.
    #[getter]
    fn bos_token_id(&self) -> PyOutcome<Option<u32>> {
        Ok(self.0.tokenizer()?.bos())
    }

    /// The token that ends a text.
    #[getter]
    fn eos_token_id(&self) -> PyOutcome<Option<u32>> {
        Ok(self.0.tokenizer()?.eos())
    }

    fn __len__(&self) -> PyOutcome<usize> {
        self.vocab_size()
    }
}
