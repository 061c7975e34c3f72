//! Memory of a device, given back when nobody has it any more, and the account of it.

use super::contract::Driver;
use super::memory::{BufferId, BufferSlice};
use super::transfer::Transfers;
use crate::device::{MemoryReport, PoolBytes};
use crate::error::HalError;
use std::sync::{Arc, Mutex, PoisonError};

/// Which account bytes are booked to.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum MemoryPool {
    Weights,
    Cache,
    Arena,
    Workspace,
}

impl MemoryPool {
    fn name(self) -> &'static str {
        match self {
            MemoryPool::Weights => "weights",
            MemoryPool::Cache => "cache",
            MemoryPool::Arena => "arena",
            MemoryPool::Workspace => "workspace",
        }
    }

    fn of(self, report: &mut MemoryReport) -> &mut PoolBytes {
        match self {
            MemoryPool::Weights => &mut report.weights,
            MemoryPool::Cache => &mut report.cache,
            MemoryPool::Arena => &mut report.arena,
            MemoryPool::Workspace => &mut report.workspace,
        }
    }
}

/// A driver, and what is held of its memory.
pub(super) struct DriverAccount<D> {
    pub(super) driver: D,
    pub(super) transfers: Transfers,
    report: Mutex<MemoryReport>,
}

impl<D: Driver> DriverAccount<D> {
    pub(super) fn new(driver: D) -> DriverAccount<D> {
        DriverAccount { driver, transfers: Transfers::default(), report: Mutex::default() }
    }

    pub(super) fn report(&self) -> MemoryReport {
        *self.report.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn book(&self, pool: MemoryPool, change: impl FnOnce(&mut PoolBytes)) {
        change(pool.of(&mut self.report.lock().unwrap_or_else(PoisonError::into_inner)));
    }
}

/// Bytes of a device's memory.
pub(super) struct Buffer<D: Driver> {
    account: Arc<DriverAccount<D>>,
    pool: MemoryPool,
    id: BufferId,
    bytes: u64,
}

impl<D: Driver> Buffer<D> {
    /// Takes them. Of no byte at all a device is asked for one, so that every buffer has memory.
    pub(super) fn new(account: &Arc<DriverAccount<D>>, pool: MemoryPool, bytes: u64) -> Result<Buffer<D>, HalError> {
        let id = account.driver.alloc(bytes.max(1)).map_err(|e| e.of_pool(pool.name()))?;
        account.book(pool, |held| {
            held.used += bytes;
            held.peak = held.peak.max(held.used);
        });
        Ok(Buffer { account: account.clone(), pool, id, bytes })
    }

    /// All of it.
    pub(super) fn slice(&self) -> BufferSlice {
        BufferSlice { buffer: self.id, offset: 0, bytes: self.bytes }
    }

    pub(super) fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Submits bytes to a part of it, beside what steps do.
    pub(super) fn fill_from(&self, bytes: &[u8], to: BufferSlice) -> Result<(), HalError> {
        self.account.transfers.upload(&self.account.driver, bytes, to)
    }

    pub(super) fn driver(&self) -> &D {
        &self.account.driver
    }

    /// Whether it is memory of this device.
    pub(super) fn is_of(&self, account: &Arc<DriverAccount<D>>) -> bool {
        Arc::ptr_eq(&self.account, account)
    }
}

impl<D: Driver> Drop for Buffer<D> {
    fn drop(&mut self) {
        // A copy that is still on its way would write to it.
        self.account.transfers.settle(&self.account.driver);
        self.account.driver.free(self.id);
        self.account.book(self.pool, |held| held.used -= self.bytes);
    }
}
