//! Weights repacked for the kernels, once, at load: one copy serves single tokens, small batches and prefill.
//!
//! 16 rows form a tile; along k a tile is a sequence of units (see each format's file). Four tiles form a panel of 64
//! rows whose units are interleaved, `[panel][unit][tile]`, so a panel is one memory stream. Rows beyond the matrix
//! and weights beyond its k are zero. Knows nothing of activations or threads.

mod bf16;
mod f16;
mod f32;
mod interleave;
mod iq4_nl;
mod mxfp4;
mod planes;
mod q2_k;
mod q3_k;
mod q4_0;
mod q4_1;
mod q4_k;
mod q5_0;
mod q5_1;
mod q5_k;
mod q6_k;
mod q8_0;
mod tile;
mod unpack;

pub(crate) use bf16::PackedBf16;
pub(crate) use f16::PackedF16;
pub(crate) use f32::PackedF32;
pub(crate) use iq4_nl::IQ4_NL;
pub(crate) use mxfp4::MXFP4;
pub(crate) use q2_k::Q2_K;
pub(crate) use q3_k::Q3_K;
pub(crate) use q4_0::Q4_0;
pub(crate) use q4_1::Q4_1;
pub(crate) use q4_k::Q4_K;
pub(crate) use q5_0::Q5_0;
pub(crate) use q5_1::Q5_1;
pub(crate) use q5_k::Q5_K;
pub(crate) use q6_k::Q6_K;
pub(crate) use q8_0::Q8_0;
pub use tile::{BLOCK, PANEL_ROWS, PANEL_TILES, TILE_ROWS};
pub(crate) use tile::{QuantizedTileFormat, TileFormat, UnitScales, decode_column};

use crate::isa::Isa;
use crate::memory::{OutOfMemory, SharedBuf, Supply};
use thiserror::Error;
use yirage_ir::Format;
use yirage_mmap::WeightImage;

/// Runs `$then!(Type, $args)` for the packed type of a format: the only list of packed formats. `float` formats have
/// no integer codes.
macro_rules! for_format {
    ($format:expr, codes => |$c:ident| $code:expr, floats => |$f:ident| $float:expr) => {
        $crate::pack::for_format!(@ $format, $c, $code, $f, $float,
            [Q4_0 Q4_1 Q5_0 Q5_1 Q8_0 Q2_K Q3_K Q4_K Q5_K Q6_K IQ4_NL MXFP4] [F32 PackedF32, F16 PackedF16, BF16 PackedBf16])
    };
    (@ $format:expr, $c:ident, $code:expr, $f:ident, $float:expr, [$($coded:ident)*] [$($plain:ident $packed:ident),*]) => {
        match $format {
            $(yirage_ir::Format::$coded => { type $c = $crate::pack::$coded; $code })*
            $(yirage_ir::Format::$plain => { type $f = $crate::pack::$packed; $float })*
        }
    };
}
pub(crate) use for_format;

/// What a unit of a packed format is.
#[derive(Clone, Copy)]
struct UnitSize {
    /// 32-blocks of a unit.
    blocks: usize,
    bytes: usize,
}

fn unit_size(format: Format) -> UnitSize {
    fn of<T: TileFormat>() -> UnitSize {
        debug_assert!(T::UNIT_BLOCKS <= 8);
        UnitSize { blocks: T::UNIT_BLOCKS, bytes: T::UNIT_BYTES }
    }
    for_format!(format, codes => |T| of::<T>(), floats => |T| of::<T>())
}

/// Why weights cannot be packed.
#[derive(Clone, PartialEq, Eq, Debug, Error)]
pub enum PackError {
    /// k is not a whole number of file blocks.
    #[error("a {format} matrix {rows} x {k} cannot be packed: k must be a multiple of {block}; use another format")]
    PartBlock {
        /// Text name of the format.
        format: &'static str,
        /// Rows of the matrix.
        rows: usize,
        /// Columns of the matrix.
        k: usize,
        /// Weights of a block.
        block: usize,
    },
    /// The size does not fit an address.
    #[error("{count} {format} matrices {rows} x {k} exceed the address space")]
    TooLarge {
        /// Text name of the format.
        format: &'static str,
        /// Number of matrices.
        count: usize,
        /// Rows of a matrix.
        rows: usize,
        /// Columns of a matrix.
        k: usize,
    },
    /// The rows handed over do not fit the matrix.
    #[error(
        "rows from {first_row} of matrix {matrix} in {bytes} bytes do not fit: {count} matrices of {rows} rows of \
         {row_bytes} bytes, first rows at multiples of 16"
    )]
    BadRows {
        /// Matrix of the stack.
        matrix: usize,
        /// First row.
        first_row: usize,
        /// Bytes handed over.
        bytes: usize,
        /// Matrices in the stack.
        count: usize,
        /// Rows of each.
        rows: usize,
        /// Bytes of a row in the file format.
        row_bytes: usize,
    },
    /// An image of another size.
    #[error(
        "the image of {count} {format} matrices {rows} x {k} has {found} bytes; {wanted} at a multiple of {BLOCK_ALIGN} are wanted"
    )]
    BadImage {
        /// Text name of the format.
        format: &'static str,
        /// Number of matrices.
        count: usize,
        /// Rows of a matrix.
        rows: usize,
        /// Columns of a matrix.
        k: usize,
        /// Bytes of the matrices.
        wanted: usize,
        /// Bytes of the image.
        found: usize,
    },
    /// Rows for a matrix that is mapped from a file.
    #[error("rows cannot be packed into a matrix that is mapped from a file")]
    ReadOnly,
    /// No memory.
    #[error(transparent)]
    Memory(#[from] OutOfMemory),
}

