//! Weights on their way to a device: rows as they lie in the file.

use super::buffer::{Buffer, DriverAccount, MemoryPool};
use super::contract::Driver;
use crate::device::WeightSink;
use crate::error::HalError;
use crate::handle::WeightHandle;
use std::sync::Arc;
use yirage_ir::{Dims, Type};
use yirage_plan::WeightEntry;

/// A weight in a device's memory.
pub(super) struct DeviceWeight<D: Driver> {
    pub(super) ty: Type,
    pub(super) buffer: Buffer<D>,
}

/// Takes a weight's rows.
pub(super) struct DriverWeightSink<D: Driver> {
    name: String,
    weight: DeviceWeight<D>,
}

impl<D: Driver> DriverWeightSink<D> {
    pub(super) fn new(account: &Arc<DriverAccount<D>>, entry: &WeightEntry) -> Result<DriverWeightSink<D>, HalError> {
        let ty = entry.ty.dense();
        let buffer = Buffer::new(account, MemoryPool::Weights, ty.bytes(&Dims::default()) as u64)?;
        Ok(DriverWeightSink { name: entry.name.clone(), weight: DeviceWeight { ty, buffer } })
    }
}

impl<D: Driver> WeightSink for DriverWeightSink<D> {
    fn row_step(&self) -> usize {
        1
    }

    fn write_rows(&mut self, first_row: usize, bytes: &[u8]) -> Result<(), HalError> {
        let DeviceWeight { ty, buffer } = &self.weight;
        let row = ty.dtype.row_bytes(ty.width().unwrap_or(1));
        let first = first_row.checked_mul(row);
        let part = first.and_then(|first| buffer.slice().part(first as u64, bytes.len() as u64));
        let Some(part) = part else {
            let why = format!("{} bytes from row {first_row} do not fit {ty}", bytes.len());
            return Err(HalError::Weight { name: self.name.clone(), why });
        };
        buffer.fill_from(bytes, part)
    }

    fn finish(self: Box<Self>) -> Result<WeightHandle, HalError> {
        Ok(WeightHandle(Arc::new(self.weight)))
    }
}
