//! Weights in memory: repacked matrices, plain f32 rows, or the file's elements of 16 bits.

use crate::shared::{CpuContext, MemoryPurpose, MemoryReservation, book};
use std::sync::Arc;
use yirage_cpu_kernels::memory::HugeBuf;
use yirage_cpu_kernels::pack::PackedMatrix;
use yirage_hal::{HalError, WeightHandle, WeightImage};
use yirage_ir::{DType, Dims, Format, Type};
use yirage_plan::{WeightEntry, WeightLayout, WeightLayoutFacts, WeightRole};

/// The layout of packed matrices. Another number for another layout.
pub(crate) const MATMUL_LAYOUT: WeightLayout = WeightLayout::named("tiles16x64@1");

/// The layouts of weights that this device has, most wanted first.
pub(crate) fn weight_layouts() -> Vec<WeightLayoutFacts> {
    vec![
        WeightLayoutFacts::new(MATMUL_LAYOUT, &[WeightRole::Matmul], Format::ALL),
        WeightLayoutFacts::new(WeightLayout::ELEMENTS, &[WeightRole::Factor], &[Format::F16, Format::BF16]),
        WeightLayoutFacts::rows(&[WeightRole::Factor, WeightRole::Plain]),
    ]
}

/// What a weight handle of this device holds. Programs keep the part that they were bound to.
pub(crate) enum CpuWeight {
    /// For products, and look-ups in the same table.
    Packed(Arc<MatmulWeight>),
    /// Decoded to f32: norms, biases, tables.
    Rows(Arc<DecodedRows>),
    /// In the file's order and of its type: what general products read.
    Elements(Arc<WeightElements>),
}

/// A repacked matrix, or a stack of them.
pub(crate) struct MatmulWeight {
    packed: PackedMatrix,
    _booked: MemoryReservation,
}

/// Plain values, row after row.
pub(crate) struct DecodedRows {
    values: WeightStorage,
    _booked: MemoryReservation,
}

/// Elements of 16 bits, row after row.
pub(crate) struct WeightElements {
    values: WeightStorage,
    format: Format,
    _booked: MemoryReservation,
}

enum WeightStorage {
    /// In memory of their own.
    Own(HugeBuf),
    /// In a file that an earlier run wrote, at a multiple of an element's size.
    Mapped(WeightImage),
}

impl CpuWeight {
    /// A matrix that is whole.
    pub(super) fn packed(shared: &Arc<CpuContext>, packed: PackedMatrix) -> CpuWeight {
        let booked = book(shared, MemoryPurpose::Weights, packed.bytes() as u64);
        CpuWeight::Packed(Arc::new(MatmulWeight { packed, _booked: booked }))
    }

    /// Values that are whole.
    pub(super) fn own(shared: &Arc<CpuContext>, values: HugeBuf) -> CpuWeight {
        let booked = book(shared, MemoryPurpose::Weights, values.len() as u64);
        CpuWeight::Rows(Arc::new(DecodedRows { values: WeightStorage::Own(values), _booked: booked }))
    }

    /// Elements of 16 bits that are whole.
    pub(super) fn elements(shared: &Arc<CpuContext>, values: HugeBuf, format: Format) -> CpuWeight {
        let booked = book(shared, MemoryPurpose::Weights, values.len() as u64);
        CpuWeight::Elements(Arc::new(WeightElements { values: WeightStorage::Own(values), format, _booked: booked }))
    }

    /// The bytes of it: matrices as they are packed, values as this processor stores them.
    pub(crate) fn image(&self) -> &[u8] {
        match self {
            CpuWeight::Packed(matrix) => matrix.packed.packed_bytes(),
            CpuWeight::Rows(rows) => rows.values.bytes(),
            CpuWeight::Elements(held) => held.bytes(),
        }
    }

    /// Whether it holds the values of a weight of this type.
    pub(crate) fn holds(&self, ty: &Type) -> bool {
        let elems = ty.elems(&Dims::default());
        match self {
            CpuWeight::Packed(m) => {
                let (m, held) = (&m.packed, m.packed.count().checked_mul(m.packed.rows()));
                let held = held.and_then(|rows| rows.checked_mul(m.k()));
                ty.dtype == DType::Stored(m.format()) && ty.width() == Some(m.k()) && held == Some(elems)
            }
            CpuWeight::Rows(rows) => rows.values().len() == elems,
            CpuWeight::Elements(held) => held.dtype() == ty.dtype && held.bytes().len() == ty.dtype.row_bytes(elems),
        }
    }
}

impl MatmulWeight {
    /// The matrix.
    pub(crate) fn packed(&self) -> &PackedMatrix {
        &self.packed
    }
}

