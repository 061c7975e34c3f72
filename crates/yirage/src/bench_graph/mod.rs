//! What `yirage bench-graph` measures: the graphs of Mirage's benchmarks, fused and not, beside what the device can do.

mod inputs;
mod least;
mod row;
mod settings;
mod timed;
mod timed_search;

pub(crate) use row::GraphBenchRow;
pub(crate) use settings::GraphBenchSettings;
pub(crate) use timed::TimedGraph;
