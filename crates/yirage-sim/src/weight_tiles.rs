//! Weights of products in tiles of 32 rows and 64 columns, as an accelerator might want them: tile after tile along a band
//! of rows, band after band. What a band or a tile lacks is padded with zeros.

use yirage_hal::HalError;
use yirage_ir::{DType, Dims, Format};
use yirage_plan::{WeightEntry, WeightLayout, WeightLayoutFacts, WeightRole};

/// Rows of a tile.
pub(crate) const TILE_ROWS: usize = 32;

/// Columns of a tile.
const TILE_COLUMNS: usize = 64;

const LAYOUT: WeightLayout = WeightLayout::named("tiles32x64@sim1");

/// What the target says of the layout: it holds the formats whose blocks do not reach over tiles.
pub(crate) fn facts() -> WeightLayoutFacts {
    let formats: Vec<Format> = Format::ALL.iter().copied().filter(|&format| fits(format)).collect();
    WeightLayoutFacts::new(LAYOUT, &[WeightRole::Matmul], &formats)
}

fn fits(format: Format) -> bool {
    TILE_COLUMNS.is_multiple_of(format.info().block)
}

/// A weight in tiles.
#[derive(Clone, Copy)]
pub(crate) struct WeightTiles {
    rows: usize,
    /// Bytes of a row in the file.
    row_bytes: usize,
    /// Bytes of a row of a tile.
    tile_bytes: usize,
}

impl WeightTiles {
    /// Those of a weight; none where it lies in rows.
    ///
    /// # Errors
    /// Another layout, and a format that has no place in tiles.
    pub(crate) fn of(entry: &WeightEntry) -> Result<Option<WeightTiles>, HalError> {
        if entry.lies_in(WeightLayout::ROWS) {
            return Ok(None);
        }
        let (name, ty) = (&entry.name, &entry.ty);
        let bad = |why: String| HalError::Weight { name: name.clone(), why };
        if !entry.lies_in(LAYOUT) {
            return Err(bad(format!(
                "the layout `{}` is neither `{}` nor `{LAYOUT}`",
                entry.layout,
                WeightLayout::ROWS
            )));
        }
        match (ty.dtype, ty.width()) {
            (DType::Stored(format), Some(k)) if fits(format) && k > 0 => {
                let rows = ty.elems(&Dims::default()) / k;
                let (row_bytes, tile_bytes) = (format.info().row_bytes(k), format.info().row_bytes(TILE_COLUMNS));
                Ok(Some(WeightTiles { rows, row_bytes, tile_bytes }))
            }
            _ => Err(bad(format!("{ty} has no place in the layout `{LAYOUT}`"))),
        }
    }

    /// Bytes of a band of rows.
    fn band_bytes(&self) -> usize {
        self.row_bytes.div_ceil(self.tile_bytes).saturating_mul(TILE_ROWS * self.tile_bytes)
    }

    /// Bytes of the whole weight.
    pub(crate) fn bytes(&self) -> usize {
        self.rows.div_ceil(TILE_ROWS).saturating_mul(self.band_bytes())
    }

    /// Where a piece of a row begins in its band.
    fn place(&self, row: usize, tile: usize) -> usize {
        row / TILE_ROWS * self.band_bytes() + (tile * TILE_ROWS + row % TILE_ROWS) * self.tile_bytes
    }

    /// Packs whole rows of the file, of which the first is the first of a band: where they lie, and their bytes.
    pub(crate) fn pack(&self, first_row: usize, rows: &[u8]) -> (usize, Vec<u8>) {
        let count = rows.len() / self.row_bytes.max(1);
        let mut packed = vec![0; count.div_ceil(TILE_ROWS) * self.band_bytes()];
        for (row, bytes) in rows.chunks_exact(self.row_bytes.max(1)).enumerate() {
            for (tile, piece) in bytes.chunks(self.tile_bytes).enumerate() {
                packed[self.place(row, tile)..][..piece.len()].copy_from_slice(piece);
            }
        }
        (first_row / TILE_ROWS * self.band_bytes(), packed)
    }

    /// The rows of the file.
    pub(crate) fn unpack(&self, packed: &[u8]) -> Vec<u8> {
        let mut rows = vec![0; self.rows * self.row_bytes];
        for (row, bytes) in rows.chunks_exact_mut(self.row_bytes.max(1)).enumerate() {
            for (tile, piece) in bytes.chunks_mut(self.tile_bytes).enumerate() {
                piece.copy_from_slice(&packed[self.place(row, tile)..][..piece.len()]);
            }
        }
        rows
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use yirage_ir::Type;

    fn tiles(format: Format, shape: &[u32]) -> Result<Option<WeightTiles>, HalError> {
        let ty = Type::new(format.into(), shape.iter().copied());
        WeightTiles::of(&WeightEntry {
            name: "w".into(),
            ty,
            layout: LAYOUT.name().into(),
            groups: 1,
            shard_axis: None,
        })
    }

    #[test]
    fn what_is_packed_in_pieces_unpacks_to_the_rows() {
        for (format, shape) in [(Format::F32, [70u32, 100]), (Format::BF16, [32, 64]), (Format::Q8_0, [33, 96])] {
            let tiles = tiles(format, &shape).unwrap().unwrap();
            let row = format.info().row_bytes(shape[1] as usize);
            let rows: Vec<u8> = (0..shape[0] as usize * row).map(|i| (i % 251) as u8).collect();
            let mut packed = vec![0xff; tiles.bytes()];
            for (piece, bytes) in rows.chunks(TILE_ROWS * row).enumerate() {
                let (offset, bytes) = tiles.pack(piece * TILE_ROWS, bytes);
                packed[offset..][..bytes.len()].copy_from_slice(&bytes);
            }
            assert_eq!(tiles.unpack(&packed), rows, "{format:?}");
        }
        // A tile of 32 rows of 64 columns: the second row lies behind 64 columns of the first.
        let tiles = tiles(Format::F32, &[64, 128]).unwrap().unwrap();
        assert_eq!((tiles.place(1, 0), tiles.place(0, 1), tiles.place(32, 0)), (256, 32 * 256, 2 * 32 * 256));
    }

    #[test]
    fn blocks_that_reach_over_tiles_have_no_place() {
        let refused = tiles(Format::Q4_K, &[32, 256]).err().unwrap().to_string();
        assert!(refused.contains("has no place in the layout `tiles32x64@sim1`"), "{refused}");
        assert!(facts().formats.contains(&Format::Q8_0) && !facts().formats.contains(&Format::Q4_K));
    }
}
