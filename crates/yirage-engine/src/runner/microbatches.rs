//! A batch in parts that go through the stages of a model one behind the other (GPipe, arXiv 1811.06965).
//!
//! Only tokens whose logits nobody wants are in other parts than the last, so that all wanted rows are computed together, in
//! their order. The output does not depend on the parts, as it does not depend on chunks: a part's tokens come behind all
//! earlier ones of their sequence.

use crate::scheduler::{Batch, BatchEntry};
use std::borrow::Cow;
use std::ops::Range;

/// Parts for each stage: with more, stages wait less for the first and the last part, and each part reads all weights.
const PARTS_OF_A_STAGE: usize = 2;
/// Tokens of a part for which reading the weights costs little beside computing.
const LEAST_TOKENS: usize = 64;

/// The parts of a batch for so many stages, in order; the batch itself where it is not worth a cut.
pub(super) fn microbatches(batch: &Batch, stages: usize) -> Vec<Cow<'_, Batch>> {
    let tokens = batch.tokens();
    let count = (tokens / LEAST_TOKENS).min(stages * PARTS_OF_A_STAGE).max(1);
    let size = tokens.div_ceil(count).max(1);
    let free: usize = batch.entries.iter().map(before_rows).sum();
    // The last part has what is left, one token at least.
    let before = (free / size).min(tokens.saturating_sub(1) / size).min(count - 1);
    if before == 0 {
        return vec![Cow::Borrowed(batch)];
    }
    let mut parts = vec![Batch { step: batch.step, entries: Vec::new() }; before];
    let (mut taken, mut last) = (0, Vec::with_capacity(batch.entries.len()));
    for entry in &batch.entries {
        let (mut at, free) = (0, before_rows(entry));
        while at < free && taken < before * size {
            let end = free.min(at + size - taken % size);
            parts[taken / size].entries.push(tokens_of(entry, at..end));
            (taken, at) = (taken + end - at, end);
        }
        if at < entry.tokens.len() {
            last.push(tokens_of(entry, at..entry.tokens.len()));
        }
    }
    parts.push(Batch { step: batch.step, entries: last });
    parts.into_iter().map(Cow::Owned).collect()
}

/// Tokens of an entry before the first whose logits are wanted.
fn before_rows(entry: &BatchEntry) -> usize {
    entry.rows.first().map_or(entry.tokens.len(), |&row| row as usize)
}

/// Some tokens of an entry.
fn tokens_of(entry: &BatchEntry, range: Range<usize>) -> BatchEntry {
    let is_end = range.end == entry.tokens.len();
    let first = range.start as u32;
    BatchEntry {
        seq: entry.seq,
        phase: entry.phase,
        tokens: entry.tokens[range.clone()].to_vec(),
        drafts: if is_end { entry.drafts } else { 0 },
        start: entry.start + first,
        slots: entry.slots.iter().map(|slots| slots[range.clone()].to_vec()).collect(),
        tables: entry.tables.clone(),
        rows: entry.rows.iter().filter(|&&row| range.contains(&(row as usize))).map(|row| row - first).collect(),
        sample: entry.sample && is_end,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scheduler::{Phase, SeqId};

    fn entry(seq: u64, tokens: u32, rows: &[u32]) -> BatchEntry {
        BatchEntry {
            seq: SeqId(seq),
            phase: if tokens > 1 { Phase::Prefill } else { Phase::Decode },
            tokens: (0..tokens).collect(),
            drafts: 0,
            start: 10,
            slots: vec![(100..100 + tokens).collect()],
            tables: vec![vec![seq as i32]],
            rows: rows.to_vec(),
            sample: !rows.is_empty(),
        }
    }

    /// Tokens of each sequence in the order of parts, and rows in the last alone.
    fn check(entries: Vec<BatchEntry>, stages: usize) -> Vec<usize> {
        let batch = Batch { step: 7, entries };
        let parts = microbatches(&batch, stages);
        for entry in &batch.entries {
            let (mut tokens, mut slots) = (Vec::new(), Vec::new());
            for part in parts.iter().flat_map(|part| &part.entries).filter(|part| part.seq == entry.seq) {
                assert_eq!(part.start as usize, 10 + tokens.len());
                tokens.extend_from_slice(&part.tokens);
                slots.extend_from_slice(&part.slots[0]);
            }
            assert_eq!((&tokens, &slots), (&entry.tokens, &entry.slots[0]));
        }
        let wanted = |batch: &Batch| -> Vec<(SeqId, u32, bool)> {
            let of = |e: &BatchEntry| e.rows.iter().map(|&row| (e.seq, e.start + row, e.sample)).collect::<Vec<_>>();
            batch.entries.iter().flat_map(of).collect()
        };
        let (last, others) = parts.split_last().unwrap();
        assert_eq!(wanted(last), wanted(&batch));
        assert!(others.iter().all(|part| part.rows() == 0 && part.step == 7));
        parts.iter().map(|part| part.tokens()).collect()
    }

    #[test]
    fn a_prompt_goes_in_equal_parts() {
        assert_eq!(check(vec![entry(1, 512, &[511])], 2), [128; 4]);
        assert_eq!(check(vec![entry(1, 512, &[])], 3), [86, 86, 86, 86, 86, 82]);
        assert_eq!(check(vec![entry(1, 127, &[126])], 2), [127]);
    }

    #[test]
    fn what_is_wanted_is_computed_together_at_the_end() {
        let decodes = (0..5).map(|seq| entry(seq, 1, &[0]));
        let prompts = [entry(10, 100, &[99]), entry(11, 200, &[])];
        assert_eq!(check(decodes.chain(prompts).collect(), 2), [77, 77, 77, 74]);
        // All positions of a prompt are wanted.
        assert_eq!(check(vec![entry(1, 256, &(0..256).collect::<Vec<_>>())], 2), [256]);
        assert_eq!(check(vec![entry(1, 256, &(128..256).collect::<Vec<_>>())], 2), [64, 64, 128]);
    }

    #[test]
    fn small_steps_are_not_cut() {
        assert_eq!(check((0..16).map(|seq| entry(seq, 1, &[0])).collect(), 4), [16]);
        assert_eq!(microbatches(&Batch::default(), 2).len(), 1);
    }
}
