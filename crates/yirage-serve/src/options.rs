//! What an operator decides.

use crate::keys::ApiKeys;
use crate::limits::{BODY_MEMORY, BODY_TIME, HEAD_TIME, STALLED};
use crate::tls::Tls;
use std::net::SocketAddr;
use std::time::Duration;

/// Options of a server.
#[derive(Clone, Debug)]
pub struct ServeOptions {
    /// Where it listens; port 0 takes any that is free.
    pub address: SocketAddr,
    /// Who may ask. Without any key everybody may, and then only this machine is listened to.
    pub keys: ApiKeys,
    /// What connections are secured with; none is plain HTTP.
    pub tls: Option<Tls>,
    /// Listen to other machines without a key.
    pub insecure: bool,
    /// Names in the `Host` header beside those of this machine, where no key is wanted.
    pub allowed_hosts: Vec<String>,
    /// Origins of web pages that may ask, as `https://example.org`.
    pub allowed_origins: Vec<String>,
    /// Requests of a model that may be open beyond those it runs at once; further ones are told when to come again.
    pub max_queued: usize,
    /// Tokens of prompts of a model that may wait to be computed; further requests are told when to come again. None is no
    /// limit beyond `max_queued`.
    pub max_queued_tokens: Option<u64>,
    /// How long one request may take; none is for ever.
    pub request_time: Option<Duration>,
    /// How long open requests may go on when the server is told to end.
    pub drain_time: Duration,
    /// After how long without a token, while requests run, the server calls itself stuck.
    pub stuck_after: Duration,
    /// How long a model stays loaded when nobody uses it, where no client says so; none is until another one needs its
    /// memory.
    pub idle_unload: Option<Duration>,
    /// What is called once nothing has been open for a second, after each time in which something was: the owner of the
    /// process may give back memory then that requests have left free.
    pub when_idle: Option<fn()>,
    /// How long a client may take to send its headers, and how long a connection may be idle between two requests.
    pub head_time: Duration,
    /// How long a client may take to send a body.
    pub body_time: Duration,
    /// How long a client may take no byte of an answer that is ready for it.
    pub stalled_time: Duration,
    /// Bytes of all bodies that are being read or looked at; a request beyond them is told to come again.
    pub body_memory: usize,
    /// Bytes that all loaded models may take; beyond them the one used longest ago is unloaded. None is no limit.
    pub memory: Option<u64>,
}

impl Default for ServeOptions {
    /// This machine alone, port 8080, no key.
    fn default() -> ServeOptions {
        ServeOptions {
            address: SocketAddr::from(([127, 0, 0, 1], 8080)),
            keys: ApiKeys::default(),
            tls: None,
            insecure: false,
            allowed_hosts: Vec::new(),
            allowed_origins: Vec::new(),
            max_queued: 256,
            max_queued_tokens: None,
            request_time: None,
            drain_time: Duration::from_secs(30),
            stuck_after: Duration::from_secs(60),
            idle_unload: None,
            when_idle: None,
            head_time: HEAD_TIME,
            body_time: BODY_TIME,
            stalled_time: STALLED,
            body_memory: BODY_MEMORY,
            memory: None,
        }
    }
}
