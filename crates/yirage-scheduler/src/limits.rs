//! The hard limits of scheduling and of the cache's bookkeeping: what is beyond one is refused with a typed error that quotes
//! the number.

/// Positions per cache block. Attention reads keys in blocks at absolute multiples of this number, so it is a property
/// of the numerics and not a tuning knob.
pub const BLOCK: usize = 32;

/// Blocks one cache group may have: slots (a block times its positions, and the offset in it) and the signed table entries must
/// both stay below 2^31.
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

/// Bytes of a request's cache salt.
pub const MAX_SALT_BYTES: usize = 256;

/// Adapters beside a model.
pub const MAX_ADAPTERS: usize = 64;

/// Bytes of what distinguishes cached beginnings: a request's salt, and what the engine puts before it: the length that keys
/// were rotated for, adapters with their scales, the round of tokens that stand for rows.
pub const MAX_CACHE_SALT_BYTES: usize = MAX_SALT_BYTES + 5 + (3 + 20 * MAX_ADAPTERS) + 5;
