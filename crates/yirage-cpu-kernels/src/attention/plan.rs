//! Who computes what: a batch cut into items of bounded, balanced work. A pure function of positions, sequences and
//! block tables; the cut never changes a result.

use super::{AttentionError, AttentionShape, BLOCK, MAX_ROWS, SPLIT};
use std::ops::Range;

/// Which positions a token sees of its sequence.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mask {
    /// Whether positions after the token's own are hidden.
    pub causal: bool,
    /// Positions before it that are seen, itself included, and as many behind it where those are not hidden; 0 is all.
    pub window: usize,
}

/// Rows worked on together: some tokens of one sequence x some query heads of some key heads.
#[derive(Clone, Debug)]
pub(super) struct AttentionTile {
    pub(super) seq: usize,
    pub(super) tokens: Range<usize>,
    pub(super) kv_heads: Range<usize>,
    /// Query heads within each key head's group.
    pub(super) group: Range<usize>,
    /// Positions that any row sees.
    pub(super) visible: Range<usize>,
    /// First float of its partial results, if its splits are separate items.
    pub(super) parts: Option<usize>,
}

impl AttentionTile {
    pub(super) fn rows(&self) -> usize {
        self.tokens.len() * self.kv_heads.len() * self.group.len()
    }
    pub(super) fn splits(&self) -> Range<usize> {
        self.visible.start / SPLIT..self.visible.end.div_ceil(SPLIT)
    }
    /// Work in positions x rows.
    fn cost(&self, splits: &Range<usize>) -> u64 {
        let from = (splits.start * SPLIT).max(self.visible.start) / BLOCK * BLOCK;
        let to = (splits.end * SPLIT).min(self.visible.end).next_multiple_of(BLOCK);
        // A row's own overhead counts like some positions.
        ((to - from + 32) * self.rows()) as u64
    }
}

/// A piece of work for one thread.
#[derive(Clone, Debug)]
pub(super) struct AttentionWorkItem {
    pub(super) unit: usize,
    pub(super) splits: Range<usize>,
    /// Work before its middle.
    middle: u64,
}

/// Rows of a unit whose partial results are to be joined.
#[derive(Clone, Debug)]
pub(super) struct AttentionMerge {
    pub(super) unit: usize,
    pub(super) rows: Range<usize>,
}

/// The cut of one batch. Reuse it ([`AttentionPlan::cached`], [`AttentionPlan::dense`] clear it first) to keep its memory.
#[derive(Clone, Debug, Default)]
pub struct AttentionPlan {
    pub(super) units: Vec<AttentionTile>,
    pub(super) items: Vec<AttentionWorkItem>,
    pub(super) joins: Vec<AttentionMerge>,
    /// Positions that each token sees.
    pub(super) visible: Vec<Range<u32>>,
    pub(super) tables: Vec<i32>,
    pub(super) max_blocks: usize,
    slots: Vec<i32>,
    blocks: usize,
    parts: usize,
    /// Work of all items.
    work: u64,
}

impl AttentionPlan {
    /// Cuts a batch over a cache of `blocks` blocks: token t is at `positions[t]` of sequence `seqs[t]`, whose blocks are
    /// row `seqs[t]` of `tables` (`max_blocks` a row; -1 only where no token of the batch looks). Tokens of one
    /// sequence should be neighbours. `parts` bounds [`AttentionPlan::parts_floats`].
    ///
    /// # Errors
    /// Every [`AttentionError`] but `Slot` and `Gap`: what is accepted here cannot make [`super::run_item`] read outside
    /// the cache.
    #[allow(clippy::too_many_arguments)]
    pub fn cached(
        &mut self,
        shape: &AttentionShape,
        mask: Mask,
        positions: &[i32],
        seqs: &[i32],
        tables: &[i32],
        max_blocks: usize,
        blocks: usize,
        workers: usize,
        parts: usize,
    ) -> Result<(), AttentionError> {
        self.clear();
        shape.check()?;
        same_length(positions, seqs)?;
        let count = tables.len().checked_div(max_blocks).unwrap_or(0);
        let limit = max_blocks * BLOCK;
        for (token, (&pos, &seq)) in positions.iter().zip(seqs).enumerate() {
            if usize::try_from(seq).map_or(true, |s| s >= count) {
                return Err(AttentionError::Seq { token, seq, seqs: count });
            }
            let at = usize::try_from(pos).ok().filter(|&p| p < limit);
            let at = at.ok_or(AttentionError::Position { token, pos, limit })?;
            self.visible.push(first_visible(at, mask.window) as u32..at as u32 + 1);
        }
        self.tables.extend_from_slice(tables);
        (self.max_blocks, self.blocks) = (max_blocks, blocks);
        let seq_of = |t: usize| seqs[t] as usize;
        self.cut(shape, &seq_of, workers, parts);
        self.check_blocks()
    }

