//! Plug-ins as their makers build them: the example in C, and libraries with one thing wrong. They are built by this system's
//! compilers of C and C++; where there are none, no test of these can say anything: they are ignored by default, and `.ci/run` runs
//! them where there are.
#![allow(clippy::unwrap_used, clippy::print_stdout)] // a test may stop at anything, and says what it ran

mod backend;
mod built;
mod conformance;
mod layout;
mod refused;
