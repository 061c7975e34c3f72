//! Graphs on a device, timed; and [`superoptimize`]: which of the graphs that compute the same is the fastest there.
//!
//! The search for such graphs is the compiler's and pure. Here its candidates are proved equal, compiled and measured
//! beside the input graph, and what came of it is kept, in the process and on disk. The input graph stays unless a
//! candidate with a certificate was measurably faster, and was so again when both were loaded and measured once more. Clock and verifier are arguments of [`superoptimize_with`], so that
//! tests decide what is measured.
//!
//! This crate knows no model, no request and no backend by name.
#![forbid(unsafe_code)]

mod bounds;
mod cache;
mod comparison;
mod device;
mod disk;
mod entry;
mod error;
mod key;
pub mod limits;
mod options;
mod outcome;
mod pairs;
mod prepared;
mod random;
mod rates;
mod stopwatch;
mod superoptimize;
mod timing;

pub use cache::{TuneCache, TuneCacheCounters};
pub use comparison::{PairedComparison, Times};
pub use device::LoadedGraph;
pub use disk::TuneCacheFolder;
pub use error::TuneError;
pub use options::{SearchPreset, SuperOptions};
pub use outcome::{CandidateResult, CandidateVerdict, SearchOutcome, SearchResultOrigin};
pub use prepared::{CacheInput, PreparedGraph};
pub use random::prepared;
pub use rates::measure_rates;
pub use stopwatch::{MonotonicStopwatch, Stopwatch, TimedGraphId};
pub use superoptimize::{SearchContext, SearchStatus, SearchWatcher, VerifyFn, superoptimize, superoptimize_with};
pub use timing::{TimedStep, Timing};
