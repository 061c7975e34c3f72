//! What `yirage bench-graph` measures: the graphs of Mirage's benchmarks, fused and not, beside what the device can do.

mod inputs;
mod least;
mod row;
mod searched;
mod settings;
mod timed;

pub(crate) use row::Row;
pub(crate) use settings::GraphBenchSettings;
pub(crate) use timed::TimedGraph;
