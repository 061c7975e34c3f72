//! Layouts of KV caches: how the blocks of a paged cache lie in a target's memory, as data.
//!
//! A block of a cache holds so many positions; of each position every head has its key and its value behind it, in the elements
//! of the cache's type. Layouts differ in how many positions a block has, in what lies together, and in what is padded. What
//! leaves a device is in rows ([`KvCacheLayout::ROWS`] without padding), whatever the layout there: so what one device has read
//! another one writes. Deliberately unknown here: tables of blocks, sequences, devices.

use std::fmt;
use yirage_ir::{DType, Dim, Dims, Format, Type};

/// A layout of KV caches, by its name.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct KvCacheLayout(&'static str);

/// What of a block lies together.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum KvCacheOrder {
    /// The heads of a position, position after position.
    Positions,
    /// The positions of a head, head after head.
    Heads,
    /// What the target's own kernels alone know.
    Own,
}

/// A layout of KV caches that a target has.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct KvCacheLayoutFacts {
    /// The layout.
    pub layout: KvCacheLayout,
    /// What lies together.
    pub order: KvCacheOrder,
    /// Bytes that a head of a position is padded to a multiple of.
    pub align: u32,
    /// How many positions a block may have, most wanted first.
    pub positions: Vec<u32>,
    /// What keys and values may be stored as.
    pub formats: Vec<Format>,
}

impl KvCacheLayout {
    /// Position after position, and of each its heads, nothing padded: the order of the type.
    pub const ROWS: KvCacheLayout = KvCacheLayout("rows");

    /// That of recurrent states, whose blocks have no positions: row after row of channels, on every target.
    pub const STATES: KvCacheLayout = KvCacheLayout("states");

    /// A layout of a device's own. Another layout has another name.
    pub const fn named(name: &'static str) -> KvCacheLayout {
        KvCacheLayout(name)
    }

    /// The name.
    pub const fn name(self) -> &'static str {
        self.0
    }
}

impl fmt::Display for KvCacheLayout {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0)
    }
}

/// The sizes of a block: positions, heads, and bytes of a head of one position.
#[derive(Clone, Copy)]
struct BlockSizes {
    positions: usize,
    heads: usize,
    cell: usize,
}

impl BlockSizes {
    fn of(block: &Type) -> Option<BlockSizes> {
        let &[Dim::Const(positions), Dim::Const(heads), Dim::Const(width)] = &block.shape[..] else { return None };
        let [positions, heads, width] = [positions, heads, width].map(|n| n as usize);
        Some(BlockSizes { positions, heads, cell: block.dtype.row_bytes(width) })
    }
}

impl KvCacheLayoutFacts {
    /// Rows, for blocks of so many positions, of every format that a cache may have.
    pub fn rows(positions: &[u32]) -> KvCacheLayoutFacts {
        KvCacheLayoutFacts {
            layout: KvCacheLayout::ROWS,
            order: KvCacheOrder::Positions,
            align: 1,
            positions: positions.to_vec(),
            formats: vec![Format::F32, Format::F16, Format::BF16, Format::Q8_0],
        }
    }

    /// Whether blocks of this type may lie so.
    pub fn holds(&self, block: &Type) -> bool {
        let has_format = matches!(block.dtype, DType::Stored(format) if self.formats.contains(&format));
        let positions = BlockSizes::of(block).and_then(|sizes| u32::try_from(sizes.positions).ok());
        has_format && positions.is_some_and(|n| self.positions.contains(&n))
    }

    /// Bytes of a block, where this says how it lies: `None` of a layout that kernels alone know, and of a type that is no
    /// block of keys and values.
    pub fn block_bytes(&self, block: &Type) -> Option<u64> {
        let (sizes, padded) = (BlockSizes::of(block)?, self.padded(block)?);
        (sizes.positions as u64).checked_mul(sizes.heads as u64)?.checked_mul(padded as u64)
    }

    /// Bytes of a head of one position with what is padded.
    fn padded(&self, block: &Type) -> Option<usize> {
        match self.order {
            KvCacheOrder::Own => None,
            _ => BlockSizes::of(block)?.cell.checked_next_multiple_of(self.align.max(1) as usize),
        }
    }

    /// For each head of each position of one block, where it lies in rows and where it lies here.
    fn places(&self, sizes: BlockSizes, padded: usize) -> impl Iterator<Item = (usize, usize)> {
        let (order, BlockSizes { positions, heads, cell }) = (self.order, sizes);
        (0..positions).flat_map(move |position| {
            (0..heads).map(move |head| {
                let here = match order {
                    KvCacheOrder::Heads => head * positions + position,
                    KvCacheOrder::Positions | KvCacheOrder::Own => position * heads + head,
                };
                ((position * heads + head) * cell, here * padded)
            })
        })
    }

