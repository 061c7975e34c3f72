//! The driver: buffers, and a queue that runs each command at once.

use super::kernels;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use yirage_hal::driver::{BufferId, BufferSlice, Download, Driver, DriverError, MemoryCommand, ModuleId, StepCommand};
use yirage_hal::{HostMemory, Record};

/// Most bytes of a buffer.
const MOST: u64 = 1 << 40;

#[derive(Default)]
pub(crate) struct DemoDriver {
    memory: Mutex<Memory>,
    signalled: AtomicU64,
}

/// All buffers, by their number.
#[derive(Default)]
pub(crate) struct Memory {
    buffers: BTreeMap<BufferId, Vec<u8>>,
    last: u64,
}

impl Memory {
    /// Bytes of a buffer.
    pub(crate) fn at(&mut self, slice: BufferSlice) -> Result<&mut [u8], DriverError> {
        let found = self.buffers.get_mut(&slice.buffer);
        let from = slice.offset as usize;
        let inside = found.and_then(|all| all.get_mut(from..from.checked_add(slice.bytes as usize)?));
        inside.ok_or_else(|| DriverError::Failed { call: "access", why: format!("{slice:?}") })
    }
}

impl DemoDriver {
    fn memory(&self) -> MutexGuard<'_, Memory> {
        self.memory.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Driver for DemoDriver {
    fn alloc(&self, bytes: u64) -> Result<BufferId, DriverError> {
        if bytes > MOST {
            return Err(DriverError::OutOfMemory { wanted: bytes, free: Some(MOST), total: Some(MOST) });
        }
        let mut memory = self.memory();
        memory.last += 1;
        let id = BufferId(memory.last);
        memory.buffers.insert(id, vec![0; bytes as usize]);
        Ok(id)
    }

    fn free(&self, buffer: BufferId) {
        self.memory().buffers.remove(&buffer);
    }

    fn submit(&self, command: StepCommand) -> Result<(), DriverError> {
        let mut memory = self.memory();
        match command {
            StepCommand::Launch(launch) => kernels::run(&launch, &mut memory),
            StepCommand::Memory(MemoryCommand::Copy { from, to }) => {
                let copy = memory.at(from)?.to_vec();
                memory.at(to)?.copy_from_slice(&copy);
                Ok(())
            }
            StepCommand::Memory(MemoryCommand::Fill { slice, byte }) => {
                memory.at(slice)?.fill(byte);
                Ok(())
            }
            StepCommand::Operation(_) => {
                let why = "all of its kernels are its own".into();
                Err(DriverError::Unsupported { what: "an operation of a library".into(), why })
            }
            StepCommand::Collective(_) => {
                Err(DriverError::Unsupported { what: "a collective".into(), why: "it is one device".into() })
            }
        }
    }

    fn upload(&self, from: Arc<dyn HostMemory>, to: BufferSlice) -> Result<(), DriverError> {
        self.memory().at(to)?.copy_from_slice(from.bytes());
        Ok(())
    }

    fn download(&self, from: BufferSlice) -> Result<Box<dyn Download>, DriverError> {
        Ok(Box::new(Landed(Record::of(self.memory().at(from)?))))
    }

    fn module(&self, _: &[u8]) -> Result<ModuleId, DriverError> {
        Ok(ModuleId(0))
    }

    fn unload(&self, _: ModuleId) {}

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
