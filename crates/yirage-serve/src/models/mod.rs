//! The models of a server: found by name, opened when first wanted or when told, and unloaded within a budget.
//!
//! Unknown here: how a model is found and on which device it is opened. Whoever starts the server brings that.

mod adapter_files;
mod adapters;
mod description;
mod generator;
mod idle;
mod prefill_server;
mod served;
mod slots;

pub use adapter_files::AdapterFiles;
pub(crate) use adapters::{ADAPTER_SCALE, adapter_scales};
pub use description::Description;
pub use generator::Generator;
pub(crate) use idle::KeepAlive;
pub(crate) use prefill_server::PrefillRequest;
pub use prefill_server::{PrefillAddressError, PrefillServer};
pub use served::Served;
pub use slots::SlotFiles;
pub(crate) use slots::SlotKey;

use crate::error::ApiError;
use crate::metrics::ModelMetrics;
use axum::http::StatusCode;
use idle::Idle;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// Opens a model; the error is for operators and clients.
pub type ModelOpener = Box<dyn Fn() -> Result<Served, String> + Send + Sync>;

/// A model that a server has, opened or not.
pub struct ModelEntry {
    names: Vec<String>,
    open: ModelOpener,
    bytes: u64,
    description: Description,
    /// Names of adapters that answer as models of their own.
    adapters: Mutex<Vec<String>>,
    slot: Mutex<Option<Arc<Served>>>,
    /// When it was used last, in calls.
    used: AtomicU64,
    created: u64,
    idle: Mutex<Idle>,
    pub(crate) metrics: ModelMetrics,
}

