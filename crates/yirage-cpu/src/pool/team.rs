//! Which workers take part in a run.

/// Workers, ascending, the caller (worker 0) always among them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Team(Vec<usize>);

impl Team {
    /// Workers 0 to `count` - 1.
    pub(crate) fn all(count: usize) -> Team {
        Team((0..count.max(1)).collect())
    }

    /// This team without these workers; the caller stays.
    pub(crate) fn without(&self, left_out: &[usize]) -> Team {
        Team(self.0.iter().copied().filter(|w| *w == 0 || !left_out.contains(w)).collect())
    }

    /// The workers; the position of one is its rank.
    pub(crate) fn members(&self) -> &[usize] {
        &self.0
    }

    /// How many there are.
    pub(crate) fn len(&self) -> usize {
        self.0.len()
    }
}

#[cfg(test)]
mod tests {
    use super::Team;

    #[test]
    fn the_caller_cannot_be_left_out() {
        let all = Team::all(4);
        assert_eq!((all.members(), all.len()), (&[0, 1, 2, 3][..], 4));
        assert_eq!(all.without(&[0, 2]).members(), [0, 1, 3]);
        assert_eq!(all.without(&[0, 1, 2, 3, 9]).members(), [0]);
        assert_eq!(all.without(&[]), all);
        assert_eq!(Team::all(0).members(), [0]);
    }
}
