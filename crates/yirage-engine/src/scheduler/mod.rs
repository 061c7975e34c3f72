//! Which tokens of which sequences run in the next step: continuous batching with chunked prefill, prefix reuse and
//! preemption, as a pure value.
//!
//! ```text
//!            admit                 last prompt token            stop, length, cancel, error
//!  Waiting ────────► Prefill ──────────────────────► Decode ───────────────────────────────► Finished
//!                    │     ▲                           │        (Finished is reachable from every state)
//!            preempt │     │ admit (recompute)         │ preempt
//!                    ▼     │                           │
//!                   Preempted ◄────────────────────────┘
//! ```
//!
//! Requests are served first come first served: the running sequences are always the oldest unfinished ones, because
//! admission takes the head of the queue or nobody and preemption takes the newest. The oldest sequence is therefore
//! never preempted and runs at least one token in every step, so a request waits for at most the tokens of the
//! requests before it.
//!
//! This module deliberately knows no model, no device, no text, no sampling parameters and no clock.

mod batch;
mod config;
mod core;
mod error;
mod plan;
mod request;
mod sequence;
#[cfg(test)]
mod sim;

pub use self::core::{Scheduler, Stats};
pub use batch::{Batch, Entry, Outcome, StepResult};
pub use config::Config;
pub use error::{AdmissionError, CommitError, ConfigError, StepInFlight};
pub use request::{Ended, Event, FinishReason, LogitsWanted, Request, SeqId, Usage};
pub use sequence::Phase;
