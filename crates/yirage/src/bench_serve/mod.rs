//! Measuring a server: from options to runs, and from runs to what is shown and written.
//!
//! Requests, times and statistics are `yirage-loadgen`'s. Knows no model and opens none.

mod report;
mod samples;
mod settings;

pub(crate) use report::{ResultFile, ServeBenchReport};
pub(crate) use samples::samples;
pub(crate) use settings::ServeBench;
