//! Weights in memory: repacked matrices, or plain f32 rows.

use super::cpu::{Booked, Purpose, Shared, book};
use crate::pack::{PANEL_ROWS, PackedMatrix};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use yirage_hal::{HalError, WeightHandle, WeightSink};
use yirage_ir::{DType, Dims, Format};
use yirage_plan::WeightEntry;
use yirage_plan::weights::ROWS;

/// What a weight handle of this device holds.
pub(super) enum CpuWeight {
    /// For products, and look-ups in the same table.
    Packed(PackedMatrix, #[expect(dead_code, reason = "books the bytes while the weight lives")] Booked),
    /// Decoded to f32: norms, biases, tables.
    Rows(Vec<f32>, #[expect(dead_code, reason = "books the bytes while the weight lives")] Booked),
}

impl CpuWeight {
    /// The values of a plain weight.
    pub(super) fn rows(&self) -> Option<&[f32]> {
        match self {
            CpuWeight::Rows(v, _) => Some(v),
            CpuWeight::Packed(..) => None,
        }
    }

    /// The matrix of a repacked weight.
    pub(super) fn packed(&self) -> Option<&PackedMatrix> {
        match self {
            CpuWeight::Packed(m, _) => Some(m),
            CpuWeight::Rows(..) => None,
        }
    }
}

/// Count of matrices, rows and columns of an entry.
fn sizes(entry: &WeightEntry) -> Result<(Format, usize, usize, usize), HalError> {
    let bad = |why: String| HalError::Weight { name: entry.name.clone(), why };
    let DType::Stored(format) = entry.ty.dtype else { return Err(bad(format!("{} is no stored format", entry.ty))) };
    let shape: Vec<usize> = entry.ty.shape.iter().map(|d| d.get(&Dims::default())).collect();
    match shape[..] {
        [k] => Ok((format, 1, 1, k)),
        [n, k] => Ok((format, entry.groups as usize, n / entry.groups.max(1) as usize, k)),
        [e, n, k] => Ok((format, e, n, k)),
        _ => Err(bad(format!("{}: one to three dimensions wanted", entry.ty))),
    }
}

/// Bytes that the weight will take.
pub(super) fn packed_bytes(entry: &WeightEntry) -> Result<u64, HalError> {
    let (format, count, rows, k) = sizes(entry)?;
    if entry.layout == ROWS {
        return Ok(count as u64 * rows as u64 * k as u64 * 4);
    }
    // Rows are padded to tiles of 16; formats keep their size but for that and a padded last unit.
    let row_bytes = format.info().row_bytes(k.next_multiple_of(64.max(format.info().block)));
    Ok(count as u64 * rows.next_multiple_of(16) as u64 * row_bytes as u64)
}

/// Takes a weight piece by piece.
pub(super) struct Sink {
    shared: Arc<Shared>,
    name: String,
    format: Format,
    count: usize,
    rows: usize,
    k: usize,
    into: Into,
}

enum Into {
    Packed(PackedMatrix),
    Rows(Vec<f32>),
}

impl Sink {
    pub(super) fn new(shared: &Arc<Shared>, entry: &WeightEntry) -> Result<Sink, HalError> {
        let (format, count, rows, k) = sizes(entry)?;
        let into = if entry.layout == ROWS {
            Into::Rows(vec![0.0; count * rows * k])
        } else {
            let packed = PackedMatrix::stacked(format, count, rows, k);
            Into::Packed(packed.map_err(|e| HalError::Weight { name: entry.name.clone(), why: e.to_string() })?)
        };
        Ok(Sink { shared: shared.clone(), name: entry.name.clone(), format, count, rows, k, into })
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

impl WeightSink for Sink {
    fn row_step(&self) -> usize {
        match self.into {
            Into::Rows(_) => 1,
            Into::Packed(_) if self.count > 1 => self.rows,
            Into::Packed(_) => PANEL_ROWS,
        }
    }

    fn write_rows(&mut self, first_row: usize, bytes: &[u8]) -> Result<(), HalError> {
        let row_bytes = self.format.info().row_bytes(self.k);
        let rows = bytes.len() / row_bytes.max(1);
        if rows * row_bytes != bytes.len() || first_row + rows > self.count * self.rows {
            return Err(self.error(format!("{} bytes from row {first_row} do not fit", bytes.len())));
        }
        if let Into::Rows(values) = &mut self.into {
            (self.format.info().decode)(bytes, &mut values[first_row * self.k..(first_row + rows) * self.k]);
        }
        match &self.into {
            Into::Rows(_) => Ok(()),
            Into::Packed(packed) => {
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
            Into::Packed(m) => {
                let booked = book(&self.shared, Purpose::Weights, m.bytes() as u64);
                CpuWeight::Packed(m, booked)
            }
            Into::Rows(v) => {
                let booked = book(&self.shared, Purpose::Weights, v.len() as u64 * 4);
                CpuWeight::Rows(v, booked)
            }
        };
        Ok(WeightHandle(Arc::new(weight)))
    }
}
