//! Graphs called with arrays ([`Callable`]), and plans that are kept instead of made again: in the process, loaded and replayed
//! ([`PlanCache`]), and as files ([`PlanFile`], [`PlanFolder`]).
//!
//! What arrays are is checked before anything runs: their number, types, shapes and strides; which call may see which part of a
//! cache is the caller's to know.
//!
//! ```text
//! graph + inputs ─▶ key ─▶ kept plan ─▶ run                       (a hit)
//!                      └─▶ plan file, proved again ─▶ load, run   (a miss)
//!                      └─▶ compile ─▶ load, run                   (a miss without a file)
//! ```
//! **A plan** has nothing of a call baked in: every input is a step input that each call fills anew. **The key** is all that a plan
//! depends on: what the graph computes, names and types of what it takes and gives, the sizes of the call, the target with
//! its kernels and their versions, the compiler's version, the options, and in the process the weights by their memory.
//! **A plan file** is untrusted. It is checked as a whole, parsed, and proved for the target of the device at hand, as if
//! somebody else had made it. What is refused is told and compiled anew. **A fused plan that fails** gives way to the plan in
//! which every op is a step of its own; an error that this one meets too is the caller's. Nothing is answered with what was
//! not computed.
//!
//! **Cache states** and weights that somebody else has put on the device are lent with the graph ([`BoundGraph::resident`]);
//! they are no part of a plan. The method is that of InfiniLM's FusedInferEngine, with its modes and counters. This crate knows no model and no request.
#![forbid(unsafe_code)]

mod array;
mod bound;
mod cache;
mod call;
mod call_error;
mod callable;
mod decide;
mod error;
mod file;
mod folder;
mod fusion;
mod interface;
mod interface_text;
mod key;
pub mod limits;
mod mode;
mod native;
mod notices;
mod options;
mod plan_lru;
mod shared;
mod stats;

pub use array::HostArray;
pub use bound::{BoundGraph, ResidentTensors};
pub use cache::{CallOutcome, PlanCache};
pub use call_error::CallError;
pub use callable::{CallOptions, Callable, ResidentWeights, planned, planned_with_kv_caches};
pub use error::{CacheError, PlanFileError};
pub use file::{PlanFile, ProvedFile};
pub use folder::{PlanFolder, PlanOrigin};
pub use fusion::{CallShape, FusionDecision, FusionProfile, ProfiledShape};
pub use interface::Interface;
pub use key::PlanKey;
pub use mode::Mode;
pub use notices::CacheNotice;
pub use options::CacheOptions;
pub use stats::{CachedPlan, PlanCacheStats};
