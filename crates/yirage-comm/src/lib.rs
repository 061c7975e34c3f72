//! Collectives among processes: ranks that compute together give each other what they have, by a transport that is chosen once.
//!
//! A [`Communicator`] has the same operations and gives the same bytes whatever carries them: shared memory of one box
//! ([`LocalGroup`]), or the MPI library that a process was started under ([`MpiRanks`]). Results are a function of what the
//! ranks give ([`ReduceOp`] says in which order it is added), never of who came first. Each wait has a deadline, and ends
//! with a typed error that says what every rank was doing. This crate deliberately knows no device, model, plan or request;
//! it opens no connection and leaves no file behind.

mod call;
mod communicator;
mod dump;
mod element;
mod error;
#[cfg(target_os = "linux")]
mod mpi;
mod reduce;
#[cfg(target_os = "linux")]
mod shm;
mod transport;
mod wide;

pub use call::{CollectiveKind, CommCall};
pub use communicator::{Communicator, DEFAULT_DEADLINE};
pub use dump::{CommDump, RankCondition, RankState};
pub use element::{CommElement, ElementType};
pub use error::CommError;
#[cfg(target_os = "linux")]
pub use mpi::{MpiAbi, MpiRanks};
pub use reduce::ReduceOp;
#[cfg(target_os = "linux")]
pub use shm::{LocalGroup, MAX_LOCAL_RANKS, RankSeat};
