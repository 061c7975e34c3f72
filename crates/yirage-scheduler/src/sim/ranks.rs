//! Who comes before whom, watched from step to step.

use super::super::rank::Rank;
use super::super::sequence::Sequence;
use super::super::{Batch, Phase, Scheduler, SeqId};
use std::collections::BTreeSet;

/// What was seen after the last step was planned.
#[derive(Default)]
pub(super) struct Ranks {
    /// The first of those who ran.
    first: Option<(SeqId, Rank)>,
    running: BTreeSet<SeqId>,
    /// Sequences that had a turn.
    turns: u64,
}

impl Ranks {
    /// Checks a planned step against what must hold, and remembers it; whether somebody more urgent became the first.
    pub(super) fn check(&mut self, sched: &Scheduler, batch: &Batch) -> Result<bool, String> {
        if !sched.running.is_sorted_by(|a, b| a.rank < b.rank) {
            return Err("those who run do not stand by rank".to_owned());
        }
        let outranked = self.check_first(sched, batch)?;
        self.check_preempted(sched)?;
        self.check_turns(sched)?;
        self.first = sched.running.first().map(|seq| (seq.id, seq.rank));
        self.running = sched.running.iter().map(|seq| seq.id).collect();
        self.turns = sched.turns;
        Ok(outranked)
    }

    /// The first runs, and stays it until it ends or somebody more urgent comes.
    fn check_first(&self, sched: &Scheduler, batch: &Batch) -> Result<bool, String> {
        let Some(first) = sched.running.first() else {
            return if sched.is_idle() { Ok(false) } else { Err("some wait and nobody runs".to_owned()) };
        };
        if !batch.entries.iter().any(|entry| entry.seq == first.id && !entry.tokens.is_empty()) {
            return Err(format!("the first sequence {} does not run", first.id));
        }
        let Some((was, rank)) = self.first.filter(|(was, _)| sched.phase(*was).is_some()) else { return Ok(false) };
        if was != first.id && first.rank.priority >= rank.priority {
            return Err(format!("sequence {was} was the first and {} is, which is not more urgent", first.id));
        }
        Ok(was != first.id)
    }

    /// Whoever lost its blocks in this step stands behind all who run.
    fn check_preempted(&self, sched: &Scheduler) -> Result<(), String> {
        let last = sched.running.last().map(|seq| seq.rank);
        let before_last = |seq: &&Sequence| self.running.contains(&seq.id) && last.is_some_and(|last| seq.rank < last);
        match preempted(sched).find(before_last) {
            Some(seq) => Err(format!("sequence {} was preempted before others behind it", seq.id)),
            None => Ok(()),
        }
    }

    /// Whoever had its first turn in this step has left nobody waiting who is more urgent, or as urgent and had a turn.
    fn check_turns(&self, sched: &Scheduler) -> Result<(), String> {
        let new = sched.running.iter().filter(|seq| seq.rank.turn.is_some_and(|turn| turn >= self.turns));
        for seq in new {
            let urgent = |other: &&Sequence| other.rank.priority < seq.rank.priority;
            let resumes = |other: &&Sequence| other.rank.priority == seq.rank.priority;
            // Not those that came and went within this step.
            let early = |other: &&Sequence| other.rank.turn.is_some_and(|turn| turn < self.turns);
            let mut waited = preempted(sched).filter(early).filter(|other| !self.running.contains(&other.id));
            let overtaken = sched.waiting.iter().filter(|other| other.rank.turn.is_none()).find(urgent);
            if let Some(other) = overtaken.or_else(|| waited.find(|other| urgent(other) || resumes(other))) {
                return Err(format!("sequence {} had its turn before {}", seq.id, other.id));
            }
        }
        Ok(())
    }
}

fn preempted(sched: &Scheduler) -> impl Iterator<Item = &Sequence> {
    sched.waiting.iter().filter(|seq| seq.phase == Phase::Preempted)
}
