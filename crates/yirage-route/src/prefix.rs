//! Which replica has computed which beginnings of prompts.

use crate::limits::KNOWN_BLOCKS;
use std::collections::HashMap;

/// Blocks of prompts and the replica that was last given each; those that nobody asked for go first.
///
/// A block is a hash of all that stands before its end: behind other beginnings, the same text is another block.
///
/// There are two generations, so that nothing has to be sorted: a full young one becomes the old one, and what was in that is
/// forgotten but for what was asked for since.
pub struct PrefixTable {
    young: HashMap<u64, usize>,
    old: HashMap<u64, usize>,
    room: usize,
}

impl Default for PrefixTable {
    /// Room for 131,072 blocks.
    fn default() -> PrefixTable {
        PrefixTable::with_room(KNOWN_BLOCKS)
    }
}

impl PrefixTable {
    /// Room for so many blocks at most.
    pub fn with_room(blocks: usize) -> PrefixTable {
        PrefixTable { young: HashMap::new(), old: HashMap::new(), room: (blocks / 2).max(1) }
    }

    /// The replica that has the longest beginning of these blocks, and how many of them.
    pub fn find(&self, blocks: &[u64]) -> Option<(usize, usize)> {
        let known = blocks.iter().map_while(|block| self.young.get(block).or_else(|| self.old.get(block)));
        known.enumerate().last().map(|(at, &replica)| (replica, at + 1))
    }

    /// A replica has these blocks from now on.
    pub fn insert(&mut self, blocks: &[u64], replica: usize) {
        for &block in blocks {
            if self.young.len() >= self.room && !self.young.contains_key(&block) {
                self.old = std::mem::take(&mut self.young);
            }
            self.young.insert(block, replica);
        }
    }

    /// A replica has nothing any more.
    pub fn forget(&mut self, replica: usize) {
        self.young.retain(|_, of| *of != replica);
        self.old.retain(|_, of| *of != replica);
    }

    /// Blocks that are known.
    pub fn len(&self) -> usize {
        self.young.len() + self.old.keys().filter(|block| !self.young.contains_key(block)).count()
    }

    /// Whether none are.
    pub fn is_empty(&self) -> bool {
        self.young.is_empty() && self.old.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::PrefixTable;

    #[test]
    fn the_longest_beginning_decides() {
        let mut table = PrefixTable::with_room(100);
        table.insert(&[1, 2, 3], 0);
        table.insert(&[1, 9], 1);
        assert_eq!(table.find(&[1, 2, 3, 4]), Some((0, 3)));
        assert_eq!(table.find(&[1, 9, 33]), Some((1, 2)));
        assert_eq!((table.find(&[7, 2]), table.find(&[])), (None, None));
        table.forget(1);
        assert_eq!(table.find(&[1, 9, 33]), None, "the block before it was given to the second last");
    }

    #[test]
    fn what_nobody_asks_for_is_forgotten_within_the_bound() {
        let mut table = PrefixTable::with_room(8);
        for block in 0..1000 {
            table.insert(&[7_000_000, block], 0);
            assert!(table.len() <= 8, "{}", table.len());
        }
        assert_eq!(table.find(&[7_000_000, 999]), Some((0, 2)));
        assert_eq!(table.find(&[3]), None);
    }
}