    /// Cuts a batch whose keys and values come with it. They are first written to a temporary [`super::KvCacheView`] of
    /// [`AttentionPlan::blocks`] blocks at [`AttentionPlan::slots`]; then everything goes as with a cache. The tokens of a sequence must
    /// come in order of consecutive positions (other sequences may lie between).
    ///
    /// # Errors
    /// [`AttentionError::Shape`], [`AttentionError::Length`], [`AttentionError::Gap`].
    pub fn dense(
        &mut self,
        shape: &AttentionShape,
        mask: Mask,
        positions: &[i32],
        seqs: &[i32],
        workers: usize,
        parts: usize,
    ) -> Result<(), AttentionError> {
        self.clear();
        shape.check()?;
        same_length(positions, seqs)?;
        // Sequences in order of appearance: (name, first position, tokens so far).
        let mut found: Vec<(i32, i32, usize)> = Vec::new();
        let mut index = Vec::with_capacity(seqs.len());
        for (&pos, &seq) in positions.iter().zip(seqs) {
            let known = index.last().copied().filter(|&i: &usize| found[i].0 == seq);
            let i = known.or_else(|| found.iter().position(|f| f.0 == seq)).unwrap_or(found.len());
            if i == found.len() {
                found.push((seq, pos, 0));
            }
            let entry = &mut found[i];
            let wanted = entry.1.wrapping_add(entry.2 as i32);
            if pos != wanted {
                return Err(AttentionError::Gap { seq, pos, wanted });
            }
            self.visible.push(entry.2 as u32..0);
            entry.2 += 1;
            index.push(i);
        }
        self.max_blocks = found.iter().map(|f| f.2.div_ceil(BLOCK)).max().unwrap_or(0);
        let mut firsts = Vec::with_capacity(found.len());
        for f in &found {
            firsts.push(self.blocks * BLOCK);
            let used = f.2.div_ceil(BLOCK);
            let blocks = self.blocks;
            self.tables.extend((0..self.max_blocks).map(|b| if b < used { (blocks + b) as i32 } else { -1 }));
            self.blocks += used;
        }
        for (seen, &i) in self.visible.iter_mut().zip(&index) {
            let at = seen.start as usize;
            self.slots.push((firsts[i] + at) as i32);
            let to = match mask.window {
                _ if mask.causal => at + 1,
                0 => found[i].2,
                window => at.saturating_add(window).min(found[i].2),
            };
            *seen = first_visible(at, mask.window) as u32..to as u32;
        }
        let seq_of = |t: usize| index[t];
        self.cut(shape, &seq_of, workers, parts);
        Ok(())
    }

    /// Pieces of work for [`super::run_item`].
    pub fn items(&self) -> usize {
        self.items.len()
    }

    /// Pieces of work for [`super::combine`], after all items.
    pub fn joins(&self) -> usize {
        self.joins.len()
    }

    /// The items of one of `count` workers: consecutive (memory is read in order) and of about equal work.
    pub fn worker_items(&self, worker: usize, count: usize) -> Range<usize> {
        let total = u128::from(self.work);
        // An item belongs to the worker in whose share of the work its middle lies.
        let edge = |w: usize| match w {
            0 => 0,
            w if w >= count => self.items.len(),
            w => self.items.partition_point(|i| u128::from(i.middle) * (count as u128) < total * w as u128),
        };
        edge(worker)..edge(worker + 1)
    }

    /// Floats of partial results that the items write.
    pub fn parts_floats(&self) -> usize {
        self.parts
    }

    /// Where [`AttentionPlan::dense`] wants the keys and values of each token.
    pub fn slots(&self) -> &[i32] {
        &self.slots
    }

    /// Blocks of the cache (the temporary one for [`AttentionPlan::dense`]).
    pub fn blocks(&self) -> usize {
        self.blocks
    }
}

