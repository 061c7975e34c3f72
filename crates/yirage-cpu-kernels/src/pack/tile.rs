//! What a kernel must know of a packed format.

use crate::simd::Lanes;
use std::mem::MaybeUninit;

/// Rows of a tile: the lanes of a 512-bit register of 32-bit numbers.
pub const TILE_ROWS: usize = 16;
/// Tiles interleaved in a panel, so that activations fetched once serve 64 rows of one memory stream.
pub const PANEL_TILES: usize = 4;
/// Rows of a panel.
pub const PANEL_ROWS: usize = TILE_ROWS * PANEL_TILES;
/// Weights along k that share one activation scale.
pub const BLOCK: usize = 32;

/// Scales and mins of a unit as f32, a row of 16 for each 32-block and half of it. A format writes the rows it has; the
/// others are never touched, as clearing 2 KiB for each panel is a hundredth of a product with one token.
#[repr(C, align(64))]
pub(crate) struct UnitScales {
    scale: [[MaybeUninit<f32>; TILE_ROWS]; 16],
    min: [[MaybeUninit<f32>; TILE_ROWS]; 16],
}

impl UnitScales {
    /// No row written.
    #[inline(always)]
    pub(crate) const fn new() -> UnitScales {
        let rows = [[MaybeUninit::uninit(); TILE_ROWS]; 16];
        UnitScales { scale: rows, min: rows }
    }

    /// Where the scales of half `i` (of all the unit's blocks, in order) go: what a code (less its offset) is multiplied
    /// by.
    #[inline(always)]
    pub(super) fn scale_mut(&mut self, i: usize) -> *mut f32 {
        self.scale[i].as_mut_ptr().cast()
    }

    /// Where its mins go: what is added then, for formats with mins (mostly negative).
    #[inline(always)]
    pub(super) fn min_mut(&mut self, i: usize) -> *mut f32 {
        self.min[i].as_mut_ptr().cast()
    }

    /// The scales of half `i`.
    ///
    /// # Safety
    /// They were written.
    #[inline(always)]
    pub(crate) unsafe fn scale(&self, i: usize) -> &[f32; TILE_ROWS] {
        // SAFETY: what `UnitScales::scale` is promised; `linear` or `unpack::row` has checked that the unit is the
        // matrix's.
        unsafe { &*self.scale[i].as_ptr().cast() }
    }

    /// The mins of half `i`.
    ///
    /// # Safety
    /// As for [`UnitScales::scale`].
    #[inline(always)]
    pub(crate) unsafe fn min(&self, i: usize) -> &[f32; TILE_ROWS] {
        // SAFETY: what `UnitScales::min` is promised; `linear` or `unpack::row` has checked that the unit is the
        // matrix's.
        unsafe { &*self.min[i].as_ptr().cast() }
    }
}

/// Where a block of `PUT` weights begins in the file, for each row of a tile.
#[derive(Clone, Copy)]
pub(crate) struct SourceBlocks(pub(super) [*const u8; TILE_ROWS]);

impl SourceBlocks {
    /// `N` bytes of each row from `at` of its block.
    ///
    /// # Safety
    /// They lie in the block, and the block is readable.
    #[inline(always)]
    pub(super) unsafe fn read<const N: usize>(&self, at: usize) -> [[u8; N]; TILE_ROWS] {
        // SAFETY: what `SourceBlocks::read` is promised; `PackedMatrix::pack_rows` has checked the rows.
        self.0.map(|row| unsafe { row.add(at).cast::<[u8; N]>().read_unaligned() })
    }

    /// Four words of each row from byte `at` of its block.
    ///
    /// # Safety
    /// As for [`SourceBlocks::read`]; the instruction set of `L`.
    #[inline(always)]
    pub(super) unsafe fn words<L: Lanes>(&self, at: usize) -> [L::Bytes; 4] {
        // SAFETY: what `SourceBlocks::words` is promised; `PackedMatrix::pack_rows` has checked the rows.
        unsafe { L::words(&self.0, at) }
    }
}

/// A packed format: `UNIT_BLOCKS` 32-blocks of 16 rows in `UNIT_BYTES` consecutive bytes, with no byte more than in
/// the file.
///
/// # Safety
/// The methods need a whole unit at `unit`, the instruction set of `L`, and whole blocks where they are told some.
pub(crate) trait TileFormat {
    /// 32-blocks of a unit: 1, 2 or 8.
    const UNIT_BLOCKS: usize;
    /// Bytes of a unit of 16 rows.
    const UNIT_BYTES: usize;
    /// Weights handed to `put` at once: a file block, or 32 plain floats.
    const PUT: usize;

