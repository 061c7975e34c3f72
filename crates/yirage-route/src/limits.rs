//! Every limit of the router.

use std::time::Duration;

/// Bytes of a request's body, as those of the servers behind it.
pub(crate) const MAX_BODY: usize = 32 << 20;

/// MiB of all bodies that wait for the head of an answer: those of sixteen of the largest requests.
pub(crate) const BODY_MEBIBYTES: usize = 512;

/// Bytes of a request's line and headers together.
pub(crate) const MAX_HEAD: usize = 64 << 10;

/// Header lines of a request.
pub(crate) const MAX_HEADERS: usize = 64;

/// How long a client may take to send its headers, and a connection may be idle between two requests.
pub(crate) const HEAD_TIME: Duration = Duration::from_secs(30);

/// How long a client may take to send a body.
pub(crate) const BODY_TIME: Duration = Duration::from_secs(60);

/// Connections at once. Further ones wait to be accepted.
pub(crate) const MAX_CONNECTIONS: usize = 1024;

/// Bytes of a block of a prompt: about what a block of a server's cache has of English text.
pub(crate) const BLOCK_BYTES: usize = 128;

/// Blocks of a prompt that are looked at.
pub(crate) const MAX_BLOCKS: usize = 64;

/// Blocks that a router knows the replica of, at most.
pub(crate) const KNOWN_BLOCKS: usize = 1 << 17;

/// Replicas of a router.
pub(crate) const MAX_REPLICAS: usize = 256;

/// Health checks in a row without an answer by which a replica is unreachable. A refused connection is one at once.
pub(crate) const MISSED_CHECKS: u32 = 2;

/// Bytes of a health check's answer that are read.
pub(crate) const MAX_HEALTH: usize = 64 << 10;

/// Threads that move bytes.
pub(crate) const THREADS: usize = 2;

/// How often the end of open requests is looked for while the router ends.
pub(crate) const LOOK: Duration = Duration::from_millis(20);

/// How long connections may take to write out what is finished.
pub(crate) const WRITE_OUT: Duration = Duration::from_secs(2);

/// How long nothing is accepted after the system refused a connection.
pub(crate) const REFUSED: Duration = Duration::from_millis(50);
