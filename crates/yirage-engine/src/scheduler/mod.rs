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
//! ```
//! use yirage_engine::kv::{CacheGroup, GroupConfig, KvManager};
//! use yirage_engine::scheduler::{Config, NewSequence, Outcome, Scheduler, SeqUpdate, StepResult};
//!
//! let group = CacheGroup::Paged { k_width: 64, v_width: 64, window: None, layers: 2 };
//! let kv = KvManager::new(&[GroupConfig { group, blocks: 8 }], true)?;
//! let mut scheduler = Scheduler::new(Config::default(), kv)?;
//! scheduler.add(NewSequence { prompt: vec![1, 2, 3], max_new_tokens: Some(2), ..NewSequence::default() })?;
//! let mut output = Vec::new();
//! while !scheduler.is_idle() {
//!     let batch = scheduler.schedule()?;
//!     // A runner would compute the batch here and sample from its rows; this one always samples token 7.
//!     let result = |sample| if sample { Outcome::Token(7) } else { Outcome::Ran };
//!     let results: Vec<StepResult> =
//!         batch.entries.iter().map(|entry| StepResult { seq: entry.seq, outcome: result(entry.sample) }).collect();
//!     for update in scheduler.commit(&results)? {
//!         if let SeqUpdate::Token { token, .. } = update {
//!             output.push(token);
//!         }
//!     }
//! }
//! assert_eq!(output, [7, 7]);
//! ```
//!
//! This module deliberately knows no model, no device, no text, no sampling parameters and no clock.

mod ahead;
mod batch;
mod config;
mod core;
mod error;
mod new_sequence;
mod phase;
mod plan;
mod seq_id;
mod sequence;
#[cfg(test)]
mod sim;
mod update;

pub use self::core::{Scheduler, Stats};
pub use ahead::UNKNOWN;
pub use batch::{Batch, BatchEntry, Outcome, StepResult};
pub use config::Config;
pub use error::{AdmissionError, CommitError, ConfigError, StepInFlight};
pub use new_sequence::{LogitsWanted, NewSequence};
pub use phase::Phase;
pub use seq_id::SeqId;
pub use update::{Ended, FinishReason, SeqUpdate, Usage};
