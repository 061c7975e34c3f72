//! The tests of this crate as one program: many take longer to link than to run.
#![allow(clippy::unwrap_used)] // a test may stop at anything unexpected

mod plan_text;
mod value_location;
mod weight_text;
mod work;
