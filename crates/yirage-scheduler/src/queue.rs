//! Who waits, and who of them is next.
//!
//! It deliberately knows no blocks and no budgets: whether the next one can be admitted is decided elsewhere.

use super::seq_id::SeqId;
use super::sequence::Sequence;
use super::shares::Shares;
use std::collections::{BTreeMap, VecDeque};

/// The sequences that hold nothing.
#[derive(Clone, Debug, Default)]
pub(super) struct SequenceQueue {
    /// Those that lost their blocks, by rank.
    preempted: VecDeque<Sequence>,
    /// Those that had no turn yet by priority and key, each in order of arrival. No list is empty.
    new: BTreeMap<(i32, u64), VecDeque<Sequence>>,
}

impl SequenceQueue {
    /// Puts a sequence to its place.
    pub(super) fn put(&mut self, seq: Sequence) {
        if seq.rank.turn.is_some() {
            let at = self.preempted.partition_point(|other| other.rank < seq.rank);
            self.preempted.insert(at, seq);
            return;
        }
        let list = self.new.entry((seq.rank.priority, seq.key)).or_default();
        let at = list.partition_point(|other| other.id < seq.id);
        list.insert(at, seq);
    }

    /// The priority of the one that is next.
    pub(super) fn priority(&self) -> Option<i32> {
        let preempted = self.preempted.front().map(|seq| seq.rank.priority);
        let new = self.new.keys().next().map(|&(priority, _)| priority);
        preempted.into_iter().chain(new).min()
    }

    /// Takes the next one: of the most urgent priority those that were preempted, then the oldest of the key that was
    /// served least.
    pub(super) fn pop(&mut self, shares: &Shares) -> Option<Sequence> {
        let priority = self.priority()?;
        if self.preempted.front().is_some_and(|seq| seq.rank.priority == priority) {
            return self.preempted.pop_front();
        }
        let lists = self.new.range((priority, 0)..=(priority, u64::MAX));
        let order = |key: u64, list: &VecDeque<Sequence>| (shares.served(key), list.front().map(|seq| seq.id));
        let next = lists.min_by_key(|((_, key), list)| order(*key, list)).map(|(&place, _)| place)?;
        let list = self.new.get_mut(&next)?;
        let seq = list.pop_front();
        if list.is_empty() {
            self.new.remove(&next);
        }
        seq
    }

    /// Takes the one with this number out.
    pub(super) fn remove(&mut self, seq: SeqId) -> Option<Sequence> {
        if let Some(at) = self.preempted.iter().position(|other| other.id == seq) {
            return self.preempted.remove(at);
        }
        let find = |list: &VecDeque<Sequence>| list.binary_search_by_key(&seq, |other| other.id).ok();
        let (place, at) = self.new.iter().find_map(|(&place, list)| Some((place, find(list)?)))?;
        let list = self.new.get_mut(&place)?;
        let removed = list.remove(at);
        if list.is_empty() {
            self.new.remove(&place);
        }
        removed
    }

    /// Those that had no turn yet.
    pub(super) fn without_turn(&self) -> usize {
        self.new.values().map(VecDeque::len).sum()
    }

    pub(super) fn len(&self) -> usize {
        self.preempted.len() + self.without_turn()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.preempted.is_empty() && self.new.is_empty()
    }

    /// All of them, in no order that means anything.
    pub(super) fn iter(&self) -> impl Iterator<Item = &Sequence> {
        self.preempted.iter().chain(self.new.values().flatten())
    }
}
