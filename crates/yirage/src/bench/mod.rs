//! Measuring an engine: what is run, how it is timed, and what is said of it.
//!
//! Tests are those of llama-bench, and rows have its names, so that tools for the one read the other. The engine is
//! driven as every command drives it, with requests and steps. Knows nothing of backends.

mod compare;
mod drive;
mod print;
mod row;
mod settings;
mod test;

pub(crate) use compare::BaselineFile;
pub(crate) use drive::{Bench, BenchSample};
pub(crate) use print::Printer;
pub(crate) use row::{BenchRow, BenchSetup, now};
pub(crate) use settings::{BenchSettings, MAX_REPETITIONS, numbers};
pub(crate) use test::BenchTest;
