//! The atomics of the wait and signal protocol, in one place so that a model checker's can stand in for them.

pub(crate) use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
