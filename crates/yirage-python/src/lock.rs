//! Locks of values that are worked on without Python's lock.

use pyo3::prelude::*;
use std::sync::{Mutex, MutexGuard, PoisonError, TryLockError};

/// The value, once nobody else works on it. Python's lock is given up while this waits: whoever works may want it, to look
/// for Ctrl-C or to log, and would wait for us.
pub(crate) fn lock_detached<'a, T: Send>(py: Python<'_>, mutex: &'a Mutex<T>) -> MutexGuard<'a, T> {
    loop {
        match mutex.try_lock() {
            Ok(value) => return value,
            Err(TryLockError::Poisoned(value)) => return value.into_inner(),
            Err(TryLockError::WouldBlock) => py.detach(|| drop(mutex.lock().unwrap_or_else(PoisonError::into_inner))),
        }
    }
}
