//! Weights in memory: repacked matrices, or plain f32 rows.

use super::cpu::{Booked, PRODUCT_LAYOUT, Purpose, Shared, book};
use crate::pack::{PANEL_ROWS, PackError, PackedMatrix};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use yirage_hal::{HalError, WeightHandle, WeightImage, WeightSink};
use yirage_ir::hash::fnv128;
use yirage_ir::{DType, Dims, Format};
use yirage_plan::WeightEntry;
use yirage_plan::weights::ROWS;

/// What a weight handle of this device holds.
pub(super) enum CpuWeight {
    /// For products, and look-ups in the same table.
    Packed(PackedMatrix, #[expect(dead_code, reason = "books the bytes while the weight lives")] Booked),
    /// Decoded to f32: norms, biases, tables.
    Rows(Rows, #[expect(dead_code, reason = "books the bytes while the weight lives")] Booked),
}

impl CpuWeight {
    /// The values of a plain weight.
    pub(super) fn rows(&self) -> Option<&[f32]> {
        match self {
            CpuWeight::Rows(v, _) => Some(v.values()),
            CpuWeight::Packed(..) => None,
        }
    }

    /// The bytes of it: matrices as they are packed, values as this processor stores them.
    pub(super) fn image(&self) -> &[u8] {
        match self {
            CpuWeight::Packed(m, _) => m.packed_bytes(),
            CpuWeight::Rows(v, _) => v.bytes(),
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

/// Plain values.
pub(super) enum Rows {
    /// In memory of their own.
    Own(Vec<f32>),
    /// In a file that an earlier run wrote, at a multiple of four.
    Mapped(WeightImage),
}

impl Rows {
    fn bytes(&self) -> &[u8] {
        match self {
            // SAFETY: floats are four bytes each without padding, and any byte is a valid `u8`.
            Rows::Own(v) => unsafe { std::slice::from_raw_parts(v.as_ptr().cast(), std::mem::size_of_val(&v[..])) },
            Rows::Mapped(image) => image.bytes(),
        }
    }

    fn values(&self) -> &[f32] {
        match self {
            Rows::Own(v) => v,
            // SAFETY: any four bytes are a valid `f32`. Where the image begins was checked when it was adopted, so that
            // nothing is cut off at either end.
            Rows::Mapped(image) => unsafe { image.bytes().align_to::<f32>().1 },
        }
    }
}

/// A weight from its image.
pub(super) fn adopt(shared: &Arc<Shared>, entry: &WeightEntry, image: WeightImage) -> Result<WeightHandle, HalError> {
    let (format, count, rows, k) = sizes(entry)?;
    let bytes = image.bytes();
    let booked = book(shared, Purpose::Weights, bytes.len() as u64);
    let bad = |why: String| HalError::Weight { name: entry.name.clone(), why };
    let weight = if entry.layout == ROWS {
        let wanted = packed_bytes(entry)?;
        if bytes.len() as u64 != wanted || !(bytes.as_ptr() as usize).is_multiple_of(align_of::<f32>()) {
            let found = bytes.len();
            return Err(bad(format!("its image has {found} bytes; {wanted} at a multiple of 4 are wanted")));
        }
        CpuWeight::Rows(Rows::Mapped(image), booked)
    } else {
        let matrix = PackedMatrix::from_image(format, count, rows, k, image).map_err(|e| bad(e.to_string()))?;
        CpuWeight::Packed(matrix, booked)
    };
    Ok(WeightHandle(Arc::new(weight)))
}

/// What the bytes of packed weights depend on: the layout's name, the order of bytes in numbers, and what the packing
/// code makes of made-up rows of each format. The last one tells versions of the code apart that nobody named
/// differently.
pub(super) fn packing(shared: &Shared) -> Result<String, HalError> {
    const PROBE_ROWS: usize = 20;
    let mut text = String::new();
    for &format in Format::ALL {
        let info = format.info();
        let k = 320usize.next_multiple_of(info.block);
        // Numbers of Lehmer's generator: every byte differs from its neighbours, none has a meaning.
        let mut state = 1u64;
        let mut next = || {
            state = state * 48_271 % 0x7fff_ffff;
            (state >> 8) as u8
        };
        let rows: Vec<u8> = (0..PROBE_ROWS * info.row_bytes(k)).map(|_| next()).collect();
        let error = |e: crate::pack::PackError| HalError::Device(e.to_string());
        let matrix = PackedMatrix::new(format, PROBE_ROWS, k).map_err(error)?;
        // SAFETY: nobody else knows the matrix.
        unsafe { matrix.pack_rows(shared.isa, 0, 0, &rows) }.map_err(error)?;
        text.push_str(&format!(" {}:{:016x}", info.name, fnv128(matrix.packed_bytes()) as u64));
    }
    let order = if cfg!(target_endian = "little") { "little" } else { "big" };
    Ok(format!("cpu {PRODUCT_LAYOUT} {order}-endian{text}"))
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
    // Rows are padded to tiles of 16; formats keep their size but for that and a padded last unit.
    let (rows, row_bytes) = match entry.layout == ROWS {
        true => (rows, k.saturating_mul(size_of::<f32>())),
        false => (rows.next_multiple_of(16), format.info().row_bytes(k.next_multiple_of(64.max(format.info().block)))),
    };
    Ok((count as u64).saturating_mul(rows as u64).saturating_mul(row_bytes as u64))
}

fn no_memory(wanted: u64, entry: &WeightEntry, detail: String) -> HalError {
    HalError::OutOfMemory { pool: "weights", wanted, detail: format!("weight `{}`: {detail}", entry.name) }
}

/// So many bytes of zeros.
fn zeros(bytes: u64, entry: &WeightEntry) -> Result<Vec<f32>, HalError> {
    let mut values = Vec::new();
    let len = bytes as usize / size_of::<f32>();
    values.try_reserve_exact(len).map_err(|e| no_memory(bytes, entry, e.to_string()))?;
    values.resize(len, 0.0);
    Ok(values)
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
            Into::Rows(zeros(packed_bytes(entry)?, entry)?)
        } else {
            let packed = PackedMatrix::stacked(format, count, rows, k);
            Into::Packed(packed.map_err(|e| match e {
                PackError::Memory(e) => no_memory(e.wanted as u64, entry, e.to_string()),
                e => HalError::Weight { name: entry.name.clone(), why: e.to_string() },
            })?)
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
                CpuWeight::Rows(Rows::Own(v), booked)
            }
        };
        Ok(WeightHandle(Arc::new(weight)))
    }
}
