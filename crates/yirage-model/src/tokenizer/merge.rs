//! Pair merging, the common core of BPE and SentencePiece-BPE: the best pair anywhere in the word is joined first,
//! the leftmost of equals; O(n log n) in the symbols of the word, so one long word cannot stall the process.
//!
//! Knows nothing of vocabularies: a rule says which neighbours join, how early, and into what.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

const END: u32 = u32::MAX;

/// A run of bytes of the word that is one token so far.
#[derive(Clone, Copy, Debug)]
pub(super) struct Symbol {
    /// Token id, or the rule's own mark for "no token yet".
    pub(super) id: u32,
    /// First byte within the word.
    pub(super) start: u32,
    /// Length in bytes; 0 once joined into its left neighbour.
    pub(super) len: u32,
    prev: u32,
    next: u32,
    alive: bool,
}

/// Joins two neighbours: `Some((priority, id))`, smaller priorities first.
pub(super) type MergeRule<'a> = dyn Fn(&Symbol, &Symbol) -> Option<(u32, u32)> + 'a;

#[derive(PartialEq, Eq, PartialOrd, Ord, Debug)]
struct MergeCandidate {
    priority: u32,
    left: u32,
    right: u32,
    left_len: u32,
    right_len: u32,
    id: u32,
}

/// Reusable buffers of the merge loop.
#[derive(Default, Debug)]
pub(super) struct Merger {
    symbols: Vec<Symbol>,
    queue: BinaryHeap<Reverse<MergeCandidate>>,
}

impl Merger {
    pub(super) fn clear(&mut self) {
        self.symbols.clear();
        self.queue.clear();
    }

    /// Appends a symbol of `len` bytes at the end of the word.
    pub(super) fn push(&mut self, id: u32, len: u32) {
        let index = self.symbols.len() as u32;
        let start = self.symbols.last().map_or(0, |s| s.start + s.len);
        if let Some(last) = self.symbols.last_mut() {
            last.next = index;
        }
        let prev = index.checked_sub(1).unwrap_or(END);
        self.symbols.push(Symbol { id, start, len, prev, next: END, alive: true });
    }

    /// Joins until no rule applies and visits what is left, in order.
    pub(super) fn run(&mut self, rule: &MergeRule<'_>, mut visit: impl FnMut(&Symbol)) {
        for left in 0..self.symbols.len().saturating_sub(1) {
            self.consider(left as u32, left as u32 + 1, rule);
        }
        while let Some(Reverse(best)) = self.queue.pop() {
            let (left, right) = (self.symbols[best.left as usize], self.symbols[best.right as usize]);
            let stale = !left.alive || !right.alive || left.len != best.left_len || right.len != best.right_len;
            if stale {
                continue;
            }
            self.symbols[best.right as usize].alive = false;
            let joined = &mut self.symbols[best.left as usize];
            (joined.id, joined.len, joined.next) = (best.id, left.len + right.len, right.next);
            if right.next != END {
                self.symbols[right.next as usize].prev = best.left;
            }
            self.consider(left.prev, best.left, rule);
            self.consider(best.left, right.next, rule);
        }
        self.symbols.iter().filter(|s| s.alive).for_each(&mut visit);
    }

    fn consider(&mut self, left: u32, right: u32, rule: &MergeRule<'_>) {
        if left == END || right == END {
            return;
        }
        let (l, r) = (&self.symbols[left as usize], &self.symbols[right as usize]);
        if let Some((priority, id)) = rule(l, r) {
            let (left_len, right_len) = (l.len, r.len);
            self.queue.push(Reverse(MergeCandidate { priority, left, right, left_len, right_len, id }));
        }
    }
}
