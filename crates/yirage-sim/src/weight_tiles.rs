//! Weights of products in tiles of so many rows and columns, as an accelerator might want them: tile after tile along a band
//! of rows, band after band. What a band or a tile lacks is padded with zeros. Each kind of accelerator has tiles of its own.

use yirage_hal::HalError;
use yirage_ir::{DType, Dims, Format};
use yirage_plan::{WeightEntry, WeightLayout, WeightLayoutFacts, WeightRole};

/// Tiles of one size: a layout.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct WeightTileShape {
    layout: WeightLayout,
    rows: usize,
    columns: usize,
}

impl WeightTileShape {
    /// As matrix units with groups of 32 threads might want them.
    pub const POINTERS: WeightTileShape = WeightTileShape::new("tiles32x64@sim1", 32, 64);
    /// As groups that read 128 bytes of a row at once might.
    pub const BINDINGS: WeightTileShape = WeightTileShape::new("tiles4x32@sim1", 4, 32);
    /// As the cube of a neural processor might; blocks of 256 elements have a place.
    pub const OPERATIONS: WeightTileShape = WeightTileShape::new("tiles16x256@sim1", 16, 256);

    const ALL: [WeightTileShape; 3] = [Self::POINTERS, Self::BINDINGS, Self::OPERATIONS];

    const fn new(name: &'static str, rows: usize, columns: usize) -> WeightTileShape {
        WeightTileShape { layout: WeightLayout::named(name), rows, columns }
    }

    /// What the target says of the layout: it holds the formats whose blocks do not reach over tiles.
    pub(crate) fn facts(&self) -> WeightLayoutFacts {
        let formats: Vec<Format> = Format::ALL.iter().copied().filter(|&format| self.fits(format)).collect();
        WeightLayoutFacts::new(self.layout, &[WeightRole::Matmul], &formats)
    }

    fn fits(&self, format: Format) -> bool {
        self.columns.is_multiple_of(format.info().block)
    }
}

/// A weight in tiles.
#[derive(Clone, Copy)]
pub(crate) struct WeightTiles {
    shape: WeightTileShape,
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
        let Some(&shape) = WeightTileShape::ALL.iter().find(|shape| entry.lies_in(shape.layout)) else {
            let tiles = WeightTileShape::ALL.map(|shape| format!("`{}`", shape.layout)).join(", ");
            let why = format!("the layout `{}` is neither `{}` nor one of {tiles}", entry.layout, WeightLayout::ROWS);
            return Err(bad(why));
        };
        match (ty.dtype, ty.width()) {
            (DType::Stored(format), Some(k)) if shape.fits(format) && k > 0 => {
                let rows = ty.elems(&Dims::default()) / k;
                let (row_bytes, tile_bytes) = (format.info().row_bytes(k), format.info().row_bytes(shape.columns));
                Ok(Some(WeightTiles { shape, rows, row_bytes, tile_bytes }))
            }
            _ => Err(bad(format!("{ty} has no place in the layout `{}`", shape.layout))),
        }
    }

    /// Rows of a band, of which a piece begins with the first.
    pub(crate) fn band_rows(&self) -> usize {
        self.shape.rows
    }

    /// Bytes of a band of rows.
    fn band_bytes(&self) -> usize {
        self.row_bytes.div_ceil(self.tile_bytes).saturating_mul(self.shape.rows * self.tile_bytes)
    }

    /// Bytes of the whole weight.
    pub(crate) fn bytes(&self) -> usize {
        self.rows.div_ceil(self.shape.rows).saturating_mul(self.band_bytes())
    }

    /// Where a piece of a row begins in its band.
    fn place(&self, row: usize, tile: usize) -> usize {
        let in_band = tile * self.shape.rows + row % self.shape.rows;
        row / self.shape.rows * self.band_bytes() + in_band * self.tile_bytes
    }

    /// Packs whole rows of the file, of which the first is the first of a band: where they lie, and their bytes.
    pub(crate) fn pack(&self, first_row: usize, rows: &[u8]) -> (usize, Vec<u8>) {
        let count = rows.len() / self.row_bytes.max(1);
        let mut packed = vec![0; count.div_ceil(self.shape.rows) * self.band_bytes()];
        for (row, bytes) in rows.chunks_exact(self.row_bytes.max(1)).enumerate() {
            for (tile, piece) in bytes.chunks(self.tile_bytes).enumerate() {
                packed[self.place(row, tile)..][..piece.len()].copy_from_slice(piece);
            }
        }
        (first_row / self.shape.rows * self.band_bytes(), packed)
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

    fn tiles(of: WeightTileShape, format: Format, shape: &[u32]) -> Result<Option<WeightTiles>, HalError> {
        let ty = Type::new(format.into(), shape.iter().copied());
        WeightTiles::of(&WeightEntry {
            name: "w".into(),
            ty,
            layout: of.layout.name().into(),
            groups: 1,
            shard_axis: None,
        })
    }

    #[test]
    fn what_is_packed_in_pieces_unpacks_to_the_rows() {
        let weights = [(Format::F32, [70u32, 100]), (Format::BF16, [32, 64]), (Format::Q8_0, [33, 96])];
        for (of, (format, shape)) in WeightTileShape::ALL.into_iter().flat_map(|of| weights.map(|w| (of, w))) {
            let tiles = tiles(of, format, &shape).unwrap().unwrap();
            let row = format.info().row_bytes(shape[1] as usize);
            let rows: Vec<u8> = (0..shape[0] as usize * row).map(|i| (i % 251) as u8).collect();
            let mut packed = vec![0xff; tiles.bytes()];
            for (piece, bytes) in rows.chunks(of.rows * row).enumerate() {
                let (offset, bytes) = tiles.pack(piece * of.rows, bytes);
                packed[offset..][..bytes.len()].copy_from_slice(&bytes);
            }
            assert_eq!(tiles.unpack(&packed), rows, "{of:?} {format:?}");
        }
        // A tile of 32 rows of 64 columns: the second row lies behind 64 columns of the first.
        let tiles = tiles(WeightTileShape::POINTERS, Format::F32, &[64, 128]).unwrap().unwrap();
        assert_eq!((tiles.place(1, 0), tiles.place(0, 1), tiles.place(32, 0)), (256, 32 * 256, 2 * 32 * 256));
    }

    #[test]
    fn blocks_that_reach_over_tiles_have_no_place() {
        let refused = tiles(WeightTileShape::POINTERS, Format::Q4_K, &[32, 256]).err().unwrap().to_string();
        assert!(refused.contains("has no place in the layout `tiles32x64@sim1`"), "{refused}");
        let has = |shape: WeightTileShape, format| shape.facts().formats.contains(&format);
        assert!(has(WeightTileShape::POINTERS, Format::Q8_0) && !has(WeightTileShape::POINTERS, Format::Q4_K));
        assert!(has(WeightTileShape::OPERATIONS, Format::Q4_K));
    }
}
