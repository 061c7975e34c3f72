//! What a device can do, measured, and which settings follow from what it is.
//!
//! [`advise`] is a pure function of [`Hardware`]: it opens nothing and reads no clock, so that a table of machines tests
//! it. [`measure`] and [`latency`] read the ceilings of an open device. [`benchmark`] times ops of ours on any number of
//! backends. [`scale`] tells how long a step takes that several devices compute.
//!
//! This crate knows no model, no file of settings, and nothing of how results are shown.
#![forbid(unsafe_code)]

mod advice;
mod benchmark;
mod error;
mod hardware;
mod loaded;
mod measured;
mod notes;
pub mod scale;
pub mod templates;
mod workers;
mod workload;

pub use advice::{Advice, Setting, advise};
pub use benchmark::{BackendBenchmark, BenchmarkEvent, BenchmarkWatcher, DeviceBenchmark, OpBenchmark, benchmark};
pub use error::AdvisorError;
pub use hardware::Hardware;
pub use loaded::OpThroughput;
pub use measured::{CeilingReadings, Latency, Measurement, latency, measure};
pub use workers::{Workers, workers, workers_of_multiprocessors};
pub use workload::BenchmarkSizes;
pub use yirage_tune::Timing;
