//! The driver: memory in boxes, and a queue that runs each command at once.

use super::kernels;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use yirage_hal::driver::{Address, Download, Driver, DriverError, Launch, ModuleId};
use yirage_hal::{HostMemory, Record};

/// Bytes between the beginnings of two allocations: none may be larger.
const STEP: u64 = 1 << 40;

#[derive(Default)]
pub(crate) struct DemoDriver {
    memory: Mutex<Memory>,
    signalled: AtomicU64,
}

/// All allocations, by their first address.
#[derive(Default)]
pub(crate) struct Memory {
    boxes: BTreeMap<u64, Vec<u8>>,
    next: u64,
}

impl Memory {
    /// Bytes of one allocation.
    pub(crate) fn at(&mut self, at: Address, bytes: u64) -> Result<&mut [u8], DriverError> {
        let found = self.boxes.get_mut(&(at.0 / STEP * STEP));
        let from = (at.0 % STEP) as usize;
        let inside = found.and_then(|all| all.get_mut(from..from.checked_add(bytes as usize)?));
        inside.ok_or_else(|| DriverError::Failed { call: "access", why: format!("{bytes} bytes at {:#x}", at.0) })
    }
}

impl DemoDriver {
    fn memory(&self) -> MutexGuard<'_, Memory> {
        self.memory.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Driver for DemoDriver {
    fn alloc(&self, bytes: u64) -> Result<Address, DriverError> {
        if bytes > STEP {
            return Err(DriverError::OutOfMemory { wanted: bytes, free: STEP, total: STEP });
        }
        let mut memory = self.memory();
        memory.next += STEP;
        let at = memory.next;
        memory.boxes.insert(at, vec![0; bytes as usize]);
        Ok(Address(at))
    }

    fn free(&self, at: Address) {
        self.memory().boxes.remove(&at.0);
    }

    fn fill(&self, at: Address, byte: u8, bytes: u64) -> Result<(), DriverError> {
        self.memory().at(at, bytes)?.fill(byte);
        Ok(())
    }

    fn upload(&self, from: Arc<dyn HostMemory>, to: Address) -> Result<(), DriverError> {
        let from = from.bytes();
        self.memory().at(to, from.len() as u64)?.copy_from_slice(from);
        Ok(())
    }

    fn download(&self, from: Address, bytes: u64) -> Result<Box<dyn Download>, DriverError> {
        Ok(Box::new(Landed(Record::of(self.memory().at(from, bytes)?))))
    }

    fn copy(&self, from: Address, to: Address, bytes: u64) -> Result<(), DriverError> {
        let copy = self.memory().at(from, bytes)?.to_vec();
        self.memory().at(to, bytes)?.copy_from_slice(&copy);
        Ok(())
    }

    fn module(&self, _: &[u8]) -> Result<ModuleId, DriverError> {
        Ok(ModuleId(0))
    }

    fn unload(&self, _: ModuleId) {}

    fn launch(&self, launch: Launch) -> Result<(), DriverError> {
        kernels::run(&launch, &mut self.memory())
    }

    fn signal(&self) -> Result<u64, DriverError> {
        Ok(self.signalled.fetch_add(1, Ordering::Relaxed) + 1)
    }

    fn reached(&self) -> Result<u64, DriverError> {
        Ok(self.signalled.load(Ordering::Relaxed))
    }

    fn wait(&self, _: u64, _: Duration) -> Result<(), DriverError> {
        Ok(())
    }

    fn in_flight(&self) -> usize {
        1
    }
}

struct Landed(Record);

impl Download for Landed {
    fn take(self: Box<Self>) -> Record {
        self.0
    }
}
