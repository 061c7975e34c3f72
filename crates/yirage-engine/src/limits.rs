//! Every hard limit of the engine in one place: a queue, a table or a request beyond these numbers is refused with a
//! typed error that quotes the number, never truncated silently.

use std::time::Duration;
pub use yirage_scheduler::limits::{
    BLOCK, MAX_ADAPTERS, MAX_CACHE_SALT_BYTES, MAX_CONTEXT, MAX_GROUPS, MAX_POOL_BLOCKS, MAX_SALT_BYTES, MAX_SEQS,
    MAX_STEP_TOKENS, MAX_STOP_IDS, MAX_WAITING,
};

/// Bytes of weights from which on kernels are measured with them: fewer lie in caches.
pub const TUNING_BYTES: u64 = 64 << 20;

/// Time within which that ends, whatever is left to measure.
pub const TUNING_TIME: Duration = Duration::from_millis(900);

/// Readings of each answer within it.
pub const TUNING_ROUNDS: usize = 3;

/// Readings of each answer of a full measurement.
pub const FULL_TUNING_ROUNDS: usize = 7;

/// Bytes of a kept measurement.
pub const TUNING_RECORD_BYTES: u64 = 32 << 10;

/// Bytes of all kept measurements.
pub const TUNING_FOLDER_BYTES: u64 = 1 << 20;

/// Sequences of tokens that one request may forbid.
pub const MAX_BAD_WORDS: usize = 1024;

/// Tokens of one of them.
pub const MAX_BAD_WORD_TOKENS: usize = 64;

/// Stop strings of one request.
pub const MAX_STOP_STRINGS: usize = 64;

/// Bytes of one stop string.
pub const MAX_STOP_BYTES: usize = 1024;

/// Entries of a request's logit bias.
pub const MAX_LOGIT_BIAS: usize = 4096;

/// Alternatives a request may ask for beside the log-probability of the chosen token.
pub const MAX_LOGPROBS: u32 = 128;

/// Drafts of one sequence that a step may verify.
pub const MAX_DRAFTS: u32 = 255;

/// Unread tokens of a sequence that a draft model reads together with its first guess.
pub const READ_ALONG: usize = 16;
