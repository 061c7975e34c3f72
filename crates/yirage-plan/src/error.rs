//! What is wrong with a plan.

use thiserror::Error;

/// What is wrong with a plan.
#[derive(Clone, PartialEq, Eq, Debug, Error)]
#[error("plan: {0}")]
pub struct PlanError(pub String);
