//! How long a model stays loaded when nobody uses it.

use super::{Closing, ModelEntry, Models};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// How long a model stays when nobody uses it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum KeepAlive {
    /// For this long.
    For(Duration),
    /// Until another one needs its memory.
    Forever,
}

/// Since when a model is not used, and how long a client wants it to stay.
pub(super) struct Idle {
    since: Instant,
    keep: Option<KeepAlive>,
}

impl Idle {
    pub(super) fn new() -> Idle {
        Idle { since: Instant::now(), keep: None }
    }
}

impl ModelEntry {
    /// It is used now.
    pub(super) fn touch(&self) {
        self.idle().since = Instant::now();
    }

    /// Says how long it stays, until it is unloaded.
    pub(crate) fn keep(&self, keep: KeepAlive) {
        self.idle().keep = Some(keep);
    }

    /// How long it stays from now on if nobody uses it; none is for ever. `usual` is what holds where no client said it.
    pub(crate) fn stays(&self, usual: Option<Duration>) -> Option<Duration> {
        let idle = self.idle();
        match idle.keep.unwrap_or(usual.map_or(KeepAlive::Forever, KeepAlive::For)) {
            KeepAlive::For(time) => Some(time.saturating_sub(idle.since.elapsed())),
            KeepAlive::Forever => None,
        }
    }

    /// Unloads it where its time is over.
    fn unload_idle(&self, usual: Option<Duration>) {
        let in_use = match self.slot().as_ref() {
            None => return,
            Some(served) => Arc::strong_count(served) > 1,
        };
        if in_use {
            return self.touch();
        }
        if self.stays(usual) == Some(Duration::ZERO) && self.close() == Closing::Done {
            self.idle().keep = None;
            tracing::info!(model = self.name(), "unloaded, since nobody used it");
        }
    }
}

impl Models {
    /// Unloads the models whose time is over. It may take long: not for threads that serve connections.
    pub(crate) fn unload_idle(&self, usual: Option<Duration>) {
        self.iter().for_each(|entry| entry.unload_idle(usual));
    }
}
