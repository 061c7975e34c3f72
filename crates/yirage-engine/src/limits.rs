//! Every hard limit of the engine in one place: a queue, a table or a request beyond these numbers is refused with a
//! typed error that quotes the number, never truncated silently.

use std::time::Duration;

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

/// Positions of a cache block where no device says how many ([`yirage_plan::Target::kv_block_positions`]).
pub const BLOCK: usize = 32;

/// Blocks one cache group may have: slots (a block times its positions, and the offset in it) and the signed table entries must both stay below 2^31.
pub const MAX_POOL_BLOCKS: u32 = (1 << 26) - 1;

/// Cache groups one model may declare.
pub const MAX_GROUPS: usize = 64;

/// Sequences that may hold cache blocks at the same time.
pub const MAX_SEQS: u32 = 4096;

/// Tokens one step may run, over all sequences.
pub const MAX_STEP_TOKENS: u32 = 1 << 20;

/// Positions one sequence may have, prompt and output together.
pub const MAX_CONTEXT: u32 = 1 << 26;

/// Requests that may wait for admission, whatever the configuration asks for.
pub const MAX_WAITING: u32 = 1 << 16;

/// Stop token ids of one request.
pub const MAX_STOP_IDS: usize = 1024;

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

/// Bytes of a request's cache salt.
pub const MAX_SALT_BYTES: usize = 256;

/// Adapters beside a model.
pub const MAX_ADAPTERS: usize = 64;

/// Bytes of what distinguishes cached beginnings: a request's salt, and what the engine puts before it: the length that keys
/// were rotated for, adapters with their scales, the round of tokens that stand for rows.
pub const MAX_CACHE_SALT_BYTES: usize = MAX_SALT_BYTES + 5 + (3 + 20 * MAX_ADAPTERS) + 5;