/// A weight matrix `[rows, k]`, or a stack of equal ones (`[experts, rows, k]`), repacked.
///
/// Each matrix of a stack starts a new panel.
pub struct PackedMatrix {
    format: Format,
    count: usize,
    rows: usize,
    k: usize,
    unit: UnitSize,
    units: usize,
    panels: usize,
    buf: PackedStorage,
}

/// What every first byte of a matrix is a multiple of.
const BLOCK_ALIGN: usize = 64;

/// Where a matrix lies.
enum PackedStorage {
    /// In memory of its own.
    Own(SharedBuf),
    /// In a file that an earlier run wrote.
    Mapped(WeightImage),
}

impl PackedStorage {
    fn bytes(&self) -> &[u8] {
        match self {
            // SAFETY: what writes here is `PackedMatrix::pack_rows`, whose caller promises that nothing reads meanwhile.
            PackedStorage::Own(buf) => unsafe { buf.as_slice() },
            PackedStorage::Mapped(image) => image.bytes(),
        }
    }

    /// The first byte; written to only where the matrix is in memory of its own.
    fn first(&self) -> *const u8 {
        match self {
            PackedStorage::Own(buf) => buf.first(),
            PackedStorage::Mapped(image) => image.bytes().as_ptr(),
        }
    }
}

impl PackedMatrix {
    /// Room for one matrix, all weights zero.
    ///
    /// # Errors
    /// See [`PackedMatrix::stacked`].
    pub fn new(format: Format, rows: usize, k: usize) -> Result<PackedMatrix, PackError> {
        PackedMatrix::stacked(format, 1, rows, k)
    }

    /// Room for `count` matrices `[rows, k]`, all weights zero.
    ///
    /// # Errors
    /// [`PackError::PartBlock`] when k is not a whole number of the format's blocks, [`PackError::TooLarge`],
    /// [`PackError::Memory`].
    pub fn stacked(format: Format, count: usize, rows: usize, k: usize) -> Result<PackedMatrix, PackError> {
        PackedMatrix::supplied(Supply::Plain, format, count, rows, k)
    }

    /// As [`PackedMatrix::stacked`], in memory from this supply.
    ///
    /// # Errors
    /// See [`PackedMatrix::stacked`].
    pub fn supplied(
        supply: Supply,
        format: Format,
        count: usize,
        rows: usize,
        k: usize,
    ) -> Result<PackedMatrix, PackError> {
        PackedMatrix::with_store(format, count, rows, k, |bytes| {
            Ok(PackedStorage::Own(supply.zeroed(bytes, BLOCK_ALIGN)?.shared()))
        })
    }

    /// Matrices from their [`PackedMatrix::packed_bytes`], which stay where they are.
    ///
    /// # Errors
    /// Those of [`PackedMatrix::stacked`]; [`PackError::BadImage`] for another number of bytes, or bytes that do not
    /// begin at a multiple of 64.
    pub fn from_image(
        format: Format,
        count: usize,
        rows: usize,
        k: usize,
        image: WeightImage,
    ) -> Result<PackedMatrix, PackError> {
        PackedMatrix::with_store(format, count, rows, k, |wanted| {
            let (name, found) = (format.info().name, image.bytes().len());
            if found != wanted || !(image.bytes().as_ptr() as usize).is_multiple_of(BLOCK_ALIGN) {
                return Err(PackError::BadImage { format: name, count, rows, k, wanted, found });
            }
            Ok(PackedStorage::Mapped(image))
        })
    }

