//! The tests of this crate as one program: many take longer to link than to run.
#![allow(clippy::unwrap_used)] // a test may stop at anything unexpected

mod attention_dense;
mod attention_paged;
mod attention_support;
mod device_probe;
mod loom_walk;
mod pool_run;
