//! Collectives on memory of devices, by the libraries of their makers: NCCL, and what has its shape.
//!
//! A maker is a row of names and numbers ([`CollectiveVendor`]): NVIDIA (NCCL), AMD and Hygon (RCCL), Iluvatar (NCCL of CoreX),
//! Moore Threads and MetaX (each its MCCL), Cambricon (CNCL), Huawei (HCCL). Its library is found when somebody asks for it
//! ([`DeviceCollectives`]). A [`DeviceCommunicator`] is a rank's place in a group of devices, which puts collectives into a
//! stream; how the ranks come to know each other is the caller's business. Nothing here waits without a deadline, and an error
//! names the rank, the collective and its number.
//!
//! **What is added in which order is the library's business**, so a sum is what `yirage_comm::ReduceOp` says to the bit where
//! there are two ranks alone ([`is_in_order`]). What moves elements is so always.
//!
//! Unknown here: devices, plans, models, and how a stream is waited for.
#![deny(unsafe_code)] // the modules below that call into the makers' libraries alone

#[allow(unsafe_code)]
mod communicator;
mod error;
#[allow(unsafe_code)]
mod library;
mod order;
#[allow(unsafe_code)]
mod symbols;
mod vendor;

pub use communicator::{DeviceCommunicator, DeviceElements, DeviceSeat};
pub use error::CollectiveError;
pub use library::{DeviceCollectives, GroupId};
pub use order::is_in_order;
pub use vendor::CollectiveVendor;
