//! The one list of backends: their names and order, which of them have a device here, and why the others have none.
//!
//! A [`Registry`] is a value; a program that wants one for everybody keeps it. Making one loads nothing: libraries of
//! devices are looked for when somebody asks. Only a backend that can compute is ever a default. A maker's devices for
//! which this build has no backend are found and said to be there, and the test backends open by name alone.
//!
//! Libraries of other people's are backends where the variable `YIRAGE_PLUGINS` names them.
//!
//! This crate names every backend and no other does. It knows no model, no option and no file of settings.
#![forbid(unsafe_code)]

mod builtin;
#[cfg(feature = "cpu")]
mod cpu_rank;
mod entry;
mod error;
#[cfg(feature = "plugins")]
mod plugins;
mod registry;
mod threads;

pub use entry::{BackendAvailability, BackendSurvey};
pub use error::RegistryError;
#[cfg(feature = "plugins")]
pub use plugins::PLUGINS_VARIABLE;
pub use registry::{AUTO, Registry};
pub use threads::{default_threads, most_threads};
pub use yirage_probe::ProbeEnvironment;
