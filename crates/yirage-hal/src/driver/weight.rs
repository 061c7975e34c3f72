//! Weights on their way to a device: rows as they lie in the file, which the library packs on the host.

use super::buffer::{Buffer, DriverAccount, MemoryPool};
use super::contract::Driver;
use super::library::{Library, WeightPacking};
use crate::device::WeightSink;
use crate::error::HalError;
use crate::handle::WeightHandle;
use crate::record::HostMemory;
use std::sync::Arc;
use std::time::Duration;
use yirage_ir::{Dims, Type};
use yirage_plan::WeightEntry;

/// How long reading a weight back may take before its device counts as hanging.
const HANG_AFTER: Duration = Duration::from_secs(120);

/// A weight in a device's memory.
pub(super) struct DeviceWeight<D: Driver> {
    pub(super) ty: Type,
    /// The name of the layout that it was packed in.
    pub(super) layout: String,
    pub(super) buffer: Buffer<D>,
}

impl<D: Driver> DeviceWeight<D> {
    /// The weight whose packed bytes these are.
    pub(super) fn of_image(
        account: &Arc<DriverAccount<D>>,
        entry: &WeightEntry,
        packing: &WeightPacking,
        image: &[u8],
    ) -> Result<DeviceWeight<D>, HalError> {
        if image.len() as u64 != packing.bytes {
            let why = format!("expected an image of {} bytes, got one of {}", packing.bytes, image.len());
            return Err(HalError::Weight { name: entry.name.clone(), why });
        }
        let buffer = Buffer::new(account, MemoryPool::Weights, packing.bytes)?;
        buffer.fill_from(image, buffer.slice())?;
        Ok(DeviceWeight { ty: entry.ty.dense(), layout: entry.layout.clone(), buffer })
    }

    /// Its packed bytes, read back.
    pub(super) fn read(&self, account: &DriverAccount<D>) -> Result<Vec<u8>, HalError> {
        // What is on its way to it has arrived first.
        account.transfers.finish(&account.driver)?;
        let driver = self.buffer.driver();
        let download = driver.download(self.buffer.slice())?;
        driver.wait(driver.signal()?, HANG_AFTER)?;
        Ok(download.take().bytes().to_vec())
    }
}

/// Takes a weight's rows.
pub(super) struct DriverWeightSink<D: Driver, L: Library> {
    library: Arc<L>,
    entry: WeightEntry,
    packing: WeightPacking,
    weight: DeviceWeight<D>,
}

impl<D: Driver, L: Library> DriverWeightSink<D, L> {
    pub(super) fn new(
        account: &Arc<DriverAccount<D>>,
        library: &Arc<L>,
        entry: &WeightEntry,
    ) -> Result<DriverWeightSink<D, L>, HalError> {
        let packing = library.weight_packing(entry)?;
        let buffer = Buffer::new(account, MemoryPool::Weights, packing.bytes)?;
        let weight = DeviceWeight { ty: entry.ty.dense(), layout: entry.layout.clone(), buffer };
        Ok(DriverWeightSink { library: library.clone(), entry: entry.clone(), packing, weight })
    }

    /// Checks that these are whole rows of the weight, from where the layout allows.
    fn check(&self, first_row: usize, bytes: usize) -> Result<(), HalError> {
        let (ty, step) = (&self.weight.ty, self.packing.row_step.max(1));
        let row = ty.dtype.row_bytes(ty.width().unwrap_or(1));
        let end = first_row.checked_mul(row).and_then(|first| first.checked_add(bytes));
        let inside = end.is_some_and(|end| end <= ty.bytes(&Dims::default()));
        if inside && bytes.is_multiple_of(row.max(1)) && first_row.is_multiple_of(step) {
            return Ok(());
        }
        let rows = format!("whole rows of {row} bytes from a multiple of {step} are wanted");
        let why = format!("{bytes} bytes from row {first_row} do not fit {ty}: {rows}");
        Err(HalError::Weight { name: self.entry.name.clone(), why })
    }
}

impl<D: Driver, L: Library> WeightSink for DriverWeightSink<D, L> {
    fn row_step(&self) -> usize {
        self.packing.row_step
    }

    fn write_rows(&mut self, first_row: usize, bytes: &[u8]) -> Result<(), HalError> {
        self.check(first_row, bytes.len())?;
        let packed = self.library.pack(&self.entry, first_row, bytes)?;
        let (buffer, len) = (&self.weight.buffer, packed.bytes.len() as u64);
        let Some(place) = buffer.slice().part(packed.offset, len) else {
            let (layout, at, all) = (&self.entry.layout, packed.offset, buffer.bytes());
            let why = format!("{len} bytes packed as `{layout}` do not fit at {at} of {all}");
            return Err(HalError::Weight { name: self.entry.name.clone(), why });
        };
        buffer.fill_from(&packed.bytes, place)
    }

    fn finish(self: Box<Self>) -> Result<WeightHandle, HalError> {
        Ok(WeightHandle(Arc::new(self.weight)))
    }
}
