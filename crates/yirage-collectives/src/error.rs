//! What can go wrong with a maker's collectives.

use std::time::Duration;
use yirage_comm::CommCall;

/// Why a device could not take part in a collective. After one of these, but for [`CollectiveError::Argument`], the communicator
/// takes part in nothing any more.
#[derive(Clone, PartialEq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CollectiveError {
    /// What was asked for fits no collective of this group or of this library; nothing was submitted.
    #[error("{0}")]
    Argument(String),
    /// The library cannot be had.
    #[error("{title} cannot be used: {why}; {remedy}")]
    Library {
        /// Whose collectives.
        title: &'static str,
        /// Why.
        why: String,
        /// What to do.
        remedy: String,
    },
    /// The ranks have not become a group.
    #[error("{title}: rank {rank} of {ranks} could not join the others: {why}")]
    Join {
        /// Whose collectives.
        title: &'static str,
        /// This rank.
        rank: usize,
        /// How many there are.
        ranks: usize,
        /// Why, with the remedy.
        why: String,
    },
    /// A call has failed.
    #[error("{title}: rank {rank} of {ranks} in {at}: {call} has failed: {said} ({code})")]
    Call {
        /// Whose collectives.
        title: &'static str,
        /// This rank.
        rank: usize,
        /// How many there are.
        ranks: usize,
        /// The collective.
        at: CommCall,
        /// The library's function.
        call: &'static str,
        /// What it answered.
        code: i32,
        /// What that means, in the library's words.
        said: String,
    },
    /// A collective that was submitted has failed.
    #[error(
        "{title}: rank {rank} of {ranks}: {said} ({code}) in {at} or before; see what the other ranks say, and start all of them again"
    )]
    Failed {
        /// Whose collectives.
        title: &'static str,
        /// This rank.
        rank: usize,
        /// How many there are.
        ranks: usize,
        /// The collective that was submitted last.
        at: CommCall,
        /// What the library says.
        code: i32,
        /// What that means, in the library's words.
        said: String,
    },
    /// A collective has not ended in time.
    #[error(
        "{title}: rank {rank} of {ranks}: {at} or one before has not ended within {waited:.1?}: another rank is gone, is slower, or \
         does something else; see what the others say, or raise the deadline"
    )]
    Deadline {
        /// Whose collectives.
        title: &'static str,
        /// This rank.
        rank: usize,
        /// How many there are.
        ranks: usize,
        /// The collective that was submitted last.
        at: CommCall,
        /// How long it was waited for.
        waited: Duration,
    },
    /// The communicator was given up before.
    #[error("{title}: rank {rank} has given up: {why}")]
    GivenUp {
        /// Whose collectives.
        title: &'static str,
        /// This rank.
        rank: usize,
        /// What was wrong.
        why: String,
    },
}
