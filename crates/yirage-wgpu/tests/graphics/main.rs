//! The backend on the first Vulkan device of this machine: its driver, every case of every op, and tiny models. Where there is
//! none, no test of these can say anything: they are ignored by default, and `.ci/run` runs them with a driver that computes
//! on the processor.
#![allow(clippy::unwrap_used, clippy::print_stdout)] // a test may stop at anything, and says what it ran

mod conformance;
mod kernels;
mod memory;
mod models;
mod persistent;
mod pipeline_store;
mod queue;
mod random;
mod refusals;
mod support;
mod switching;
mod weight_parts;
mod workloads;
