//! Weights as they come from files: a piece at a time, repacked by all threads.

use super::weight::{CpuWeight, is_packed, packed_bytes, sizes};
use crate::shared::CpuContext;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use yirage_cpu_kernels::memory::HugeBuf;
use yirage_cpu_kernels::pack::{PANEL_ROWS, PackError, PackedMatrix};
use yirage_hal::{HalError, WeightHandle, WeightSink};
use yirage_ir::Format;
use yirage_plan::{WeightEntry, WeightLayout};

fn no_memory(wanted: u64, entry: &WeightEntry, detail: String) -> HalError {
    HalError::OutOfMemory { pool: "weights", wanted, detail: format!("weight `{}`: {detail}", entry.name) }
}

/// Takes a weight piece by piece.
pub(crate) struct CpuWeightSink {
    shared: Arc<CpuContext>,
    name: String,
    format: Format,
    count: usize,
    rows: usize,
    k: usize,
    into: SinkBuffer,
}

enum SinkBuffer {
    Packed(PackedMatrix),
    Rows(HugeBuf),
    Elements(HugeBuf),
}

impl CpuWeightSink {
    pub(crate) fn new(shared: &Arc<CpuContext>, entry: &WeightEntry) -> Result<CpuWeightSink, HalError> {
        let (format, count, rows, k) = sizes(entry)?;
        let into = if !is_packed(entry) {
            let bytes = packed_bytes(entry)?;
            let len = usize::try_from(bytes).map_err(|e| no_memory(bytes, entry, e.to_string()))?;
            let values = shared.supply.zeroed(len, align_of::<f32>());
            let values = values.map_err(|e| no_memory(bytes, entry, e.to_string()))?;
            if entry.lies_in(WeightLayout::ELEMENTS) { SinkBuffer::Elements(values) } else { SinkBuffer::Rows(values) }
        } else {
            let packed = PackedMatrix::supplied(shared.supply, format, count, rows, k);
            SinkBuffer::Packed(packed.map_err(|e| match e {
                PackError::Memory(e) => no_memory(e.wanted as u64, entry, e.to_string()),
                e => HalError::Weight { name: entry.name.clone(), why: e.to_string() },
            })?)
        };
        Ok(CpuWeightSink { shared: shared.clone(), name: entry.name.clone(), format, count, rows, k, into })
    }

    fn error(&self, why: String) -> HalError {
        HalError::Weight { name: self.name.clone(), why }
    }

    /// Packs rows of one matrix. Workers take a panel at a time, as pages of the file and of memory come at uneven speed.
    fn pack(&self, packed: &PackedMatrix, matrix: usize, first: usize, bytes: &[u8]) -> Result<(), HalError> {
        let panel_bytes = PANEL_ROWS * self.format.info().row_bytes(self.k);
        let next = AtomicUsize::new(0);
        let failed = Mutex::new(None);
        let run = self.shared.pool.try_run(|_| {
            loop {
                let panel = next.fetch_add(1, Ordering::Relaxed);
                let Some(rest) = bytes.get(panel * panel_bytes..).filter(|rest| !rest.is_empty()) else { return };
                let rows = &rest[..panel_bytes.min(rest.len())];
                // SAFETY: workers take different panels, and nothing reads the matrix before `finish`.
                let done = unsafe { packed.pack_rows(self.shared.isa, matrix, first + panel * PANEL_ROWS, rows) };
                if let (Err(e), Ok(mut failed)) = (done, failed.lock()) {
                    *failed = Some(e.to_string());
                }
            }
        });
        run.map_err(|e| HalError::Device(e.to_string()))?;
        match failed.into_inner() {
            Ok(Some(why)) => Err(self.error(why)),
            _ => Ok(()),
        }
    }
}

/// The floats of a buffer made for some.
fn floats(buf: &mut HugeBuf) -> &mut [f32] {
    // SAFETY: any bytes are floats. `CpuWeightSink::new` got a multiple of four bytes, which begins at one, so nothing is cut off.
    unsafe { buf.as_mut_slice().align_to_mut::<f32>().1 }
}

/// Little-endian words of 16 bits as this processor has them.
fn native_halves(from: &[u8], to: &mut [u8]) {
    for (to, from) in to.chunks_exact_mut(2).zip(from.chunks_exact(2)) {
        to.copy_from_slice(&u16::from_le_bytes([from[0], from[1]]).to_ne_bytes());
    }
}

impl WeightSink for CpuWeightSink {
    fn row_step(&self) -> usize {
        match self.into {
            SinkBuffer::Rows(_) | SinkBuffer::Elements(_) => 1,
            SinkBuffer::Packed(_) if self.count > 1 => self.rows,
            SinkBuffer::Packed(_) => PANEL_ROWS,
        }
    }

    fn write_rows(&mut self, first_row: usize, bytes: &[u8]) -> Result<(), HalError> {
        let row_bytes = self.format.info().row_bytes(self.k);
        let rows = bytes.len() / row_bytes.max(1);
        if rows * row_bytes != bytes.len() || first_row + rows > self.count * self.rows {
            return Err(self.error(format!("{} bytes from row {first_row} do not fit", bytes.len())));
        }
        match &mut self.into {
            SinkBuffer::Rows(values) => {
                let wanted = first_row * self.k..(first_row + rows) * self.k;
                (self.format.info().decode)(bytes, &mut floats(values)[wanted]);
            }
            SinkBuffer::Elements(values) => native_halves(bytes, &mut values.as_mut_slice()[first_row * row_bytes..]),
            SinkBuffer::Packed(_) => {}
        }
        match &self.into {
            SinkBuffer::Rows(_) | SinkBuffer::Elements(_) => Ok(()),
            SinkBuffer::Packed(packed) => {
                let mut at = 0;
                while at < rows {
                    let (matrix, row) = ((first_row + at) / self.rows, (first_row + at) % self.rows);
                    let n = (rows - at).min(self.rows - row);
                    self.pack(packed, matrix, row, &bytes[at * row_bytes..(at + n) * row_bytes])?;
                    at += n;
                }
                Ok(())
            }
        }
    }

    fn finish(self: Box<Self>) -> Result<WeightHandle, HalError> {
        let weight = match self.into {
            SinkBuffer::Packed(matrix) => CpuWeight::packed(&self.shared, matrix),
            SinkBuffer::Rows(values) => CpuWeight::own(&self.shared, values),
            SinkBuffer::Elements(values) => CpuWeight::elements(&self.shared, values, self.format),
        };
        Ok(WeightHandle(Arc::new(weight)))
    }
}
