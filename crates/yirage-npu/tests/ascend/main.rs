//! The backend on libraries in software (`fake/`), which check every call against its prototype and compute on the host. They are
//! built by this system's compiler of C++; where there is none, no test of these can say anything: they are ignored by default, and
//! `.ci/run` runs them where there is one.
#![allow(clippy::unwrap_used, clippy::print_stdout)] // a test may stop at anything, and says what it ran

mod backend;
mod conformance;
mod contract;
mod failures;
mod fake;
mod faults;
mod models;
mod queue;
mod random;
mod support;