    /// Writes the `at`-th `PUT` weights of the unit, of all rows.
    unsafe fn put<L: Lanes>(unit: *mut u8, at: usize, rows: &SourceBlocks);
    /// Decodes the scales of the unit.
    unsafe fn scales<L: Lanes>(unit: *const u8, into: &mut UnitScales);
    /// The weights k = 4g..4g+4 of 32-block `b`, exactly the f32 values of the format's `decode`.
    unsafe fn four<L: Lanes>(unit: *const u8, b: usize, g: usize, scales: &UnitScales) -> [L; 4];
}

/// A packed format with integer codes: weight = scale * (code - OFFSET) + min.
///
/// # Safety
/// As for [`TileFormat`].
pub(crate) trait QuantizedTileFormat: TileFormat {
    /// Bits of a code.
    #[cfg_attr(not(any(target_arch = "x86_64", target_arch = "aarch64")), allow(dead_code))] // portable code need not know
    const BITS: u32;
    /// What was added to make codes unsigned: 0 or a power of two.
    const OFFSET: i32;
    /// Its logarithm (0 without offset).
    #[cfg_attr(not(any(target_arch = "x86_64", target_arch = "aarch64")), allow(dead_code))] // as above
    const OFFSET_SHIFT: u32 = if Self::OFFSET == 0 { 0 } else { Self::OFFSET.ilog2() };
    /// Scales per 32-block: 1, or 2 (one for 16 weights).
    const HALVES: usize = 1;
    /// Whether there are mins.
    const MINS: bool = false;

    /// The codes of the k-groups 2i and 2i+1 of 32-block `b`.
    unsafe fn pair<L: Lanes>(unit: *const u8, b: usize, i: usize) -> [L::Bytes; 2];
}

/// [`TileFormat::four`] of a format with codes.
///
/// # Safety
/// As for [`TileFormat`].
#[inline(always)]
pub(crate) unsafe fn decode_four<T: QuantizedTileFormat, L: Lanes>(
    unit: *const u8,
    b: usize,
    g: usize,
    s: &UnitScales,
) -> [L; 4] {
    // SAFETY: what `decode_four` is promised; `linear` or `unpack::row` has checked that the unit is the matrix's.
    unsafe {
        let codes = T::pair::<L>(unit, b, g / 2)[g % 2];
        let mut out = [L::splat(0.0); 4];
        for (i, w) in out.iter_mut().enumerate() {
            *w = decode_byte::<T, L>(codes, i, b * T::HALVES + g / 4 * (T::HALVES - 1), s);
        }
        out
    }
}

/// The weights k = `column` of 32-block `b`, exactly those of [`TileFormat::four`].
///
/// # Safety
/// As for [`TileFormat`].
#[inline(always)]
pub(crate) unsafe fn decode_column<T: QuantizedTileFormat, L: Lanes>(
    unit: *const u8,
    b: usize,
    column: usize,
    s: &UnitScales,
) -> L {
    let g = column / 4;
    // SAFETY: what `decode_column` is promised; `linear` or `unpack::row` has checked that the unit is the matrix's.
    unsafe {
        let codes = T::pair::<L>(unit, b, g / 2)[g % 2];
        decode_byte::<T, L>(codes, column % 4, b * T::HALVES + g / 4 * (T::HALVES - 1), s)
    }
}

/// The weights whose codes are byte `i` of each row, with the scales (and mins) of half `at`. One rounding at most: a
/// product of scale and code always fits 24 bits.
///
/// # Safety
/// As for [`TileFormat`].
#[inline(always)]
unsafe fn decode_byte<T: QuantizedTileFormat, L: Lanes>(codes: L::Bytes, i: usize, at: usize, s: &UnitScales) -> L {
    // SAFETY: what `decode_byte` is promised; the tables hold UNIT_BLOCKS * HALVES <= 16 rows; `linear` or
    // `unpack::row` has checked that the unit is the matrix's.
    unsafe {
        let scale = L::load_in_order(s.scale(at).as_ptr());
        let mut code = L::byte(codes, i);
        if T::OFFSET != 0 {
            code = code.sub(L::splat(T::OFFSET as f32));
        }
        if T::MINS { scale.fma(code, L::load_in_order(s.min(at).as_ptr())) } else { scale.mul(code) }
    }
}
