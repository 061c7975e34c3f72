//! The adapters of a model: their numbers and scales, and others that clients load and unload.

use super::adapter_files::{AdapterFiles, without_place};
use super::generator::Generator;
use crate::error::ApiError;
use crate::fields::{FieldTable, Fields, honoured};
use axum::http::StatusCode;
use serde_json::Value;
use yirage_engine::{AdapterScale, EngineAdapter};
use yirage_model::Checkpoint;
use yirage_session::SessionError;

/// An adapter's number and its scale, as llama.cpp has them.
pub(crate) const ADAPTER_SCALE: FieldTable =
    &[&[honoured("id", r#"{"type":"integer","minimum":0}"#), honoured("scale", r#"{"type":["number","null"]}"#)]];

/// Numbers and scales of a list.
///
/// # Errors
/// Anything else in it, by its place.
pub(crate) fn adapter_scales(list: Vec<Value>, place: &str) -> Result<Vec<(usize, f32)>, ApiError> {
    let mut scales = Vec::with_capacity(list.len());
    for (at, item) in list.into_iter().enumerate() {
        let mut fields = Fields::within(item, ADAPTER_SCALE, &format!("{place}[{at}]"))?;
        let id = fields.whole::<u32>("id", "the number of an adapter, as GET /lora-adapters has it")?;
        let id = fields.need("id", id)?;
        scales.push((id as usize, fields.number("scale")?.unwrap_or(0.0)));
        fields.finish()?;
    }
    Ok(scales)
}

impl Generator {
    /// The adapters, in the order of their numbers.
    ///
    /// # Errors
    /// A model whose engine has stopped.
    pub(crate) fn adapters(&self) -> Result<Vec<EngineAdapter>, SessionError> {
        self.model().between_steps(|engine| engine.adapters().to_vec())
    }

    /// Scales by the adapters' names.
    ///
    /// # Errors
    /// A number that none has.
    pub(crate) fn named(&self, scales: &[(usize, f32)], field: &str) -> Result<Vec<AdapterScale>, ApiError> {
        let adapters = self.adapters()?;
        let unknown = |id: usize| {
            let what = format!("there is no adapter {id}; there are {}, counted from 0", adapters.len());
            ApiError::field(field, what)
        };
        let one = |&(id, scale): &(usize, f32)| {
            let adapter = adapters.get(id).ok_or_else(|| unknown(id))?;
            Ok(AdapterScale { name: adapter.name.clone(), scale })
        };
        scales.iter().map(one).collect()
    }

    /// Changes the scales of requests that name no adapters.
    ///
    /// # Errors
    /// A number that none has, or a scale that is none.
    pub(crate) fn set_adapter_scales(&self, scales: &[(usize, f32)]) -> Result<(), ApiError> {
        let scales = self.named(scales, "id")?;
        let set = self.model().between_steps(move |engine| engine.set_adapter_scales(&scales));
        Ok(set?.map_err(SessionError::from)?)
    }

    /// Loads an adapter that requests name as their model from then on.
    ///
    /// # Errors
    /// 400 where clients may load none; a path that is none of the folder, a name that is taken, an adapter that does not
    /// fit.
    pub(crate) fn load_adapter(&self, name: &str, path: &str) -> Result<(), ApiError> {
        let files = self.adapter_files.as_ref().ok_or_else(no_folder)?;
        let adapter = EngineAdapter { name: name.to_owned(), adapter: files.open(path)?, scale: 0.0 };
        let mut adapters = self.adapters()?;
        if adapters.iter().any(|other| other.name == adapter.name) {
            return Err(ApiError::field(
                "lora_name",
                format!("there is an adapter called {name:?} already; unload it first"),
            ));
        }
        adapters.push(adapter);
        self.replace_adapters(files, adapters)
    }

    /// Unloads an adapter.
    ///
    /// # Errors
    /// 400 where clients may load none; 404 for one that is not there; 409 while requests use it.
    pub(crate) fn unload_adapter(&self, name: &str) -> Result<(), ApiError> {
        let files = self.adapter_files.as_ref().ok_or_else(no_folder)?;
        let mut adapters = self.adapters()?;
        let count = adapters.len();
        adapters.retain(|adapter| adapter.name != name);
        if adapters.len() == count {
            return Err(ApiError::not_found(format!("there is no adapter called {name:?}")));
        }
        self.replace_adapters(files, adapters)
    }

    fn replace_adapters(&self, files: &AdapterFiles, adapters: Vec<EngineAdapter>) -> Result<(), ApiError> {
        let checkpoint = Checkpoint::open(&files.model).map_err(SessionError::from)?;
        let replaced = self.model().between_steps(move |engine| engine.replace_adapters(&checkpoint, adapters))?;
        replaced.map_err(|error| {
            let error = ApiError::from(error);
            ApiError { message: without_place(&error.message, &files.folder), ..error }
        })
    }
}

fn no_folder() -> ApiError {
    let what = "adapters are not loaded here; start the server with --lora-path FOLDER";
    ApiError { code: Some("unsupported"), ..ApiError::status(StatusCode::BAD_REQUEST, what) }
}
