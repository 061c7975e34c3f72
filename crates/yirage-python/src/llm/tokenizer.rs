//! The model's tokenizer, as Python calls it.

use super::load::Ready;
use super::prompt::{conversation, no_texts};
use crate::failure::{Class, Failure, Outcome};
use pyo3::prelude::*;
use std::path::PathBuf;
use std::sync::Arc;
use yirage_model::Checkpoint;
use yirage_model::tokenizer::{EncodeOptions, Tokenizer as Native};
use yirage_session::{SessionError, Texts};

/// Where a tokenizer is.
pub(super) enum Source {
    /// With a model that is loaded.
    Model(Arc<Ready>),
    /// By itself.
    Texts(Box<Texts>),
}

impl Source {
    fn tokenizer(&self) -> Outcome<&Native> {
        match self {
            Source::Model(ready) => ready.tokenizer(),
            Source::Texts(texts) => Ok(&texts.tokenizer),
        }
    }

    /// Tokenizer and templates.
    fn texts(&self) -> Outcome<&Texts> {
        match self {
            Source::Texts(texts) => Ok(texts),
            Source::Model(ready) => match &**ready {
                Ready::Generates(model) => model.texts().ok_or_else(no_texts),
                Ready::Encodes(_) => {
                    Err(Failure::unsupported("a chat template of an encoder", "it continues no conversation"))
                }
            },
        }
    }
}

/// The tokenizer of a model.
#[pyclass(frozen, module = "yirage")]
pub(crate) struct Tokenizer(pub(super) Source);

/// The tokenizer of a model's files, of which no weight is read.
///
/// Raises:
///     ModelError, RequestError: files without a tokenizer.
#[pyfunction]
pub(crate) fn load_tokenizer(py: Python<'_>, model_path: PathBuf) -> Outcome<Tokenizer> {
    let path = super::found(py, &model_path.to_string_lossy())?;
    let texts = py.detach(|| Texts::load(&Checkpoint::open(&path)?))?;
    Ok(Tokenizer(Source::Texts(Box::new(texts.ok_or_else(no_texts)?))))
}

impl Ready {
    /// The tokenizer.
    ///
    /// # Errors
    /// A model without one.
    pub(super) fn tokenizer(&self) -> Outcome<&Native> {
        match self {
            Ready::Generates(model) => Ok(&model.texts().ok_or_else(no_texts)?.tokenizer),
            Ready::Encodes(encoder) => Ok(encoder.tokenizer()),
        }
    }
}

#[pymethods]
impl Tokenizer {
    /// The tokens of a text, with those that the model wants around it.
    #[pyo3(signature = (text, add_special_tokens = true))]
    fn encode(&self, text: &str, add_special_tokens: bool) -> Outcome<Vec<u32>> {
        let tokenizer = self.0.tokenizer()?;
        let options = EncodeOptions { add_special: add_special_tokens, ..tokenizer.default_options() };
        Ok(tokenizer.encode(text, options).map_err(SessionError::from)?)
    }

    /// The text of tokens.
    #[pyo3(signature = (token_ids, skip_special_tokens = false))]
    fn decode(&self, token_ids: Vec<u32>, skip_special_tokens: bool) -> Outcome<String> {
        let tokenizer = self.0.tokenizer()?;
        let size = tokenizer.vocab_size();
        if let Some(id) = token_ids.iter().find(|&&id| id as usize >= size) {
            return Err(Failure::Ours(
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
    ) -> Outcome<Bound<'py, PyAny>> {
        let ids = conversation(py, self.0.texts()?, messages)?;
        if tokenize {
            return Ok(ids.into_pyobject(py)?.into_any());
        }
        Ok(self.0.tokenizer()?.decode(&ids, false).into_pyobject(py)?.into_any())
    }

    /// Largest token plus one.
    #[getter]
    fn vocab_size(&self) -> Outcome<usize> {
        Ok(self.0.tokenizer()?.vocab_size())
    }

    /// The token that begins a text.
    #[getter]
    fn bos_token_id(&self) -> Outcome<Option<u32>> {
        Ok(self.0.tokenizer()?.bos())
    }

    /// The token that ends a text.
    #[getter]
    fn eos_token_id(&self) -> Outcome<Option<u32>> {
        Ok(self.0.tokenizer()?.eos())
    }

    fn __len__(&self) -> Outcome<usize> {
        self.vocab_size()
    }
}
