//! A device as one rank of a model whose other ranks are in other processes.
//!
//! All ranks run the same plan, which says where they give each other what they have, on the same steps. A rank holds its
//! part of the weights and of the KV caches ([`RankDevice`]), and takes part in a plan's collectives through a communicator
//! ([`RankGroup`]). The same in one process is `yirage_hal::DeviceGroup`.
//!
//! There are two ways to see to it that the steps are the same. Either each process has an engine of its own and is given the
//! same requests in the same order; steps that differ are then told apart ([`RankGroupError::Steps`]). Or one process has an
//! engine: its device ([`RankLeader`]) has the devices of all other ranks do what it does, weight by weight, plan by plan and
//! step by step, with the bytes of each step's inputs, and those processes only [`follow`]. So nothing is decided twice: which
//! requests there are, what is sampled, how much memory a cache gets and which executor is faster is all rank 0's alone. Rank 0
//! reads the model and sends each weight's rows once.
//!
//! Ranks may also be the stages of a pipeline ([`lead_stages`]): each has some layers whole, and plans and weights of its own.
//! Rank 0's process then has a device for each of the others, and tells each by itself what to do, so that all compute at the
//! same time.
//!
//! Unknown here: models, requests, how a device computes, and what a user says to start ranks.
#![forbid(unsafe_code)]

#[cfg(target_os = "linux")]
mod channel;
mod device;
#[cfg(target_os = "linux")]
mod follow;
mod group;
mod kernel;
#[cfg(target_os = "linux")]
mod leader;
#[cfg(target_os = "linux")]
mod local;
#[cfg(target_os = "linux")]
mod message;
mod planned;
mod role;
#[cfg(target_os = "linux")]
mod stage_channel;
#[cfg(target_os = "linux")]
mod stage_device;
#[cfg(target_os = "linux")]
mod tell;

#[cfg(target_os = "linux")]
pub use channel::{RankHeartbeat, RankWatch, dismiss};
pub use device::RankDevice;
#[cfg(target_os = "linux")]
pub use follow::{RankOpener, follow};
pub use group::{RankGroup, RankGroupError};
pub use kernel::collective_kernel;
#[cfg(target_os = "linux")]
pub use leader::{RankLeader, RankOpening};
#[cfg(target_os = "linux")]
pub use local::LocalRanks;
pub use planned::PlannedRank;
pub use role::RankRole;
#[cfg(target_os = "linux")]
pub use stage_device::{StageOpening, lead_stages};
