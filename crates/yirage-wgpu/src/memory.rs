//! Buffers: taken, given back, and looked up with the bytes that a command touches in them.

use crate::errors::{failed, refused, scoped, unsupported};
use crate::limits::{BINDING_UNIT, BUFFER_UNIT, COPY_UNIT};
use std::collections::HashMap;
use std::num::NonZero;
use yirage_hal::driver::{BufferId, BufferSlice, DriverError};

/// Memory of the device.
pub(crate) struct DeviceBuffer {
    pub(crate) buffer: wgpu::Buffer,
    /// Bytes that were asked for. Those behind them are nobody's.
    bytes: u64,
}

/// The buffers that are held.
#[derive(Default)]
pub(crate) struct Buffers {
    held: HashMap<BufferId, DeviceBuffer>,
    /// No number is given twice, so that what was given back is never taken for another.
    last: u64,
}

/// Bytes of a buffer, which were found to be in it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct BufferRange {
    pub(crate) buffer: wgpu::Buffer,
    pub(crate) offset: u64,
    pub(crate) bytes: u64,
    /// Whether nothing of the buffer lies behind them.
    pub(crate) is_last: bool,
}

impl Buffers {
    /// Takes memory.
    pub(crate) fn alloc(
        &mut self,
        device: &wgpu::Device,
        limits: &wgpu::Limits,
        total: Option<u64>,
        bytes: u64,
    ) -> Result<BufferId, DriverError> {
        let most = limits.max_buffer_size;
        let Some(size) = bytes.max(1).checked_next_multiple_of(BUFFER_UNIT).filter(|&size| size <= most) else {
            return Err(unsupported(
                format!("a buffer of {bytes} bytes"),
                format!("one of this device has at most {most}"),
            ));
        };
        let usage = wgpu::BufferUsages::STORAGE | wgpu::BufferUsages::COPY_SRC | wgpu::BufferUsages::COPY_DST;
        let made =
            || device.create_buffer(&wgpu::BufferDescriptor { label: None, size, usage, mapped_at_creation: false });
        let mut buffer = scoped(device, made);
        if let Err(wgpu::Error::OutOfMemory { .. }) = buffer {
            // What was given back is free when the device has come past its last use.
            settle(device);
            buffer = scoped(device, made);
        }
        let buffer = buffer.map_err(|error| match error {
            wgpu::Error::OutOfMemory { .. } => DriverError::OutOfMemory { wanted: bytes, free: None, total },
            other => failed("alloc", &other),
        })?;
        self.last += 1;
        let id = BufferId(self.last);
        self.held.insert(id, DeviceBuffer { buffer, bytes });
        Ok(id)
    }

    /// Gives memory back. What was submitted keeps it for itself.
    pub(crate) fn free(&mut self, id: BufferId) {
        self.held.remove(&id);
    }

    /// Bytes of a buffer.
    ///
    /// # Errors
    /// Bytes that are not in it, and a buffer that was given back or never was.
    pub(crate) fn range(&self, call: &'static str, slice: BufferSlice) -> Result<BufferRange, DriverError> {
        let BufferSlice { buffer: id, offset, bytes } = slice;
        let Some(held) = self.held.get(&id) else {
            return Err(refused(call, format!("there is no buffer {}: it was given back, or never was", id.0)));
        };
        let end = offset
            .checked_add(bytes)
            .filter(|&end| end <= held.bytes)
            .ok_or_else(|| refused(call, format!("{bytes} bytes at {offset} are not in a buffer of {}", held.bytes)))?;
        Ok(BufferRange { buffer: held.buffer.clone(), offset, bytes, is_last: end == held.bytes })
    }
}

impl BufferRange {
    /// As a binding, which is as long as its shader's elements want it. Buffers are long enough for that.
    pub(crate) fn binding(&self) -> wgpu::BindingResource<'_> {
        let size = self.bytes.max(1).next_multiple_of(BINDING_UNIT).min(self.buffer.size() - self.offset);
        wgpu::BindingResource::Buffer(wgpu::BufferBinding {
            buffer: &self.buffer,
            offset: self.offset,
            size: NonZero::new(size),
        })
    }

    /// Whether the interface's own copies begin and end where these do.
    pub(crate) fn is_whole_words(&self) -> bool {
        self.offset.is_multiple_of(COPY_UNIT) && self.bytes.is_multiple_of(COPY_UNIT)
    }

    /// So many of them, `offset` from their beginning; they are among them.
    pub(crate) fn part(&self, offset: u64, bytes: u64) -> BufferRange {
        let is_last = self.is_last && offset + bytes == self.bytes;
        BufferRange { buffer: self.buffer.clone(), offset: self.offset + offset, bytes, is_last }
    }
}

/// Waits for everything submitted; memory that was given back is free then.
fn settle(device: &wgpu::Device) {
    // An error of the device comes again with the next call, which has somebody to tell.
    let _ = device.poll(wgpu::PollType::wait_indefinitely());
}
