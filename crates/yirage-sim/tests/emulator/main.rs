//! Kernels as C++ of every dialect, compiled by this system's compiler and run by the emulator. Where there is no compiler of
//! C++, no test of these can say anything: they are ignored by default, and `.ci/run` runs them where there is one.
#![allow(clippy::unwrap_used, clippy::print_stdout)] // a test may stop at anything, and says what it ran

mod conformance;
mod faults;
mod functions;
mod models;
mod recorded;