    fn with_store(
        format: Format,
        count: usize,
        rows: usize,
        k: usize,
        store: impl FnOnce(usize) -> Result<PackedStorage, PackError>,
    ) -> Result<PackedMatrix, PackError> {
        let (unit, info) = (unit_size(format), format.info());
        if !k.is_multiple_of(info.block) {
            return Err(PackError::PartBlock { format: info.name, rows, k, block: info.block });
        }
        let (units, panels) = (k.div_ceil(unit.blocks * BLOCK), rows.div_ceil(PANEL_ROWS));
        let bytes = [units, PANEL_TILES, panels, count]
            .iter()
            .try_fold(unit.bytes, |a, b| a.checked_mul(*b))
            .ok_or(PackError::TooLarge { format: info.name, count, rows, k })?;
        let buf = store(bytes)?;
        Ok(PackedMatrix { format, count, rows, k, unit, units, panels, buf })
    }

    /// The file format of the weights.
    pub fn format(&self) -> Format {
        self.format
    }

    /// Matrices in the stack.
    pub fn count(&self) -> usize {
        self.count
    }

    /// Rows of each matrix.
    pub fn rows(&self) -> usize {
        self.rows
    }

    /// Columns of each matrix.
    pub fn k(&self) -> usize {
        self.k
    }

    /// Panels of 64 rows of each matrix: what work is divided by.
    pub fn panels(&self) -> usize {
        self.panels
    }

    /// Bytes of memory held.
    pub fn bytes(&self) -> usize {
        self.buf.bytes().len()
    }

    /// The packed bytes, for checksums and for reading ahead.
    pub fn packed_bytes(&self) -> &[u8] {
        self.buf.bytes()
    }

    /// Bytes of a panel.
    pub fn panel_bytes(&self) -> usize {
        self.units * PANEL_TILES * self.unit.bytes
    }

    /// Units along k.
    pub(crate) fn units(&self) -> usize {
        self.units
    }

    /// The first byte of a panel.
    pub fn panel(&self, matrix: usize, panel: usize) -> *const u8 {
        debug_assert!(matrix < self.count && panel < self.panels);
        self.buf.first().wrapping_add((matrix * self.panels + panel) * self.panel_bytes())
    }

    /// The first unit of the tile holding `row`; the next units follow at [`PackedMatrix::unit_step`].
    pub(crate) fn tile(&self, matrix: usize, row: usize) -> *const u8 {
        self.panel(matrix, row / PANEL_ROWS).wrapping_add(row % PANEL_ROWS / TILE_ROWS * self.unit.bytes)
    }

    /// Bytes from a unit of a tile to its next one.
    pub(crate) fn unit_step(&self) -> usize {
        PANEL_TILES * self.unit.bytes
    }

    /// Packs consecutive whole rows, given as they lie in the file. Whole tiles are written; where a row ends inside
    /// a unit, the rest of it stays as it was made: zero. The bytes are the same at every instruction set.
    ///
    /// # Errors
    /// [`PackError::BadRows`] when `first_row` is not a multiple of 16, `bytes` is not a whole number of rows, or the
    /// rows exceed the matrix; [`PackError::ReadOnly`] for a matrix from an image.
    ///
    /// # Panics
    /// When this CPU lacks `isa`.
    ///
    /// # Safety
    /// Calls that run at the same time must not write the same tile: give each thread rows of its own tiles (a
    /// multiple of 16 rows, but for the last). Nothing may read those rows meanwhile.
    pub unsafe fn pack_rows(&self, isa: Isa, matrix: usize, first_row: usize, bytes: &[u8]) -> Result<(), PackError> {
        if matches!(self.buf, PackedStorage::Mapped(_)) {
            return Err(PackError::ReadOnly);
        }
        let row_bytes = self.format.info().row_bytes(self.k);
        let n = bytes.len().checked_div(row_bytes).unwrap_or(0);
        let fits = n.checked_add(first_row).is_some_and(|end| end <= self.rows) && matrix < self.count;
        if !fits || n * row_bytes != bytes.len() || !first_row.is_multiple_of(TILE_ROWS) {
            let (count, rows, bytes) = (self.count, self.rows, bytes.len());
            return Err(PackError::BadRows { matrix, first_row, bytes, count, rows, row_bytes });
        }
        for at in (0..n).step_by(TILE_ROWS) {
            let rows = &bytes[at * row_bytes..n.min(at + TILE_ROWS) * row_bytes];
            // SAFETY: `row < self.rows`, and the caller keeps other threads off this tile.
            unsafe { interleave::tile(isa, self, matrix, first_row + at, rows) }
        }
        Ok(())
    }

    /// Decodes row `row` of matrix `matrix` to exactly the f32 values of the format's `decode`.
    ///
    /// # Panics
    /// When the row does not exist, `out` is not k long, or this CPU lacks `isa`: the caller checked ids and sizes.
    pub fn unpack_row(&self, isa: Isa, matrix: usize, row: usize, out: &mut [f32]) {
        unpack::row(isa, self, matrix, row, out);
    }
}
