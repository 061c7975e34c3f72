//! What can go wrong between ranks.

use crate::call::CommCall;
use crate::dump::CommDump;
use std::time::Duration;

/// Why ranks could not give each other what they have. After one of these, but for [`CommError::Argument`], no rank of the
/// group takes part in anything any more.
#[derive(Clone, PartialEq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CommError {
    /// The caller's arguments do not fit the group.
    #[error("{0}")]
    Argument(String),
    /// The group could not be made or joined.
    #[error("the group of ranks cannot be {what}: {why}")]
    Setup {
        /// `made`, `joined`.
        what: &'static str,
        /// Why, with the remedy.
        why: String,
    },
    /// Ranks came to one place with different calls: all that were there are told so.
    #[error("the ranks do not do the same: {}; give all of them the same calls in the same order", listed(calls))]
    Mismatch {
        /// What each was doing.
        calls: Vec<(usize, CommCall)>,
    },
    /// A rank's process is gone, or has left.
    #[error("rank {rank} is gone: {dump}")]
    Lost {
        /// Which.
        rank: usize,
        /// What all were doing.
        dump: Box<CommDump>,
    },
    /// Ranks have not come in time.
    #[error("{} not come within {waited:.1?}: {dump}; raise the deadline where they need longer", named(missing))]
    Deadline {
        /// Which.
        missing: Vec<usize>,
        /// How long they were waited for.
        waited: Duration,
        /// What all were doing.
        dump: Box<CommDump>,
    },
    /// Another rank has found what is wrong.
    #[error("rank {by} has given up: {why}")]
    GivenUp {
        /// Which rank.
        by: usize,
        /// What it has found.
        why: String,
    },
    /// What carries the messages has failed.
    #[error("{call} has failed: {why}")]
    Transport {
        /// The call of the system or of the library.
        call: &'static str,
        /// What it says.
        why: String,
    },
}

fn listed(calls: &[(usize, CommCall)]) -> String {
    let texts: Vec<String> = calls.iter().map(|(rank, call)| format!("rank {rank} is in {call}")).collect();
    texts.join(", ")
}

fn named(ranks: &[usize]) -> String {
    let texts: Vec<String> = ranks.iter().map(usize::to_string).collect();
    match texts.len() {
        1 => format!("rank {} has", texts[0]),
        _ => format!("ranks {} have", texts.join(", ")),
    }
}
