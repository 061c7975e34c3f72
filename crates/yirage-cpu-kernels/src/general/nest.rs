//! A loop over several operands, with as few dimensions as it can have.

use super::operand::{LoopSizes, Strides};
use yirage_ir::expr::MAX_INPUTS;
use yirage_ir::types::MAX_RANK;

/// Most operands of a loop: inputs and an output.
pub(super) const MAX_OPERANDS: usize = MAX_INPUTS + 1;

/// Rows at least this long are gone over one by one; shorter ones together.
const LONG: usize = 64;

/// How the elements of an operand lie.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum AccessPattern {
    /// One after the other through the whole loop.
    Dense,
    /// One element for the whole loop.
    One,
    /// As the strides say.
    Strided,
}

/// The dimensions of a loop, and the strides of its operands.
#[derive(Clone, Debug)]
pub(super) struct Nest {
    rank: usize,
    sizes: [usize; MAX_RANK],
    strides: [[i64; MAX_RANK]; MAX_OPERANDS],
    patterns: [AccessPattern; MAX_OPERANDS],
}

/// Where an element of the loop is.
pub(super) type Coords = [usize; MAX_RANK];

impl Nest {
    /// Dimensions that lie without a gap in all operands become one, and those of size 1 none.
    ///
    /// # Panics
    /// If an operand has not one stride a dimension, or there are too many operands.
    pub(super) fn new(sizes: &LoopSizes, operands: impl Iterator<Item = Strides>) -> Nest {
        let mut given = [[0; MAX_RANK]; MAX_OPERANDS];
        let mut count = 0;
        for strides in operands {
            assert_eq!(strides.as_slice().len(), sizes.as_slice().len(), "strides of operand {count}");
            given[count][..strides.as_slice().len()].copy_from_slice(strides.as_slice());
            count += 1;
        }
        let mut nest = Nest {
            rank: 0,
            sizes: [1; MAX_RANK],
            strides: [[0; MAX_RANK]; MAX_OPERANDS],
            patterns: [AccessPattern::Strided; MAX_OPERANDS],
        };
        for (axis, &size) in sizes.as_slice().iter().enumerate().filter(|(_, size)| **size != 1) {
            let outer = nest.rank.wrapping_sub(1);
            let joins =
                nest.rank > 0 && (0..count).all(|o| nest.strides[o][outer] == given[o][axis].wrapping_mul(size as i64));
            let at = if joins { outer } else { nest.rank };
            nest.sizes[at] = if joins { nest.sizes[at] * size } else { size };
            (0..count).for_each(|o| nest.strides[o][at] = given[o][axis]);
            nest.rank = at + 1;
        }
        nest.rank = nest.rank.max(1);
        (0..count).for_each(|o| nest.patterns[o] = nest.access_pattern(o));
        nest
    }

    fn access_pattern(&self, operand: usize) -> AccessPattern {
        let strides = &self.strides[operand][..self.rank];
        let mut next = 1;
        let dense = strides.iter().zip(&self.sizes[..self.rank]).rev().all(|(&stride, &size)| {
            let fits = size == 1 || stride == next;
            next *= size as i64;
            fits
        });
        match dense {
            true => AccessPattern::Dense,
            false if strides.iter().all(|&s| s == 0) => AccessPattern::One,
            false => AccessPattern::Strided,
        }
    }

    /// How an operand lies.
    pub(super) fn of(&self, operand: usize) -> AccessPattern {
        self.patterns[operand]
    }

    /// Elements of the innermost dimension.
    pub(super) fn row(&self) -> usize {
        self.sizes[self.rank - 1]
    }

    /// Elements between neighbours of the innermost dimension.
    pub(super) fn inner(&self, operand: usize) -> i64 {
        self.strides[operand][self.rank - 1]
    }

    /// Where element `flat` is, in row-major order.
    pub(super) fn coords(&self, mut flat: usize) -> Coords {
        let mut coords = [0; MAX_RANK];
        for axis in (1..self.rank).rev() {
            coords[axis] = flat % self.sizes[axis];
            flat /= self.sizes[axis];
        }
        coords[0] = flat;
        coords
    }

    /// Elements of an operand from the loop's first to the one at `coords`.
    pub(super) fn offset(&self, operand: usize, coords: &Coords) -> isize {
        let strides = &self.strides[operand][..self.rank];
        strides.iter().zip(coords).map(|(&stride, &at)| stride as isize * at as isize).sum()
    }

    /// Elements from `coords` to the end of their row.
    pub(super) fn left_in_row(&self, coords: &Coords) -> usize {
        self.row() - coords[self.rank - 1]
    }

    /// Moves on by `n` elements of a row.
    pub(super) fn advance(&self, coords: &mut Coords, n: usize) {
        let mut axis = self.rank - 1;
        coords[axis] += n;
        while axis > 0 && coords[axis] == self.sizes[axis] {
            coords[axis] = 0;
            axis -= 1;
            coords[axis] += 1;
        }
    }

    /// Whether rows are so short that several are gone over together.
    pub(super) fn is_short(&self) -> bool {
        self.rank > 1 && self.row() < LONG
    }

    /// Elements that are taken together from `coords` on, of `most`: none past a long row's end.
    pub(super) fn together(&self, coords: &Coords, most: usize) -> usize {
        if self.is_short() { most } else { most.min(self.left_in_row(coords)) }
    }

    /// Elements between neighbours of the dimension around the innermost one, if there is one.
    pub(super) fn across(&self, operand: usize) -> Option<i64> {
        (self.rank > 1).then(|| self.strides[operand][self.rank - 2])
    }

    /// Whole rows from `coords` on within the dimension around the innermost one, of `most` elements.
    pub(super) fn whole_rows(&self, coords: &Coords, most: usize) -> usize {
        if self.rank < 2 || coords[self.rank - 1] != 0 {
            return 0;
        }
        (self.sizes[self.rank - 2] - coords[self.rank - 2]).min(most / self.row())
    }

    /// Moves on by rows that [`Nest::whole_rows`] has counted.
    pub(super) fn advance_rows(&self, coords: &mut Coords, rows: usize) {
        coords[self.rank - 2] += rows - 1;
        self.advance(coords, self.row());
    }
}
