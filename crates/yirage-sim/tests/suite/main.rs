//! The tests of this crate as one program: many take longer to link than to run.
#![allow(clippy::unwrap_used)] // a test may stop at anything unexpected

mod conformance;
mod demo;
mod faults;
mod kept_weights;
mod kv_cache_layouts;
mod models;
mod overlap;
mod random;
mod restricted;
mod tiled;
mod weight_parts;
