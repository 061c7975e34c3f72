//! A compiled plan explained: what each pass did and refused with its reasons, the regions, every kernel beside what the
//! device's limits allow and what was measured, what lies where for how long, and which executor runs it and why.
//!
//! A [`Report`] is a value, which is shown as text, JSON ([`serde`]) or a picture ([`svg()`]). A profile of steps that ran
//! gives it its measured times ([`PlanTimings`]) and is written as a trace ([`write_trace`]). [`run()`] computes a graph with
//! made-up inputs, so that there is something to measure. This crate knows no model, no backend and no file.
#![forbid(unsafe_code)]

mod alike;
mod error;
mod kernels;
mod measured;
mod memory;
mod regions;
mod report;
mod run;
mod summary;
mod svg;
mod text;
mod trace;

pub use error::ExplainError;
pub use measured::PlanTimings;
pub use report::{
    DecisionReport, DeviceCeiling, ExecutorReport, KernelReport, MeasuredReport, PassReport, PlacedValue,
    PlanMemoryReport, ProgramReport, RegionReport, Report, ReportDims, ReportInput,
};
pub use run::{PlanRun, StoredSizes, limits, run};
pub use summary::report;
pub use svg::svg;
pub use text::text;
pub use trace::write_trace;
