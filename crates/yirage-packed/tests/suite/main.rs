//! The tests of this crate that need no program of their own, as one: many take longer to link than to run.
#![allow(clippy::unwrap_used)] // a test may stop at anything unexpected

#[cfg(target_os = "linux")] // elsewhere the system does not tell its starts apart, and all is compared each time
mod checked;
#[cfg(unix)]
mod foreign;
mod support;
