//! Elements of a loop by ranges of their numbers.

use std::ops::Range;

/// A range of a loop's elements, and others of its length behind it: a part of each of some rows.
pub struct Ranges {
    first: Range<usize>,
    count: usize,
    apart: usize,
}

impl Ranges {
    /// One range.
    pub fn one(range: Range<usize>) -> Ranges {
        Ranges { first: range, count: 1, apart: 0 }
    }

    /// `count` ranges, each `apart` elements behind the one before.
    pub fn rows(first: Range<usize>, count: usize, apart: usize) -> Ranges {
        Ranges { first, count, apart }
    }

    /// Whether there is no element.
    pub fn is_empty(&self) -> bool {
        self.count == 0 || self.first.is_empty()
    }

    /// One past the last element, 0 where there is none; `usize::MAX` where that is no number.
    pub fn end(&self) -> usize {
        if self.is_empty() { 0 } else { (self.count - 1).saturating_mul(self.apart).saturating_add(self.first.end) }
    }

    /// Each of them.
    pub fn each(self) -> impl Iterator<Item = Range<usize>> {
        (0..self.count).map(move |i| self.first.start + i * self.apart..self.first.end + i * self.apart)
    }
}
