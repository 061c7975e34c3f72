//! What all requests share.

use crate::error::ApiError;
use crate::limits::{BODY_PIECE, BODY_WAIT, WORKERS};
use crate::metrics::RequestRegistry;
use crate::models::Models;
use crate::options::ServeOptions;
use crate::store::ResponseStore;
use std::hash::{BuildHasher, RandomState};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::{SystemTime, UNIX_EPOCH};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// A server's state.
pub(crate) struct App {
    pub(crate) options: ServeOptions,
    pub(crate) models: Models,
    pub(crate) live: Arc<RequestRegistry>,
    pub(crate) stored: ResponseStore,
    draining: AtomicBool,
    /// Why it ends, where nobody has asked it to.
    broken: OnceLock<String>,
    ids: AtomicU64,
    random: RandomState,
    workers: Semaphore,
    /// Room for bodies, in pieces of [`BODY_PIECE`] bytes.
    bodies: Arc<Semaphore>,
}

impl App {
    pub(crate) fn new(options: ServeOptions, models: Models) -> App {
        let pieces = (options.body_memory / BODY_PIECE).min(Semaphore::MAX_PERMITS);
        App {
            bodies: Arc::new(Semaphore::new(pieces)),
            options,
            models,
            live: Arc::default(),
            stored: ResponseStore::default(),
            draining: AtomicBool::new(false),
            broken: OnceLock::new(),
            ids: AtomicU64::new(0),
            random: RandomState::new(),
            workers: Semaphore::new(WORKERS),
        }
    }

    /// Runs what takes time on a thread that serves no connection.
    ///
    /// # Errors
    /// What `f` says; a panic in it.
    pub(crate) async fn work<R, F>(self: &Arc<Self>, f: F) -> Result<R, ApiError>
    where
        R: Send + 'static,
        F: FnOnce(&Arc<App>) -> Result<R, ApiError> + Send + 'static,
    {
        let closed = |_| ApiError::ours("the server has ended");
        let _worker = self.workers.acquire().await.map_err(closed)?;
        let app = self.clone();
        let run = tokio::task::spawn_blocking(move || f(&app)).await;
        run.map_err(|e| {
            tracing::error!(error = %e, "a request broke its handler");
            ApiError::ours("the request broke its handler; please report this")
        })?
    }

    /// Room for as many pieces of a body, until it is given back.
    ///
    /// # Errors
    /// 503 where the bodies of others take all of it.
    pub(crate) fn body_permit(&self, pieces: u32) -> Result<OwnedSemaphorePermit, ApiError> {
        self.bodies.clone().try_acquire_many_owned(pieces).map_err(|_| {
            let what =
                format!("the bodies of open requests take {} bytes, and no more may be held", self.options.body_memory);
            ApiError { code: Some("out_of_memory"), ..ApiError::unavailable(what, Some(BODY_WAIT)) }
        })
    }

    /// A number that was not given before, and that cannot be guessed.
    pub(crate) fn unique(&self) -> u64 {
        self.random.hash_one(self.ids.fetch_add(1, Ordering::Relaxed))
    }

    /// An id of this kind, `chatcmpl` for example.
    pub(crate) fn id(&self, kind: &str) -> String {
        format!("{kind}-{:016x}{:08x}", self.unique(), self.unique() >> 32)
    }

    /// From now on nothing new is taken.
    pub(crate) fn drain(&self) {
        self.draining.store(true, Ordering::Relaxed);
    }

    /// The server cannot go on; the first reason stays.
    pub(crate) fn is_broken_by(&self, why: &str) {
        let _ = self.broken.set(why.to_owned());
    }

    /// Why the server cannot go on.
    pub(crate) fn broken(&self) -> Option<&str> {
        self.broken.get().map(String::as_str)
    }

    pub(crate) fn is_draining(&self) -> bool {
        self.draining.load(Ordering::Relaxed)
    }
}

/// Seconds since 1970.
pub(crate) fn now() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs())
}
