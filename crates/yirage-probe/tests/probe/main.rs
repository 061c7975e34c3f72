//! Families asked on machines that tests made: libraries built from C, broken in every way that was thought of.
#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used)] // helpers fail tests by panicking

mod broken;
mod fakes;
mod recorded;
mod search;
mod visible;
mod working;
