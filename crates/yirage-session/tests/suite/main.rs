//! The tests of this crate that need no program of their own, as one: many take longer to link than to run.
#![allow(clippy::unwrap_used)] // a test may stop at anything unexpected

mod decoder_encoders;
mod encoders;
mod prefix_files;
mod requests;
mod support;
