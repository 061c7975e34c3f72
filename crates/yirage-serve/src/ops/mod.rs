//! What operators look at: health and figures.

pub(crate) mod health;
pub(crate) mod metrics;
