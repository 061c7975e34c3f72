//! Collectives on memory of devices, by the libraries of their makers: NCCL, and what has its shape.
//!
//! A maker is a row of names and numbers ([`CollectiveVendor`]): NVIDIA (NCCL), AMD and Hygon (RCCL), Iluvatar (NCCL of CoreX),
//! Moore Threads and MetaX (each its MCCL), Cambricon (CNCL), Huawei (HCCL). Its library is found when somebody asks for it
//! ([`DeviceCollectives`]). A [`DeviceCommunicator`] is a rank's place in a group of devices, which puts collectives into a
//! stream. Nothing here waits without a deadline, and an error names the rank, the collective and its number.
//!
//! A driver's device becomes a rank of a `yirage_ranks::RankGroup` by [`RankCollectives`], which says for each collective of a plan
//! whether the library carries it or the host's memory, and by [`RankKernels`], which says to compilers that the device has them.
//!
//! **What is added in which order is the library's business**, so a sum is what `yirage_comm::ReduceOp` says to the bit where
//! there are two ranks alone ([`is_in_order`]). What moves elements is so always.
//!
//! Unknown here: how a device computes, models, and how a stream is waited for.
#![deny(unsafe_code)] // the modules below that call into the makers' libraries alone

#[allow(unsafe_code)]
mod communicator;
mod error;
#[allow(unsafe_code)]
mod library;
mod order;
mod rank;
mod rank_kernels;
#[allow(unsafe_code)]
mod symbols;
mod vendor;

pub use communicator::{DeviceCommunicator, DeviceElements, DeviceSeat};
pub use error::CollectiveError;
pub use library::{DeviceCollectives, GroupId};
pub use order::is_in_order;
pub use rank::{CollectiveWay, RankCollectives, collective_operands};
pub use rank_kernels::RankKernels;
pub use vendor::CollectiveVendor;
