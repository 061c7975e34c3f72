//! Why there is no router.

use crate::limits::MAX_REPLICAS;
use std::io;
use std::net::SocketAddr;
use thiserror::Error;

/// Why there is no router.
#[derive(Debug, Error)]
pub enum RouteError {
    /// An address that is none.
    #[error("expected http://HOST:PORT of a server, got {given:?}: {why}")]
    Replica {
        /// What was given.
        given: String,
        /// What is wrong with it.
        why: &'static str,
    },
    /// No servers, too many, or one twice.
    #[error("expected 1 to {MAX_REPLICAS} different servers to route to, got {count}{twice}")]
    Replicas {
        /// How many there are.
        count: usize,
        /// Which one is there twice, in words.
        twice: String,
    },
    /// The address cannot be listened to.
    #[error("{address}: {source}")]
    Bind {
        /// The address.
        address: SocketAddr,
        /// What the system said.
        source: io::Error,
    },
    /// The system gives no threads.
    #[error("no threads to serve connections: {0}")]
    Threads(io::Error),
    /// The system does not tell the process that it is to end.
    #[error("requests to end cannot be taken: {0}")]
    Signals(io::Error),
}
