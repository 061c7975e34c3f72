//! A replica: where it is, what is known of it, and what it has been given.

use crate::choice::ReplicaLoad;
use crate::error::RouteError;
use std::fmt;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use tokio::sync::watch;

/// Where a server listens.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ReplicaAddress {
    authority: String,
}

impl ReplicaAddress {
    /// From `http://HOST:PORT` or `HOST:PORT`. What is encrypted is for whoever stands before the router.
    ///
    /// # Errors
    /// [`RouteError::Replica`].
    pub fn parse(given: &str) -> Result<ReplicaAddress, RouteError> {
        let wrong = |why| RouteError::Replica { given: given.to_owned(), why };
        if given.starts_with("https:") {
            return Err(wrong(
                "a router speaks http to its servers; have them listen without --tls-cert on a network of their own",
            ));
        }
        let authority = given.strip_prefix("http://").unwrap_or(given).trim_end_matches('/');
        if authority.contains(['/', '@', '?', '#']) || authority.contains(char::is_whitespace) {
            return Err(wrong("a host and a port alone are wanted"));
        }
        match authority.rsplit_once(':') {
            Some((host, port)) if !host.is_empty() && port.parse::<u16>().is_ok_and(|port| port > 0) => {
                Ok(ReplicaAddress { authority: authority.to_owned() })
            }
            _ => Err(wrong("a host and a port from 1 to 65535 are wanted")),
        }
    }

    /// Host and port.
    pub fn authority(&self) -> &str {
        &self.authority
    }
}

impl fmt::Display for ReplicaAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "http://{}", self.authority)
    }
}

/// What a replica says of itself, or that it says nothing.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum ReplicaState {
    /// Nobody has asked it yet.
    Unknown,
    /// It takes requests.
    Ready,
    /// It answers and takes none, for a reason in its own words. What it has begun it ends.
    NotReady(String),
    /// It does not answer: what it has begun is lost.
    Unreachable(String),
}

/// A server behind the router.
pub(crate) struct Replica {
    pub(crate) address: ReplicaAddress,
    pub(crate) figures: ReplicaFigures,
    state: watch::Sender<ReplicaState>,
}

/// What a replica was given and what came of it.
#[derive(Default)]
pub(crate) struct ReplicaFigures {
    pub(crate) open: AtomicUsize,
    pub(crate) given: AtomicU64,
    /// Answers by the first digit of their status.
    pub(crate) answered: [AtomicU64; 6],
    /// Requests that it got no word of an answer for.
    pub(crate) failed: AtomicU64,
    /// Answers that broke off.
    pub(crate) broken: AtomicU64,
}

impl Replica {
    pub(crate) fn new(address: ReplicaAddress) -> Replica {
        let (state, _) = watch::channel(ReplicaState::Unknown);
        Replica { address, figures: ReplicaFigures::default(), state }
    }

    pub(crate) fn state(&self) -> ReplicaState {
        self.state.borrow().clone()
    }

    /// Says what it is now; true where it was something else.
    pub(crate) fn becomes(&self, now: ReplicaState) -> bool {
        self.state.send_if_modified(|state| {
            let differs = *state != now;
            *state = now;
            differs
        })
    }

    /// Waits until it is unreachable: why.
    pub(crate) async fn lost(&self) -> String {
        let mut states = self.state.subscribe();
        loop {
            if let ReplicaState::Unreachable(why) = &*states.borrow_and_update() {
                return why.clone();
            }
            if states.changed().await.is_err() {
                return "the router has ended".into();
            }
        }
    }

    pub(crate) fn load(&self, has_failed: bool) -> ReplicaLoad {
        ReplicaLoad {
            // One that nobody has asked yet may well be there.
            is_candidate: !has_failed && matches!(self.state(), ReplicaState::Ready | ReplicaState::Unknown),
            open: self.figures.open.load(Ordering::Relaxed),
            given: self.figures.given.load(Ordering::Relaxed),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::ReplicaAddress;

    #[test]
    fn an_address_is_a_host_and_a_port() {
        for (given, wanted) in [("http://a:1/", "a:1"), ("[::1]:80", "[::1]:80"), ("10.0.0.1:8080", "10.0.0.1:8080")] {
            assert_eq!(ReplicaAddress::parse(given).unwrap().authority(), wanted);
        }
        for given in ["", "a", "a:0", "a:x", ":80", "http://a:1/v1", "https://a:1", "u@a:1", "a b:1", "a:70000"] {
            assert!(ReplicaAddress::parse(given).is_err(), "{given}");
        }
    }
}
