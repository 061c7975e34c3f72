//! What is counted and what is open. Knows no protocol.

mod histogram;
mod live;
mod model;

pub(crate) use histogram::Histogram;
pub(crate) use live::{RequestRegistry, Ticket};
pub(crate) use model::{ENDS, ModelMetrics};