/// First position a token sees.
fn first_visible(at: usize, window: usize) -> usize {
    if window == 0 { 0 } else { (at + 1).saturating_sub(window) }
}

fn same_length(positions: &[i32], seqs: &[i32]) -> Result<(), AttentionError> {
    if positions.len() == seqs.len() {
        return Ok(());
    }
    Err(AttentionError::Length { what: "seqs", got: seqs.len(), wanted: positions.len() })
}

impl AttentionPlan {
    fn clear(&mut self) {
        self.units.clear();
        self.items.clear();
        self.joins.clear();
        self.visible.clear();
        self.tables.clear();
        self.slots.clear();
        (self.max_blocks, self.blocks, self.parts, self.work) = (0, 0, 0, 0);
    }

    /// Runs of tokens to units, units to items.
    fn cut(&mut self, shape: &AttentionShape, seq_of: &dyn Fn(usize) -> usize, workers: usize, parts: usize) {
        let wanted = 4 * workers.max(1);
        let mut heads = shape.kv_heads;
        loop {
            self.units.clear();
            self.cut_units(shape, seq_of, heads);
            let pieces: usize = self.units.iter().map(|u| u.splits().len()).sum();
            if heads == 1 || pieces >= wanted || workers <= 1 {
                break;
            }
            heads = heads.div_ceil(2);
        }
        self.cut_items(shape, wanted, workers, parts);
    }

    /// Units of at most `heads` key heads and [`MAX_ROWS`] rows (a single token's group may be cut too).
    fn cut_units(&mut self, shape: &AttentionShape, seq_of: &dyn Fn(usize) -> usize, heads: usize) {
        let group = shape.group();
        let mut start = 0;
        while start < self.visible.len() {
            let seq = seq_of(start);
            let run = (start..self.visible.len()).take_while(|&t| seq_of(t) == seq).count();
            let tokens = start..start + run.min((MAX_ROWS / group).max(1));
            let some = (MAX_ROWS / (tokens.len() * group)).clamp(1, heads);
            let from = tokens.clone().map(|t| self.visible[t].start).min().unwrap_or(0) as usize;
            let to = tokens.clone().map(|t| self.visible[t].end).max().unwrap_or(0) as usize;
            for h in (0..shape.kv_heads).step_by(some) {
                for g in (0..group).step_by(MAX_ROWS) {
                    self.units.push(AttentionTile {
                        seq,
                        tokens: tokens.clone(),
                        kv_heads: h..(h + some).min(shape.kv_heads),
                        group: g..(g + MAX_ROWS).min(group),
                        visible: from..to,
                        parts: None,
                    });
                }
            }
            start = tokens.end;
        }
    }

    /// Units too large for one thread give one item a split, as far as `parts` floats reach.
    fn cut_items(&mut self, shape: &AttentionShape, wanted: usize, workers: usize, parts: usize) {
        let total: u64 = self.units.iter().map(|u| u.cost(&u.splits())).sum();
        for (index, unit) in self.units.iter_mut().enumerate() {
            let splits = unit.splits();
            let need = splits.len() * unit.rows() * shape.part_row();
            let large = unit.cost(&splits) > total / wanted as u64;
            let separate = workers > 1 && large && splits.len() > 1 && self.parts + need <= parts;
            let step = if separate { 1 } else { splits.len().max(1) };
            for first in splits.clone().step_by(step) {
                let piece = first..first + step;
                let cost = unit.cost(&piece);
                self.items.push(AttentionWorkItem { unit: index, splits: piece, middle: self.work + cost / 2 });
                self.work += cost;
            }
            if separate {
                unit.parts = Some(self.parts);
                self.parts += need;
                let rows = unit.rows();
                let joins = (0..rows).step_by(8).map(|r| AttentionMerge { unit: index, rows: r..(r + 8).min(rows) });
                self.joins.extend(joins);
            }
        }
    }

    /// Every block that an item reads exists.
    fn check_blocks(&self) -> Result<(), AttentionError> {
        for unit in &self.units {
            for index in unit.visible.start / BLOCK..unit.visible.end.div_ceil(BLOCK) {
                let block = self.tables[unit.seq * self.max_blocks + index];
                if usize::try_from(block).map_or(true, |b| b >= self.blocks) {
                    return Err(AttentionError::Block { seq: unit.seq, index, block, blocks: self.blocks });
                }
            }
        }
        Ok(())
    }
}
