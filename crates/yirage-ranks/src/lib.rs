//! A device as one rank of a model whose other ranks are in other processes.
//!
//! All ranks run the same plan, which says where they give each other what they have, on the same batches: each process has an
//! engine of its own, and is given the same requests in the same order. A rank holds its part of the weights and of the KV
//! caches ([`RankDevice`]), and takes part in a plan's collectives through a communicator ([`RankGroup`]). The same in one
//! process is `yirage_hal::DeviceGroup`. Unknown here: who starts the processes, models, and how a device computes.
#![forbid(unsafe_code)]

mod device;
mod group;

pub use device::RankDevice;
pub use group::{RankGroup, RankGroupError};
