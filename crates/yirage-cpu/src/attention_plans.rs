//! The cuts of a step's batch: how attention is shared among the workers, one cut for each distinct kind of layer, made
//! once a step.

use yirage_cpu_kernels::attention::{AttentionPlan, AttentionShape, Mask};
use yirage_hal::HalError;
use yirage_ir::{Dim, Dims};

/// A program's cuts.
#[derive(Default)]
pub(crate) struct AttentionPlans {
    entries: Vec<(AttentionPlanKey, AttentionPlan)>,
}

/// A kind of layer: what its cut depends on beside the step.
#[derive(Clone, PartialEq)]
pub(crate) struct AttentionPlanKey {
    pub(crate) shape: AttentionShape,
    pub(crate) mask: Mask,
    /// Slot of the positions.
    pub(crate) positions: usize,
    /// Slot of the sequences.
    pub(crate) seqs: usize,
    /// The block table, or none without a cache.
    pub(crate) table: Option<TableInput>,
    /// Blocks of the cache.
    pub(crate) blocks: usize,
    /// Most floats of partial results.
    pub(crate) parts: usize,
}

/// A block table.
#[derive(Clone, Copy, PartialEq)]
pub(crate) struct TableInput {
    pub(crate) input: usize,
    /// Blocks of a row.
    pub(crate) width: Dim,
}

/// Which of a program's cuts.
#[derive(Clone, Copy)]
pub(crate) struct AttentionPlanId(usize);

impl AttentionPlans {
    /// The cut of a kind of layer.
    pub(crate) fn add(&mut self, kind: AttentionPlanKey) -> AttentionPlanId {
        let found = self.entries.iter().position(|(k, _)| *k == kind);
        AttentionPlanId(found.unwrap_or_else(|| {
            self.entries.push((kind, AttentionPlan::default()));
            self.entries.len() - 1
        }))
    }

    /// Cuts the batch of a step.
    ///
    /// # Errors
    /// Positions, sequences or tables that do not fit together or the cache.
    pub(crate) fn prepare(&mut self, dims: &Dims, slots: &[&[u8]], workers: usize) -> Result<(), HalError> {
        for (kind, plan) in &mut self.entries {
            let ints = |slot: usize| ints(slots[slot]);
            let (positions, seqs) = (ints(kind.positions)?, ints(kind.seqs)?);
            let made = match kind.table {
                Some(table) => {
                    let (table, width) = (ints(table.input)?, table.width.get(dims));
                    let (shape, mask, blocks, parts) = (&kind.shape, kind.mask, kind.blocks, kind.parts);
                    plan.cached(shape, mask, positions, seqs, table, width, blocks, workers, parts)
                }
                None => plan.dense(&kind.shape, kind.mask, positions, seqs, workers, kind.parts),
            };
            made.map_err(|e| HalError::Step(e.to_string()))?;
            if plan.blocks() > kind.blocks {
                let (wanted, blocks) = (plan.blocks(), kind.blocks);
                return Err(HalError::Step(format!("attention needs {wanted} blocks, its cache has {blocks}")));
            }
        }
        Ok(())
    }

    /// A cut of this step's batch.
    pub(crate) fn get(&self, id: AttentionPlanId) -> &AttentionPlan {
        &self.entries[id.0].1
    }
}

/// The integers of a slot that a kernel has bound as such.
fn ints(slot: &[u8]) -> Result<&[i32], HalError> {
    bytemuck::try_cast_slice(slot).map_err(|e| HalError::Step(format!("a step input of integers: {e}")))
}
