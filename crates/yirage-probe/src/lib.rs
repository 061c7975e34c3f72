//! Looking for the runtimes of devices: their libraries, and how many devices each says it has.
//!
//! A [`Family`] is what one maker's devices have in common: the libraries and where they are installed, the calls that
//! count and describe devices, the variables that hide some of them, and what to do when there are none. Libraries are
//! looked for when they are asked for, never before. A library's file is checked before the system loads it, and every
//! call into one happens on a thread of its own behind a deadline. Whatever goes wrong is an [`Unavailable`] with the
//! reason and the remedy.
//!
//! What this cannot do is survive a library whose own code faults: it runs in this process.
//!
//! A [`RuntimeCompiler`] is a library that makes a device's code of sources while a program runs; it is looked for the same
//! way, and so is a [`CompanionLibrary`], which has a maker's operators or collectives.
//!
//! This crate computes nothing and opens no device for work. It knows nothing of which backends a build has, of their
//! order, or of models.
//!
//! [`Unavailable`]: yirage_hal::Unavailable

mod companion_library;
mod deadline;
mod driver;
mod elf;
mod environment;
mod error;
pub mod families;
mod family;
mod library;
mod library_report;
mod limits;
mod python;
mod runtime_compiler;
mod search;
mod visible;

pub use companion_library::CompanionLibrary;
pub use environment::ProbeEnvironment;
pub use error::ProbeError;
pub use family::Family;
pub use library::DriverLibrary;
pub use runtime_compiler::RuntimeCompiler;
pub use visible::{DeviceSelection, VisibilityVariables};
