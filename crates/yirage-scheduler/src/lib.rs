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
//! # Who comes first
//! A sequence's rank is its priority (less is more urgent) and then its turn: which admission was its first. Those who
//! run are planned by rank. When blocks run out, the last of them loses its own.
//!
//! Admission takes the head of the queue or nobody. The head has the most urgent priority; of that priority those who
//! were preempted come first, by rank; then the oldest request of the key that was served the fewest tokens. A key that
//! comes begins with as many as the least served one, so it is owed nothing for the time before.
//!
//! # What follows from it
//! 1. The first of those who run is never preempted and runs at least one token in every step, unless somebody more
//!    urgent is admitted.
//! 2. Of one priority, all who had a turn come before all who had none, and nobody overtakes another who had a turn. So a
//!    request that had its turn waits at most for those who had theirs before, and for more urgent ones.
//! 3. While a key of some priority has requests without a turn, no other key of that priority is given one after it was
//!    served more. So it is ahead by no more than what it has running.
//! 4. With one priority and one key that is first come, first served: a request waits for at most the tokens of the
//!    requests before it.
//!
//! More urgent requests that never end starve the others: that is what a priority means.
//!
//! # Steps of a bounded time
//! While sequences decode, prompts take no more of a step than [`Scheduler::limit_prefill`] allows, at least one token.
//! How much that is the owner knows, who has the clock.
//!
//! ```
//! use yirage_scheduler::kv::{CacheGroup, GroupConfig, KvManager};
//! use yirage_scheduler::{EntryOutcome, NewSequence, Scheduler, SchedulerConfig, SeqUpdate, StepResult};
//!
//! let group = CacheGroup::Paged { k_width: 64, v_width: 64, window: None, layers: 2 };
//! let kv = KvManager::new(&[GroupConfig { group, blocks: 8 }], true)?;
//! let mut scheduler = Scheduler::new(SchedulerConfig::default(), kv)?;
//! scheduler.add(NewSequence { prompt: vec![1, 2, 3], max_new_tokens: Some(2), ..NewSequence::default() })?;
//! let mut output = Vec::new();
//! while !scheduler.is_idle() {
//!     let batch = scheduler.schedule()?;
//!     // A runner would compute the batch here and sample from its rows; this one always samples token 7.
//!     let result = |sample| if sample { EntryOutcome::Token(7) } else { EntryOutcome::Ran };
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
//! Where keys and values lie is bookkeeping of blocks ([`kv`]). This crate deliberately knows no model, no device, no text, no
//! sampling parameters and no clock: it is built from the IR alone.
#![forbid(unsafe_code)]

mod ahead;
mod batch;
mod config;
mod core;
mod error;
pub mod kv;
pub mod limits;
mod new_sequence;
mod phase;
mod plan;
mod queue;
mod rank;
mod seq_id;
mod sequence;
mod shares;
#[cfg(test)]
mod sim;
mod update;

pub use self::core::{Scheduler, SchedulerStats};
pub use ahead::UNKNOWN;
pub use batch::{Batch, BatchEntry, EntryOutcome, StepResult};
pub use config::SchedulerConfig;
pub use error::{AdmissionError, CommitError, ConfigError, StepInFlight};
pub use new_sequence::{LogitsWanted, NewSequence};
pub use phase::Phase;
pub use seq_id::SeqId;
pub use update::{FinishOutcome, FinishReason, SeqUpdate, SequenceUsage};
