//! The tests of this crate as one program: many take longer to link than to run.
#![allow(clippy::unwrap_used)] // a test may stop at anything unexpected

mod float8;
mod latent;
mod layers;
mod metadata;
mod models;
mod profile;
mod ranks;
mod saved;
mod support;
