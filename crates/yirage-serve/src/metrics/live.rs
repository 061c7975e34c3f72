//! What is open: requests that were taken and have not ended, and when a token came last.

use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// The open requests.
#[derive(Default)]
pub(crate) struct RequestRegistry {
    open: Mutex<RegistryState>,
}

#[derive(Default)]
struct RegistryState {
    next: u64,
    requests: BTreeMap<u64, OpenRequest>,
    /// When something happened last.
    moved: Option<Instant>,
}

struct OpenRequest {
    id: String,
    what: String,
    since: Instant,
    tokens: Arc<AtomicU64>,
}

/// One open request, for as long as it is kept.
pub(crate) struct Ticket {
    live: Arc<RequestRegistry>,
    number: u64,
    tokens: Arc<AtomicU64>,
}

impl RequestRegistry {
    fn open(&self) -> MutexGuard<'_, RegistryState> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Opens a request; `what` says which model or path it is for.
    pub(crate) fn enter(self: &Arc<Self>, id: &str, what: &str) -> Ticket {
        let mut open = self.open();
        let (number, now) = (open.next, Instant::now());
        open.next += 1;
        if open.requests.is_empty() {
            open.moved = Some(now);
        }
        let tokens = Arc::<AtomicU64>::default();
        let request = OpenRequest { id: id.to_owned(), what: what.to_owned(), since: now, tokens: tokens.clone() };
        open.requests.insert(number, request);
        Ticket { live: self.clone(), number, tokens }
    }

    /// How many are open.
    pub(crate) fn count(&self) -> usize {
        self.open().requests.len()
    }

    /// Since when nothing has been open, after something was.
    pub(crate) fn idle_since(&self) -> Option<Instant> {
        let open = self.open();
        open.moved.filter(|_| open.requests.is_empty())
    }

    /// For how long nothing has come of any request, where some are open.
    pub(crate) fn silence(&self) -> Option<Duration> {
        let open = self.open();
        open.moved.filter(|_| !open.requests.is_empty()).map(|moved| moved.elapsed())
    }

    /// What is open, for whoever wants to know why nothing moves. No text of any request is in it.
    pub(crate) fn recorded(&self) -> Value {
        let open = self.open();
        let of = |request: &OpenRequest| {
            json!({
                "id": request.id,
                "for": request.what,
                "open_seconds": request.since.elapsed().as_secs_f64(),
                "tokens": request.tokens.load(Ordering::Relaxed),
            })
        };
        open.requests.values().map(of).collect()
    }
}

impl Ticket {
    /// A token came.
    pub(crate) fn token(&self) {
        self.tokens.fetch_add(1, Ordering::Relaxed);
        self.live.open().moved = Some(Instant::now());
    }
}

impl Drop for Ticket {
    fn drop(&mut self) {
        let mut open = self.live.open();
        open.requests.remove(&self.number);
        open.moved = Some(Instant::now());
    }
}
