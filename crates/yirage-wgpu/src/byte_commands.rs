//! Copies and fills of any bytes. wgpu's own take whole words, and copy between two buffers; what is beside them is done by
//! two kernels of our own.

use crate::bind_groups::BindingLayouts;
use crate::errors::{failed, refused, scoped};
use crate::limits::COPY_UNIT;
use crate::memory::BufferRange;
use crate::pipelines::{KernelSource, ReadyKernel};
use crate::recorder::RecordedCommand;
use std::sync::Arc;
use yirage_hal::driver::DriverError;

/// The kernels, made when one is wanted.
#[derive(Default)]
pub(crate) struct ByteCommands {
    copy: Option<Arc<ReadyKernel>>,
    fill: Option<Arc<ReadyKernel>>,
}

/// Threads of a group.
const GROUP: u32 = 64;
/// Most groups of a launch; each goes on until the bytes are at an end.
const MOST_GROUPS: u64 = 4096;

/// Which of the kernels.
#[derive(Clone, Copy)]
enum ByteKernel {
    Copy,
    Fill,
}

/// The device, and what is made for it.
pub(crate) struct Making<'a> {
    pub(crate) device: &'a wgpu::Device,
    pub(crate) limits: &'a wgpu::Limits,
    pub(crate) layouts: &'a mut BindingLayouts,
}

impl ByteCommands {
    /// Copies bytes to as many others, which they do not overlap.
    pub(crate) fn copy(
        &mut self,
        making: &mut Making<'_>,
        from: &BufferRange,
        to: &BufferRange,
        out: &mut Vec<RecordedCommand>,
    ) -> Result<(), DriverError> {
        let whole =
            if from.buffer != to.buffer && from.offset.is_multiple_of(COPY_UNIT) && to.offset.is_multiple_of(COPY_UNIT)
            {
                to.bytes / COPY_UNIT * COPY_UNIT
            } else {
                0
            };
        if whole > 0 {
            out.push(RecordedCommand::Copy { from: from.part(0, whole), to: to.part(0, whole) });
        }
        let piece = largest_piece(making.limits);
        let mut at = whole;
        while at < to.bytes {
            let bytes = piece.min(to.bytes - at);
            out.push(self.by_kernel(making, ByteKernel::Copy, &to.part(at, bytes), Some(&from.part(at, bytes)), 0)?);
            at += bytes;
        }
        Ok(())
    }

    /// Makes every byte this one.
    pub(crate) fn fill(
        &mut self,
        making: &mut Making<'_>,
        range: &BufferRange,
        byte: u8,
        out: &mut Vec<RecordedCommand>,
    ) -> Result<(), DriverError> {
        if byte == 0 && range.is_whole_words() {
            if range.bytes > 0 {
                out.push(RecordedCommand::Clear(range.clone()));
            }
            return Ok(());
        }
        let piece = largest_piece(making.limits);
        let mut at = 0;
        while at < range.bytes {
            let bytes = piece.min(range.bytes - at);
            out.push(self.by_kernel(making, ByteKernel::Fill, &range.part(at, bytes), None, byte)?);
            at += bytes;
        }
        Ok(())
    }

    /// Copies or fills by a kernel, as many bytes as a binding has.
    fn by_kernel(
        &mut self,
        making: &mut Making<'_>,
        which: ByteKernel,
        to: &BufferRange,
        from: Option<&BufferRange>,
        byte: u8,
    ) -> Result<RecordedCommand, DriverError> {
        let kernel = self.kernel(making, which)?;
        let (to, to_skipped) = aligned(to, making.limits);
        let from = from.map(|from| aligned(from, making.limits));
        let (from, from_skipped) = from.map_or((None, 0), |(from, skipped)| (Some(from), skipped));
        let count = (to.bytes - u64::from(to_skipped)) as u32;
        let numbers = [to_skipped, from_skipped, count, u32::from_ne_bytes([byte; 4])];
        let numbers: Vec<u8> = numbers.into_iter().flat_map(u32::to_le_bytes).collect();
        let numbers = uploaded(making.device, &numbers, "copy")?;
        let words = u64::from(count).div_ceil(4) + 1;
        let groups = words.div_ceil(u64::from(GROUP)).min(MOST_GROUPS) as u32;
        let ranges: Vec<BufferRange> = [Some(numbers), Some(to), from].into_iter().flatten().collect();
        let group = kernel.layout.bind(making.device, &ranges)?;
        Ok(RecordedCommand::Dispatch { pipeline: kernel.pipeline.clone(), group, grid: [groups, 1, 1] })
    }

    fn kernel(&mut self, making: &mut Making<'_>, which: ByteKernel) -> Result<Arc<ReadyKernel>, DriverError> {
        let (place, name, read_only) = match which {
            ByteKernel::Copy => (&mut self.copy, "copy_bytes", vec![true, false, false]),
            ByteKernel::Fill => (&mut self.fill, "fill_bytes", vec![true, false]),
        };
        if let Some(kernel) = place {
            return Ok(kernel.clone());
        }
        let text = include_str!("bytes.wgsl").to_owned();
        let source =
            KernelSource { name: name.into(), block: [GROUP, 1, 1], shared_bytes: 0, rounds: 0, read_only, text };
        let layout = making.layouts.of(making.device, &source.read_only)?;
        Ok(place.insert(Arc::new(ReadyKernel::new(making.device, None, &source, layout)?)).clone())
    }
}

/// Most bytes of one launch, with room for those before the first at an offset that the device takes.
fn largest_piece(limits: &wgpu::Limits) -> u64 {
    let most = limits.max_storage_buffer_binding_size.min(u64::from(u32::MAX / 2));
    (most - u64::from(limits.min_storage_buffer_offset_alignment)) / COPY_UNIT * COPY_UNIT
}

/// The bytes from an offset on that the device takes, and how many there are before those that were meant.
fn aligned(range: &BufferRange, limits: &wgpu::Limits) -> (BufferRange, u32) {
    let align = u64::from(limits.min_storage_buffer_offset_alignment);
    let skipped = range.offset % align;
    let wider = BufferRange { offset: range.offset - skipped, bytes: range.bytes + skipped, ..range.clone() };
    (wider, skipped as u32)
}

/// A buffer with these bytes, for commands that are recorded now.
pub(crate) fn uploaded(device: &wgpu::Device, bytes: &[u8], call: &'static str) -> Result<BufferRange, DriverError> {
    let size = (bytes.len() as u64).next_multiple_of(crate::limits::BINDING_UNIT);
    let usage = wgpu::BufferUsages::STORAGE | wgpu::BufferUsages::COPY_SRC;
    let made = || device.create_buffer(&wgpu::BufferDescriptor { label: None, size, usage, mapped_at_creation: true });
    let buffer = scoped(device, made).map_err(|error| failed(call, &error))?;
    let mut view = buffer.get_mapped_range_mut(..).map_err(|error| refused(call, error.to_string()))?;
    view.slice(..bytes.len()).copy_from_slice(bytes);
    drop(view);
    buffer.unmap();
    Ok(BufferRange { buffer, offset: 0, bytes: bytes.len() as u64, is_last: true })
}