impl ModelEntry {
    /// A model under one or several names, the first of which answers carry; `bytes` is about what it will take.
    pub fn new(names: Vec<String>, bytes: u64, open: ModelOpener) -> ModelEntry {
        let created = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs());
        let (slot, used) = (Mutex::new(None), AtomicU64::new(0));
        let idle = Mutex::new(Idle::new());
        let (description, figures) = (Description::default(), ModelMetrics::default());
        let adapters = Mutex::default();
        ModelEntry { names, open, bytes, description, adapters, slot, used, created, idle, metrics: figures }
    }

    /// The same model, with what its files say of it.
    #[must_use]
    pub fn described(self, description: Description) -> ModelEntry {
        ModelEntry { description, ..self }
    }

    /// The same model, whose adapters of these names answer as models of their own.
    #[must_use]
    pub fn with_adapters(self, names: Vec<String>) -> ModelEntry {
        ModelEntry { adapters: Mutex::new(names), ..self }
    }

    /// Names of adapters that answer as models of their own.
    pub(crate) fn adapters(&self) -> Vec<String> {
        self.adapters.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Takes over which adapters the opened model has.
    ///
    /// # Errors
    /// A model whose engine has stopped.
    pub(crate) fn set_adapters(&self, served: &Served) -> Result<(), ApiError> {
        let Served::Generator(generator) = served else { return Ok(()) };
        let names = generator.adapters()?.into_iter().map(|adapter| adapter.name).collect();
        *self.adapters.lock().unwrap_or_else(PoisonError::into_inner) = names;
        Ok(())
    }

    /// What its files say of it.
    pub(crate) fn description(&self) -> &Description {
        &self.description
    }

    /// About what it takes, which is what its files have.
    pub(crate) fn bytes(&self) -> u64 {
        self.bytes
    }

    /// The name that answers carry.
    pub(crate) fn name(&self) -> &str {
        self.names.first().map_or("", String::as_str)
    }

    /// All names.
    pub(crate) fn names(&self) -> &[String] {
        &self.names
    }

    /// Seconds since 1970 when the server took it.
    pub(crate) fn created(&self) -> u64 {
        self.created
    }

    /// The model, where it is open.
    pub(crate) fn opened(&self) -> Option<Arc<Served>> {
        self.slot().clone()
    }

    fn slot(&self) -> MutexGuard<'_, Option<Arc<Served>>> {
        self.slot.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn idle(&self) -> MutexGuard<'_, Idle> {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes the model out where nobody uses it.
    fn close(&self) -> Closing {
        let mut slot = self.slot();
        match slot.as_ref() {
            None => Closing::WasClosed,
            // Others get it under this lock alone, so nobody can take it from here on.
            Some(served) if Arc::strong_count(served) == 1 => {
                let served = slot.take();
                drop(slot);
                drop(served);
                Closing::Done
            }
            Some(_) => Closing::InUse,
        }
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Closing {
    Done,
    WasClosed,
    InUse,
}

/// A model while it is used: it is not unloaded.
#[derive(Clone)]
pub(crate) struct ModelLease {
    pub(crate) entry: Arc<ModelEntry>,
    pub(crate) served: Arc<Served>,
    /// Whether it answers for a name that is none of its own.
    pub(crate) stands_in: bool,
    /// The adapter that its name means.
    pub(crate) adapter: Option<String>,
}

impl ModelLease {
    fn new(entry: &Arc<ModelEntry>, served: Arc<Served>, name: Option<&str>) -> ModelLease {
        let of_model = |name: &&str| entry.names.iter().any(|known| known == name);
        let adapter = name.filter(|name| !of_model(name)).map(str::to_owned);
        ModelLease { entry: entry.clone(), served, stands_in: false, adapter }
    }

    /// The name that answers carry.
    pub(crate) fn name(&self) -> &str {
        self.adapter.as_deref().unwrap_or_else(|| self.entry.name())
    }

    /// The model, which has to generate text.
    ///
    /// # Errors
    /// One that does not.
    pub(crate) fn generator(&self) -> Result<&Generator, ApiError> {
        match &*self.served {
            Served::Generator(generator) => Ok(generator),
            Served::Encoder(_) => {
                let what = format!("the model `{}` generates no text: it gives vectors or scores", self.entry.name());
                Err(ApiError::field("model", what))
            }
        }
    }
}

/// All models of a server.
pub(crate) struct Models {
    entries: Vec<Arc<ModelEntry>>,
    budget: Option<u64>,
    clock: AtomicU64,
    /// One model is opened at a time, so that what they take together is known.
    opening: Mutex<()>,
}

impl Models {
    pub(crate) fn new(entries: Vec<ModelEntry>, budget: Option<u64>) -> Models {
        let entries = entries.into_iter().map(Arc::new).collect();
        Models { entries, budget, clock: AtomicU64::new(0), opening: Mutex::new(()) }
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &Arc<ModelEntry>> {
        self.entries.iter()
    }

    /// The entry of a name. Without a name it is the only one.
    ///
    /// # Errors
    /// No such model; no name where there are several.
    pub(crate) fn entry(&self, name: Option<&str>) -> Result<&Arc<ModelEntry>, ApiError> {
        let known = || self.entries.iter().map(|entry| entry.name()).collect::<Vec<_>>();
        match (name, self.entries.as_slice()) {
            (Some(name), entries) => {
                let has = |entry: &&Arc<ModelEntry>| {
                    entry.names.iter().any(|known| known == name) || entry.adapters().iter().any(|known| known == name)
                };
                entries.iter().find(has).ok_or_else(|| ApiError::no_model(name, &known()))
            }
            (None, [only]) => Ok(only),
            (None, _) => {
                let what = format!("`model` is missing; this server has: {}", known().join(", "));
                Err(ApiError::field("model", what))
            }
        }
    }

    /// The model that answers to a name, opened where it is not. Clients have names of their makers' models built in, so
    /// where there is one model it answers to every name, and says so. It may take long: not for threads that serve
    /// connections.
    ///
    /// # Errors
    /// As [`Models::lease_named`].
    pub(crate) fn lease(&self, name: Option<&str>) -> Result<ModelLease, ApiError> {
        match (self.entry(name), self.entries.as_slice()) {
            (Err(_), [_]) => Ok(ModelLease { stands_in: true, ..self.lease_named(None)? }),
            _ => self.lease_named(name),
        }
    }

    /// The model of a name, opened where it is not.
    ///
    /// # Errors
    /// As [`Models::entry`]; a model that cannot be opened, or that does not fit beside those that are used.
    pub(crate) fn lease_named(&self, name: Option<&str>) -> Result<ModelLease, ApiError> {
        let entry = self.entry(name)?;
        entry.touch();
        entry.used.store(self.clock.fetch_add(1, Ordering::Relaxed) + 1, Ordering::Relaxed);
        if let Some(served) = entry.opened() {
            return Ok(ModelLease::new(entry, served, name));
        }
        let _opening = self.opening.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(served) = entry.opened() {
            return Ok(ModelLease::new(entry, served, name));
        }
        self.evict_for(entry)?;
        let opened = (entry.open)();
        let served = opened.map_err(|why| {
            let what = format!("the model `{}` cannot be loaded: {why}", entry.name());
            ApiError { code: Some("model_not_loaded"), ..ApiError::unavailable(what, None) }
        })?;
        let served = Arc::new(served);
        entry.touch();
        *entry.slot() = Some(served.clone());
        // An engine that has stopped since is told by the model's health as well.
        entry.set_adapters(&served)?;
        Ok(ModelLease::new(entry, served, name))
    }

    /// Closes models, the one used longest ago first, until `entry` fits.
    fn evict_for(&self, entry: &ModelEntry) -> Result<(), ApiError> {
        let Some(budget) = self.budget else { return Ok(()) };
        if entry.bytes > budget {
            let (name, bytes) = (entry.name(), entry.bytes);
            let what =
                format!("the model `{name}` takes about {bytes} bytes, and all models together may take {budget}");
            return Err(ApiError::unavailable(what, None));
        }
        let mut open: Vec<(u64, u64, &Arc<ModelEntry>)> = Vec::new();
        for other in &self.entries {
            if let Some(served) = other.opened() {
                open.push((other.used.load(Ordering::Relaxed), served.bytes(), other));
            }
        }
        open.sort_by_key(|(used, ..)| *used);
        let mut taken: u64 = open.iter().map(|(_, bytes, _)| bytes).sum();
        for (_, bytes, other) in open {
            if taken.saturating_add(entry.bytes) <= budget {
                break;
            }
            if other.close() == Closing::Done {
                tracing::info!(model = other.name(), bytes, "unloaded for another model");
                taken -= bytes;
            }
        }
        if taken.saturating_add(entry.bytes) > budget {
            let what = format!(
                "the model `{}` takes about {} bytes beside {taken} of models that are in use, and all may take {budget}",
                entry.name(),
                entry.bytes
            );
            return Err(ApiError::unavailable(what, Some(Duration::from_secs(5))));
        }
        Ok(())
    }

    /// Unloads the model of a name; false where it was not loaded.
    ///
    /// # Errors
    /// As [`Models::entry`]; 409 while it is used.
    pub(crate) fn unload(&self, name: Option<&str>) -> Result<bool, ApiError> {
        let entry = self.entry(name)?;
        match entry.close() {
            Closing::Done => Ok(true),
            Closing::WasClosed => Ok(false),
            Closing::InUse => {
                let what = format!("the model `{}` is in use; unload it when its requests have ended", entry.name());
                Err(ApiError::status(StatusCode::CONFLICT, what))
            }
        }
    }
}
