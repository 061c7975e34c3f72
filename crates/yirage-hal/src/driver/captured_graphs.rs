//! Steps of a program that its device can play again.

use super::buffer::DriverAccount;
use super::contract::{Address, CapturedGraphId, Driver, GraphCapture, Launch};
use crate::error::HalError;
use std::collections::VecDeque;
use std::sync::Arc;
use yirage_ir::Dims;

/// Recordings a program keeps. A decoding sequence needs a new one when its block table grows.
const MOST: usize = 64;

/// All that the launches of a program's step depend on.
#[derive(PartialEq, Eq, Debug)]
pub(super) struct CapturedGraphKey {
    pub(super) dims: Dims,
    /// Where the slots lie, in the plan's order.
    pub(super) inputs: Vec<Address>,
}

/// The recordings, last played first.
pub(super) struct CapturedGraphs<D: Driver>(VecDeque<(CapturedGraphKey, CapturedGraph<D>)>);

struct CapturedGraph<D: Driver> {
    account: Arc<DriverAccount<D>>,
    id: CapturedGraphId,
}

impl<D: Driver> CapturedGraphs<D> {
    pub(super) fn new() -> CapturedGraphs<D> {
        CapturedGraphs(VecDeque::new())
    }

    /// Submits the step of this key, which `launches` gives where it is not recorded yet.
    pub(super) fn replay(
        &mut self,
        account: &Arc<DriverAccount<D>>,
        key: CapturedGraphKey,
        launches: impl FnOnce() -> Result<Vec<Launch>, HalError>,
    ) -> Result<(), HalError> {
        let recorder = graph_capture(&account.driver)?;
        let known = self.0.iter().position(|(of, _)| *of == key).and_then(|at| self.0.remove(at));
        let played = match known {
            Some(known) => known,
            None => (key, CapturedGraph { id: recorder.capture(launches()?)?, account: account.clone() }),
        };
        recorder.replay(played.1.id)?;
        self.0.push_front(played);
        self.0.truncate(MOST);
        Ok(())
    }
}

fn graph_capture<D: Driver>(driver: &D) -> Result<&dyn GraphCapture, HalError> {
    let unsupported = || HalError::Unsupported {
        what: "a replay".into(),
        why: "the device records nothing that it could play again".into(),
    };
    driver.graph_capture().ok_or_else(unsupported)
}

impl<D: Driver> Drop for CapturedGraph<D> {
    fn drop(&mut self) {
        if let Some(recorder) = self.account.driver.graph_capture() {
            recorder.release(self.id);
        }
    }
}
