//! A whole accelerator in software.
//!
//! Its memory is reached by no pointer of the host, its queue runs on a thread of its own and later, each command may be
//! held up by a time drawn from a seed, memory is limited, and faults come when they are ordered. Its kernels are the
//! reference evaluations of the ops, or those that every accelerator shares in an interpreter. So every assumption about the
//! host that hides above the device contract is found without hardware. It is also the pattern of a backend, to be copied
//! when a new one is begun: `driver.rs` is what a vendor's runtime gives, `library.rs` what its kernels are, `backend.rs`
//! how it is found and opened.
//!
//! Unknown here: models, requests, and what a graph is for.
#![forbid(unsafe_code)]

mod arguments;
mod backend;
mod bindings;
mod collective;
mod driver;
mod emulator;
mod faults;
mod kernel;
#[cfg(test)]
mod kernel_mutants;
mod launch;
mod library;
mod memory;
mod operation;
mod queue;
mod settings;
mod shared_module;
mod timeline;
mod transfers;
mod weight_tiles;

pub use backend::Sim;
pub use emulator::{EmulatedLaunch, Emulator, EmulatorError};
pub use faults::Faults;
pub use memory::SimMemoryStats;
pub use settings::{Settings, SimKernels};
pub use weight_tiles::WeightTileShape;
