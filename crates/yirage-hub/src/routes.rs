//! Why a model could be had by no route, and what mends each.

use std::fmt;

/// One way to a model that did not lead there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FailedRoute {
    /// What was tried.
    pub name: String,
    /// Why it failed.
    pub failure: String,
    /// The command that mends it.
    pub remedy: String,
}

/// All ways to a model failed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NoRoute {
    /// The model.
    pub model: String,
    /// The ways, in the order they were tried.
    pub routes: Vec<FailedRoute>,
}

impl std::error::Error for NoRoute {}

impl fmt::Display for NoRoute {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} could be had by none of {} routes:", self.model, self.routes.len())?;
        for (index, route) in self.routes.iter().enumerate() {
            write!(f, "\n  {}. {}: {}\n     mend it: {}", index + 1, route.name, route.failure, route.remedy)?;
        }
        Ok(())
    }
}
