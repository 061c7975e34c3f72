//! What carries what ranks give each other: rounds, in which each shows what it does and gives a bounded number of bytes.
//!
//! A transport knows no collective and adds nothing: so every one of them gives the same results.

use crate::call::CommCall;
use crate::error::CommError;
use std::time::{Duration, Instant};

/// Who meets.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Peers {
    /// All ranks.
    All,
    /// This rank and the one that it sends to.
    To(usize),
    /// This rank and the one that it receives from.
    From(usize),
}

/// How long a call may wait.
#[derive(Clone, Copy, Debug)]
pub(crate) struct WaitLimit {
    pub(crate) within: Duration,
    pub(crate) until: Instant,
}

impl WaitLimit {
    pub(crate) fn new(within: Duration) -> WaitLimit {
        let now = Instant::now();
        // A deadline beyond the clock's is a year away.
        WaitLimit { within, until: now.checked_add(within).unwrap_or(now + Duration::from_secs(365 * 24 * 3600)) }
    }

    pub(crate) fn left(&self) -> Duration {
        self.until.saturating_duration_since(Instant::now())
    }
}

/// A way between the ranks of a group.
pub(crate) trait Transport: Send {
    /// This rank.
    fn rank(&self) -> usize;

    /// How many there are.
    fn ranks(&self) -> usize;

    /// Whether a rank that is dead is seen to be while it is waited for, however long that may last.
    fn sees_the_dead(&self) -> bool;

    /// Most bytes that a rank gives in a round: a multiple of what the largest element takes.
    fn round_bytes(&self) -> usize;

    /// Waits until all `peers` are here and have shown that they do the same, and lends what each has given, in the order of
    /// ranks. Ranks may give different numbers of bytes.
    fn round(
        &mut self,
        peers: Peers,
        call: &CommCall,
        give: &[u8],
        wait: WaitLimit,
        take: &mut dyn FnMut(usize, &[u8]),
    ) -> Result<(), CommError>;
}

/// That all ranks that met do the same.
pub(crate) fn agree(calls: &[(usize, CommCall)]) -> Result<(), CommError> {
    match calls.first() {
        Some((_, first)) if calls.iter().any(|(_, call)| !first.agrees_with(call)) => {
            Err(CommError::Mismatch { calls: calls.to_vec() })
        }
        _ => Ok(()),
    }
}
