//! Plans as pure data: target facts, weight plans, memory placement, steps and task programs, with text forms that round-trip.
//!
//! A plan holds no pointer and names kernels by string; a device resolves the names when it loads the plan. So plans
//! can be saved, compared, checked and shown. This crate knows no device, no kernel's code and no request.
#![forbid(unsafe_code)]

mod limits;
pub mod plan;
pub mod target;
pub mod tasks;
pub mod text;
pub mod verify;
pub mod weights;
pub mod work;

pub use plan::{KernelRef, Place, Plan, Step};
pub use target::{Accepts, KernelFacts, Precision, Target};
pub use tasks::{ExecutorKind, Part, Sharing, Stage, Task, TaskProgram, Wait, When};
pub use verify::{PlanError, verify};
pub use weights::{WeightEntry, WeightPlan, WeightTextError};
