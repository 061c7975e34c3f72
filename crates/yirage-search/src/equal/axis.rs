//! Some of the indices of a dimension, and how elements chosen so lie in a dense list.

use std::rc::Rc;

/// The indices of a dimension that are wanted, ascending.
#[derive(Clone, PartialEq, Debug)]
pub(super) struct IndexSet {
    size: usize,
    /// `None` is all of them.
    some: Option<Rc<[u32]>>,
}

impl IndexSet {
    pub(super) fn all(size: usize) -> IndexSet {
        IndexSet { size, some: None }
    }

    /// The indices in `at`, in any order and more than once.
    pub(super) fn of(size: usize, mut at: Vec<u32>) -> IndexSet {
        at.sort_unstable();
        at.dedup();
        let some = (at.len() < size).then(|| at.into());
        IndexSet { size, some }
    }

    /// How many are wanted.
    pub(super) fn len(&self) -> usize {
        self.some.as_ref().map_or(self.size, |at| at.len())
    }

    /// How many there are.
    pub(super) fn size(&self) -> usize {
        self.size
    }

    /// The index that is number `i` of the wanted ones.
    pub(super) fn at(&self, i: usize) -> usize {
        self.some.as_ref().map_or(i, |at| at[i] as usize)
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = usize> {
        (0..self.len()).map(|i| self.at(i))
    }

    /// The number that an index has among the wanted ones; it must be one of them.
    pub(super) fn position(&self, index: usize) -> usize {
        self.some.as_ref().map_or(index, |at| at.partition_point(|&have| (have as usize) < index))
    }

    pub(super) fn union(&self, other: &IndexSet) -> IndexSet {
        match (&self.some, &other.some) {
            (Some(a), Some(b)) if a == b => self.clone(),
            (Some(a), Some(b)) => IndexSet::of(self.size, a.iter().chain(b.iter()).copied().collect()),
            _ => IndexSet::all(self.size),
        }
    }
}

/// Elements of a value of which only these indices are wanted.
pub(super) fn count(axes: &[IndexSet]) -> usize {
    axes.iter().map(IndexSet::len).product()
}

/// For each dimension, elements between neighbours in the dense list of the wanted ones.
pub(super) fn strides(axes: &[IndexSet]) -> Vec<usize> {
    let mut strides = vec![1; axes.len()];
    for at in (1..axes.len()).rev() {
        strides[at - 1] = strides[at] * axes[at].len();
    }
    strides
}

/// The sums of one offset from each list, the last list running fastest: where the elements of a view lie.
pub(super) fn offsets(lists: &[Vec<usize>]) -> Vec<usize> {
    let mut sums = vec![0];
    for list in lists {
        sums = sums.iter().flat_map(|sum| list.iter().map(move |offset| sum + offset)).collect();
    }
    sums
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_are_the_inverse_of_indices() {
        let some = IndexSet::of(9, vec![7, 2, 2, 5]);
        assert_eq!(some.iter().collect::<Vec<_>>(), [2, 5, 7]);
        assert!((0..3).all(|i| some.position(some.at(i)) == i));
        assert_eq!(some.union(&IndexSet::of(9, vec![0, 5])), IndexSet::of(9, vec![0, 2, 5, 7]));
        assert_eq!(IndexSet::of(3, vec![2, 1, 0]), IndexSet::all(3));
        assert_eq!(offsets(&[vec![0, 10], vec![1, 2, 3]]), [1, 2, 3, 11, 12, 13]);
    }
}
