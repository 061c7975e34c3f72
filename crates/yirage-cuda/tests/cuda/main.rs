//! The backend on a driver and a compiler in software (`fake/`), which run the kernels' own text on the processor. They are built
//! by this system's compiler of C++; where there is none, no test of these can say anything: they are ignored by default, and
//! `.ci/run` runs them where there is one.
#![allow(clippy::unwrap_used, clippy::print_stdout)] // a test may stop at anything, and says what it ran

mod attention;
mod backend;
mod code_store;
mod conformance;
mod failures;
mod fake;
mod memory;
mod models;
mod native;
mod persistent;
mod probed;
mod queue;
mod ranks;
mod support;
mod vendors;
