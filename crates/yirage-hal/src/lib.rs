//! The contract a device implements, the executor above it, and memory accounting.
//!
//! A [`Backend`] answers what is there ([`Backend::probe`] says why a device is unavailable) and opens a [`Device`]. A
//! device takes weights, grants cache memory, and loads plans: kernels are resolved by name at that moment. The
//! [`Executor`] is written once, above all devices: it holds the step inputs, checks every step's sizes against the plan's
//! bucket, and runs it. Devices trust what the executor has checked; nothing else calls them.
//!
//! This crate knows no model, request or scheduler, and no vendor.
#![forbid(unsafe_code)]

mod backend;
mod device;
pub mod driver;
mod error;
mod executor;
mod executor_selector;
mod group;
mod handle;
mod info;
mod kernel_variants;
mod kv_blocks;
mod limit;
mod outputs;
mod pipeline;
mod profile;
mod rank_part;
mod record;
pub mod reference;
mod roofline;
mod step;
mod view;

pub use backend::{Backend, OpenOptions, Unavailable};
pub use device::{Bindings, Device, MemoryReport, PoolBytes, Program, SharedArena, WeightSink};
pub use error::HalError;
pub use executor::{Executor, Flight, ResidentOutput};
pub use executor_selector::SelectionReason;
pub use group::DeviceGroup;
pub use handle::{KvCacheHandle, WeightHandle};
pub use info::DeviceInfo;
pub use kernel_variants::{KernelVariants, Length, Question, VariantTimer, no_variants};
pub use kv_blocks::{KvBlocks, copy_kv_blocks};
pub use limit::{Limit, LimitProbe, Readings};
pub use outputs::Outputs;
pub use pipeline::DevicePipeline;
pub use profile::{MAX_RUNS, MAX_SPANS, Profile, ProfiledProgram, Profiler, ProgramId, RunSpan, RunningStep, TaskSpan};
pub use rank_part::RankPart;
pub use record::{HostMemory, Record, StagingMemory};
pub use roofline::{Ceilings, Roofline};
pub use step::{Fence, OutputHandle, Pending, StepInputValue, StepOutputs, StepRequest};
pub use view::write_view;
pub use yirage_mmap::WeightImage;
