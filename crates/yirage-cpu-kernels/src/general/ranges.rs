//! Elements of a loop by ranges of their numbers.

use std::ops::Range;

/// A range of a loop's elements, and others of its length behind it: a part of each of some rows.
pub(super) struct Ranges {
    first: Range<usize>,
    count: usize,
    apart: usize,
}

impl Ranges {
    /// One range.
    pub(super) fn one(range: Range<usize>) -> Ranges {
        Ranges { first: range, count: 1, apart: 0 }
    }

    /// `count` ranges, each `apart` elements behind the one before.
    pub(super) fn rows(first: Range<usize>, count: usize, apart: usize) -> Ranges {
        Ranges { first, count, apart }
    }

    /// Whether there is no element.
    pub(super) fn is_empty(&self) -> bool {
        self.count == 0 || self.first.is_empty()
    }

    /// One past the last element, 0 where there is none; `usize::MAX` where that is no number.
    pub(super) fn end(&self) -> usize {
        if self.is_empty() { 0 } else { (self.count - 1).saturating_mul(self.apart).saturating_add(self.first.end) }
    }

    /// Each of them.
    pub(super) fn each(self) -> impl Iterator<Item = Range<usize>> {
        (0..self.count).map(move |i| self.first.start + i * self.apart..self.first.end + i * self.apart)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_end_is_that_of_what_there_is() {
        let rows = Ranges::rows(3..5, 3, 10);
        assert_eq!((rows.end(), rows.each().collect::<Vec<_>>()), (25, vec![3..5, 13..15, 23..25]));
        assert_eq!(Ranges::rows(3..5, 0, 10).end(), 0);
        assert_eq!(Ranges::one(7..7).end(), 0);
        assert_eq!(Ranges::rows(0..1, usize::MAX, 2).end(), usize::MAX);
    }
}
