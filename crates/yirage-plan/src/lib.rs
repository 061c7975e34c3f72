//! Plans as pure data: target facts, weight plans, memory placement, steps and task programs, with text forms that round-trip.
//!
//! A plan holds no pointer and names kernels by string; a device resolves the names when it loads the plan. So plans
//! can be saved, compared, proved ([`VerifiedPlan`]) and shown. This crate knows no device, no kernel's code and no
//! request.
#![forbid(unsafe_code)]

mod accept;
mod capabilities;
mod device_limits;
mod error;
mod fields;
mod kv_cache_layout;
mod lifetimes;
pub mod limits;
mod memory_planner;
pub mod plan;
mod precision;
mod predicate;
mod program;
mod readers;
pub mod rules;
pub mod target;
pub mod tasks;
pub mod text;
mod value_location;
mod value_parts;
mod verify;
mod weight_layout;
pub mod weights;
pub mod work;

pub use accept::{OperandPlacement, Refusal, RefusedInput, passed_over, select_kernel};
pub use capabilities::KernelCapabilities;
pub use device_limits::{DeviceLimits, MatrixShape};
pub use error::PlanError;
pub use kv_cache_layout::{KvCacheLayout, KvCacheLayoutFacts, KvCacheOrder};
pub use lifetimes::{Lifetime, lifetimes};
pub use memory_planner::{MemoryLayout, MemoryRequest, MemoryStack, plan_memory};
pub use plan::{BufferPlacement, KernelRef, Plan, PlanStep};
pub use precision::Precision;
pub use predicate::{NumberTest, Predicate, Quantity};
pub use program::{ExecutorKind, Partitioning, Stage, StageCondition, Task, TaskPartition, TaskProgram, Wait};
pub use readers::{matrices, readers};
pub use target::{ActivationFormatFacts, ExpertDivision, KernelFacts, KernelOrigin, Target};
pub use value_location::ValueLocation;
pub use value_parts::{NoParts, ValueParts};
pub use verify::{VerifiedPlan, check_quantised};
pub use weight_layout::{WeightLayout, WeightLayoutFacts, WeightRole};
pub use weights::{WeightEntry, WeightPlan, WeightTextError};
