//! The key/value cache as pure bookkeeping: which block of which pool holds which positions of which sequence.
//!
//! A model declares [`CacheGroup`]s; each group has its own pool of blocks of so many positions and
//! its own block table per sequence. Full blocks are published under a chained SHA-256 key and can serve later
//! sequences with the same beginning; a published block is never written again, so sharing needs no copying.
//!
//! This module deliberately knows no memory: no pointer, no byte of a cache, no device, no dtype. It also knows no
//! requests, no scheduling policy and no clock ("least recently used" counts operations).

mod check;
mod error;
mod group;
mod key;
mod manager;
mod pool;
mod seq;

pub use check::Violation;
pub use error::{KvError, OutOfBlocks};
pub use group::{CacheGroup, GroupConfig};
pub use key::BlockKey;
pub use manager::KvManager;
pub use seq::{NO_BLOCK, SeqCache};