    /// Blocks that lie so, in rows. `None` as of [`KvCacheLayoutFacts::block_bytes`], and where the bytes are not whole blocks.
    pub fn to_rows(&self, block: &Type, stored: &[u8]) -> Option<Vec<u8>> {
        let (sizes, padded) = (BlockSizes::of(block)?, self.padded(block)?);
        let (own, plain) = (self.block_bytes(block)? as usize, block.bytes(&Dims::default()));
        let count = whole(stored.len(), own)?;
        let mut rows = vec![0; count * plain];
        for (rows, stored) in rows.chunks_exact_mut(plain.max(1)).zip(stored.chunks_exact(own.max(1))) {
            for (to, from) in self.places(sizes, padded) {
                rows[to..][..sizes.cell].copy_from_slice(&stored[from..][..sizes.cell]);
            }
        }
        Some(rows)
    }

    /// Blocks in rows, as they lie so; what is padded is 0. `None` as of [`KvCacheLayoutFacts::to_rows`].
    pub fn from_rows(&self, block: &Type, rows: &[u8]) -> Option<Vec<u8>> {
        let (sizes, padded) = (BlockSizes::of(block)?, self.padded(block)?);
        let (own, plain) = (self.block_bytes(block)? as usize, block.bytes(&Dims::default()));
        let count = whole(rows.len(), plain)?;
        let mut stored = vec![0; count * own];
        for (stored, rows) in stored.chunks_exact_mut(own.max(1)).zip(rows.chunks_exact(plain.max(1))) {
            for (from, to) in self.places(sizes, padded) {
                stored[to..][..sizes.cell].copy_from_slice(&rows[from..][..sizes.cell]);
            }
        }
        Some(stored)
    }
}

/// How many blocks of `each` bytes there are.
fn whole(bytes: usize, each: usize) -> Option<usize> {
    if each == 0 { (bytes == 0).then_some(0) } else { bytes.is_multiple_of(each).then(|| bytes / each) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use yirage_ir::rng::Rng;

    fn facts(order: KvCacheOrder, align: u32) -> KvCacheLayoutFacts {
        let layout = KvCacheLayout::named("own");
        KvCacheLayoutFacts { layout, order, align, ..KvCacheLayoutFacts::rows(&[2, 4]) }
    }

    #[test]
    fn heads_lie_apart_and_are_padded() {
        let block = Type::new(Format::F16.into(), [2u32, 3, 1]);
        let rows: Vec<u8> = (0..12).collect();
        let heads = facts(KvCacheOrder::Heads, 1);
        assert_eq!(heads.from_rows(&block, &rows), Some(vec![0, 1, 6, 7, 2, 3, 8, 9, 4, 5, 10, 11]));
        let padded = facts(KvCacheOrder::Positions, 4);
        assert_eq!(padded.block_bytes(&block), Some(24));
        assert_eq!(padded.from_rows(&block, &rows[..]).unwrap()[..8], [0, 1, 0, 0, 2, 3, 0, 0]);
        assert_eq!(facts(KvCacheOrder::Own, 1).from_rows(&block, &rows), None);
        assert_eq!(heads.from_rows(&block, &rows[1..]), None);
        assert_eq!(heads.to_rows(&Type::new(Format::F32.into(), [2u32, 3]), &rows), None);
    }

    #[test]
    fn every_layout_gives_back_what_it_was_given() {
        let mut rng = Rng::new(4);
        for _ in 0..300 {
            let format = *rng.choose(&[Format::F32, Format::F16, Format::BF16, Format::Q8_0]);
            let width = (1 + rng.index(5) as u32) * if format == Format::Q8_0 { 32 } else { 1 };
            let block = Type::new(format.into(), [*rng.choose(&[2u32, 4]), 1 + rng.index(4) as u32, width]);
            let order = *rng.choose(&[KvCacheOrder::Positions, KvCacheOrder::Heads]);
            let facts = facts(order, *rng.choose(&[1, 4, 32, 256]));
            assert!(facts.holds(&block));
            let bytes = block.bytes(&Dims::default()) * rng.index(4);
            let rows: Vec<u8> = (0..bytes).map(|_| rng.next_u64() as u8).collect();
            let stored = facts.from_rows(&block, &rows).unwrap();
            assert_eq!(facts.to_rows(&block, &stored).as_ref(), Some(&rows), "{facts:?} {block}");
        }
    }

    #[test]
    fn a_layout_holds_its_lengths_and_formats() {
        let facts = KvCacheLayoutFacts { formats: vec![Format::F16], ..facts(KvCacheOrder::Heads, 1) };
        let of = |format: Format, positions: u32| facts.holds(&Type::new(format.into(), [positions, 1, 32]));
        assert!(of(Format::F16, 2) && of(Format::F16, 4));
        assert!(!of(Format::F16, 32) && !of(Format::F32, 2));
        assert!(!facts.holds(&Type::new(Format::F16.into(), [2u32, 32])), "a recurrent state has no positions");
    }
}
