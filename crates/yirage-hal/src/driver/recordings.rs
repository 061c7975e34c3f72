//! Steps of a program that its device can play again.

use super::buffer::Account;
use super::contract::{Address, Driver, Launch, Recorder, RecordingId};
use crate::error::HalError;
use std::collections::VecDeque;
use std::sync::Arc;
use yirage_ir::Dims;

/// Recordings a program keeps. A decoding sequence needs a new one when its block table grows.
const MOST: usize = 64;

/// All that the launches of a program's step depend on.
#[derive(PartialEq, Eq, Debug)]
pub(super) struct Key {
    pub(super) dims: Dims,
    /// Where the slots lie, in the plan's order.
    pub(super) slots: Vec<Address>,
}

/// The recordings, last played first.
pub(super) struct Recordings<D: Driver>(VecDeque<(Key, Recording<D>)>);

struct Recording<D: Driver> {
    account: Arc<Account<D>>,
    id: RecordingId,
}

impl<D: Driver> Recordings<D> {
    pub(super) fn new() -> Recordings<D> {
        Recordings(VecDeque::new())
    }

    /// Submits the step of this key, which `launches` gives where it is not recorded yet.
    pub(super) fn play(
        &mut self,
        account: &Arc<Account<D>>,
        key: Key,
        launches: impl FnOnce() -> Result<Vec<Launch>, HalError>,
    ) -> Result<(), HalError> {
        let recorder = recorder(&account.driver)?;
        let known = self.0.iter().position(|(of, _)| *of == key).and_then(|at| self.0.remove(at));
        let played = match known {
            Some(known) => known,
            None => (key, Recording { id: recorder.record(launches()?)?, account: account.clone() }),
        };
        recorder.play(played.1.id)?;
        self.0.push_front(played);
        self.0.truncate(MOST);
        Ok(())
    }
}

fn recorder<D: Driver>(driver: &D) -> Result<&dyn Recorder, HalError> {
    let unsupported = || HalError::Unsupported {
        what: "a replay".into(),
        why: "the device records nothing that it could play again".into(),
    };
    driver.recorder().ok_or_else(unsupported)
}

impl<D: Driver> Drop for Recording<D> {
    fn drop(&mut self) {
        if let Some(recorder) = self.account.driver.recorder() {
            recorder.forget(self.id);
        }
    }
}
