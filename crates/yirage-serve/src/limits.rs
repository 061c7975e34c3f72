//! Every limit of the server. What exceeds one is refused with its number, or ended and said.

use std::time::Duration;

/// Bytes of a request's body.
pub const MAX_BODY: usize = 32 << 20;

/// Bytes of all bodies that are being read or looked at.
pub(crate) const BODY_MEMORY: usize = 512 << 20;

/// Bytes by which the room of a body grows.
pub(crate) const BODY_PIECE: usize = 4 << 10;

/// When who was refused because of others' bodies comes again.
pub(crate) const BODY_WAIT: Duration = Duration::from_secs(1);

/// Header lines of a request.
pub(crate) const MAX_HEADERS: usize = 64;

/// Bytes of a request's line and headers together.
pub(crate) const MAX_HEAD: usize = 64 << 10;

/// How long a client may take to send its headers, and how long a connection may be idle between two requests.
pub(crate) const HEAD_TIME: Duration = Duration::from_secs(30);

/// How long a client may take to send a body.
pub(crate) const BODY_TIME: Duration = Duration::from_secs(60);

/// How long a client may take no byte of an answer that is ready for it.
pub(crate) const STALLED: Duration = Duration::from_secs(60);

/// Pieces of an answer that are ready and not written; behind them the answer's task waits.
pub(crate) const FRAMES: usize = 32;

/// Connections at once. Further ones wait to be accepted.
pub(crate) const MAX_CONNECTIONS: usize = 1024;

/// Requests that are read, rendered and encoded at once, off the threads that serve connections.
pub(crate) const WORKERS: usize = 64;

/// How long a thread of theirs waits for the next one before it ends: an idle server has none, nor their stacks and what malloc keeps
/// for each.
pub(crate) const THREAD_REST: Duration = Duration::from_secs(1);

/// Silence in a stream before a comment is sent that keeps the connection open.
pub(crate) const KEEP_ALIVE: Duration = Duration::from_secs(15);

/// How long the status line of a stream waits for the first event, so that an error can still be a status.
pub(crate) const FIRST_EVENT: Duration = Duration::from_secs(5);

/// Choices of one request, all prompts together.
pub(crate) const MAX_CHOICES: usize = 128;

/// Inputs of one request for vectors or scores.
pub(crate) const MAX_INPUTS: usize = 2048;

/// Stop strings of one request, as the engine takes them.
pub(crate) const MAX_STOPS: usize = yirage_engine::limits::MAX_STOP_STRINGS;

/// Bytes of a request id that a client chose.
pub(crate) const MAX_REQUEST_ID: usize = 128;

/// Bytes of a file of keys, and the keys in it.
pub(crate) const MAX_KEY_FILE: u64 = 1 << 20;
/// Keys of a file.
pub(crate) const MAX_KEYS: usize = 4096;

/// Bytes of a file with certificates or a key of TLS.
pub(crate) const MAX_PEM_FILE: u64 = 1 << 20;

/// How long `/metrics` and `/health` wait for what only the engine knows.
pub(crate) const ASK_ENGINE: Duration = Duration::from_millis(500);

/// How long a server that cannot go on still says why, within the time for its end: who asks for its health asks each second or two.
pub(crate) const BROKEN_TIME: Duration = Duration::from_secs(2);

/// Responses that are kept at once.
pub(crate) const MAX_STORED: usize = 1024;

/// Bytes of all responses that are kept.
pub(crate) const STORED_BYTES: usize = 64 << 20;

/// How long a response is kept.
pub(crate) const STORED_TIME: Duration = Duration::from_secs(3600);
