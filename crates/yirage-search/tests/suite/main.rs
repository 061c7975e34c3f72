//! The tests of this crate as one program: many take longer to link than to run.
#![allow(clippy::unwrap_used)] // a test may stop at anything unexpected

mod equal;
mod search;
mod search_rules;
#[path = "../../../yirage-compile/tests/suite/support/mod.rs"]
mod support;