impl WeightStorage {
    fn bytes(&self) -> &[u8] {
        match self {
            WeightStorage::Own(buf) => buf.as_slice(),
            WeightStorage::Mapped(image) => image.bytes(),
        }
    }
}

impl WeightElements {
    /// The type of the elements.
    pub(crate) fn dtype(&self) -> DType {
        self.format.into()
    }

    /// Their bytes. `Sink::new` and `adopt` see to it that they begin at a multiple of an element's size, and
    /// `CpuWeight::holds` that there are as many as the weight has.
    pub(crate) fn bytes(&self) -> &[u8] {
        self.values.bytes()
    }
}

impl DecodedRows {
    /// The values.
    pub(crate) fn values(&self) -> &[f32] {
        // SAFETY: any four bytes are a valid `f32`. `Sink::new` and `adopt` see to it that there is a multiple of four
        // which begins at one, so nothing is cut off.
        unsafe { self.values.bytes().align_to::<f32>().1 }
    }
}

/// A weight from its image.
pub(crate) fn adopt(
    shared: &Arc<CpuContext>,
    entry: &WeightEntry,
    image: WeightImage,
) -> Result<WeightHandle, HalError> {
    let (format, count, rows, k) = sizes(entry)?;
    let bytes = image.bytes();
    let bad = |why: String| HalError::Weight { name: entry.name.clone(), why };
    let weight = if is_packed(entry) {
        let matrix = PackedMatrix::from_image(format, count, rows, k, image).map_err(|e| bad(e.to_string()))?;
        CpuWeight::packed(shared, matrix)
    } else {
        let (wanted, align) = (packed_bytes(entry)?, align_of::<f32>());
        if bytes.len() as u64 != wanted || !(bytes.as_ptr() as usize).is_multiple_of(align) {
            let found = bytes.len();
            return Err(bad(format!("its image has {found} bytes; {wanted} at a multiple of {align} are wanted")));
        }
        let (values, _booked) = (WeightStorage::Mapped(image), book(shared, MemoryPurpose::Weights, wanted));
        match entry.lies_in(WeightLayout::ELEMENTS) {
            true => CpuWeight::Elements(Arc::new(WeightElements { values, format, _booked })),
            false => CpuWeight::Rows(Arc::new(DecodedRows { values, _booked })),
        }
    };
    Ok(WeightHandle(Arc::new(weight)))
}

/// Whether it lies as a packed matrix.
pub(super) fn is_packed(entry: &WeightEntry) -> bool {
    !entry.lies_in(WeightLayout::ROWS) && !entry.lies_in(WeightLayout::ELEMENTS)
}

/// Count of matrices, rows and columns of an entry.
pub(super) fn sizes(entry: &WeightEntry) -> Result<(Format, usize, usize, usize), HalError> {
    let bad = |why: String| HalError::Weight { name: entry.name.clone(), why };
    let DType::Stored(format) = entry.ty.dtype else { return Err(bad(format!("{} is no stored format", entry.ty))) };
    if entry.lies_in(WeightLayout::ELEMENTS) && ![Format::F16, Format::BF16].contains(&format) {
        return Err(bad(format!("held element by element are f16 and bf16, not {}", entry.ty.dtype)));
    }
    let shape: Vec<usize> = entry.ty.shape.iter().map(|d| d.get(&Dims::default())).collect();
    match shape[..] {
        [] => Ok((format, 1, 1, 1)),
        [k] => Ok((format, 1, 1, k)),
        [n, k] => Ok((format, entry.groups as usize, n / entry.groups.max(1) as usize, k)),
        [e, n, k] => Ok((format, e, n, k)),
        [ref outer @ .., k] if !is_packed(entry) => Ok((format, 1, outer.iter().product(), k)),
        _ => Err(bad(format!("{}: one to three dimensions wanted", entry.ty))),
    }
}

/// Bytes that the weight will take.
pub(crate) fn packed_bytes(entry: &WeightEntry) -> Result<u64, HalError> {
    let (format, count, rows, k) = sizes(entry)?;
    // Rows are padded to tiles of 16; formats keep their size but for that and a padded last unit.
    let (rows, row_bytes) = if entry.lies_in(WeightLayout::ROWS) {
        (rows, k.saturating_mul(size_of::<f32>()))
    } else if entry.lies_in(WeightLayout::ELEMENTS) {
        (rows, format.info().row_bytes(k))
    } else {
        (rows.next_multiple_of(16), format.info().row_bytes(k.next_multiple_of(64.max(format.info().block))))
    };
    Ok((count as u64).saturating_mul(rows as u64).saturating_mul(row_bytes as u64))
}
