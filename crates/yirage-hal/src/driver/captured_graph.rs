//! The step of a program as its device captured it, once for all its steps.

use super::buffer::DriverAccount;
use super::contract::{CapturedGraphId, Driver, GraphCapture};
use super::resources::ProgramCommands;
use crate::error::HalError;
use std::sync::Arc;
use yirage_ir::Dims;

/// A captured graph, with all that its commands touch: what it may replay is not given back before it is.
pub(super) struct CapturedGraph<D: Driver> {
    account: Arc<DriverAccount<D>>,
    id: CapturedGraphId,
    _pinned: Arc<ProgramCommands<D>>,
}

impl<D: Driver> CapturedGraph<D> {
    /// Captures the commands of a program at its plan's largest sizes.
    pub(super) fn new(
        account: &Arc<DriverAccount<D>>,
        commands: &Arc<ProgramCommands<D>>,
        bucket: &Dims,
    ) -> Result<CapturedGraph<D>, HalError> {
        let all = commands.at(bucket).collect::<Result<Vec<_>, HalError>>()?;
        let id = graph_capture(&account.driver)?.capture(all)?;
        Ok(CapturedGraph { account: account.clone(), id, _pinned: commands.clone() })
    }

    /// Submits the commands.
    pub(super) fn replay(&self) -> Result<(), HalError> {
        Ok(graph_capture(&self.account.driver)?.replay(self.id)?)
    }
}

fn graph_capture<D: Driver>(driver: &D) -> Result<&dyn GraphCapture, HalError> {
    let unsupported = || HalError::Unsupported {
        what: "a replay".into(),
        why: "the device captures no commands that it could replay".into(),
    };
    driver.graph_capture().ok_or_else(unsupported)
}

impl<D: Driver> Drop for CapturedGraph<D> {
    fn drop(&mut self) {
        if let Some(capture) = self.account.driver.graph_capture() {
            capture.release(self.id);
        }
    }
}
