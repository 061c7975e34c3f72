//! The backend on makers' libraries in software (`fake/`), which check every call against its prototype and compute on the host. They are
//! built by this system's compiler of C++; where there is none, no test of these can say anything: they are ignored by default, and
//! `.ci/run` runs them where there is one.
#![allow(clippy::unwrap_used, clippy::print_stdout)] // a test may stop at anything, and says what it ran

#[macro_use]
mod support;

mod ascend_contract;
mod backend;
mod cambricon_contract;
mod conformance;
mod failures;
mod fake;
mod faults;
mod models;
mod queue;
mod random;
mod ranks;
