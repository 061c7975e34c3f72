//! What a model will take, predicted before anything of it is there.

use super::sizes::DeviceSizes;
use crate::block_positions::block_positions;
use crate::error::EngineError;
use crate::limits::READ_ALONG;
use crate::memory::LoadBytes;
use crate::options::EngineOptions;
use yirage_hal::Device;
use yirage_ir::ValueSource;
use yirage_model::arch::Model;
use yirage_plan::VerifiedPlan;

/// Bytes of a block's entry in its pool, with its places in the index, the list of free blocks and the order of eviction.
const BLOCK_ENTRY: u64 = 256;

/// Bytes that are kept of a token: its id in the request, the sequence and the events, and which tokens there were.
const TOKEN: u64 = 64;

/// Bytes that guessing keeps of a token besides.
const GUESSED_TOKEN: u64 = 64;

/// What a stage of a model takes on its device with these plans and so many blocks in each group's pool.
pub(super) fn predict(sizes: &DeviceSizes, model: &Model, plans: &[VerifiedPlan], blocks: &[u64]) -> LoadBytes {
    let block = |name: &str| sizes.blocks.get(name).copied().unwrap_or(0);
    let states = model.kv_cache_group.iter().map(|(name, group)| block(name).saturating_mul(blocks[*group]));
    LoadBytes {
        weights: sum(sizes.weights.values().copied()),
        cache: sum(states),
        // One bucket's step runs at a time, in memory that all of them share.
        arena: plans.iter().map(|p| p.arena).fold(0, u64::max),
        tables: slots(plans),
    }
}

/// Whether that fits beside what the device holds already.
///
/// # Errors
/// [`EngineError::WouldNotFit`].
pub(crate) fn check(bytes: &LoadBytes, device: &dyn Device) -> Result<(), EngineError> {
    let (info, used) = (device.info(), device.memory().used());
    // A device that does not know its memory refuses by itself what does not fit.
    let Some(free) = info.memory_bytes else { return Ok(()) };
    let available = free.saturating_sub(used);
    if bytes.total() <= available {
        return Ok(());
    }
    let limit = info.facts.iter().find(|(name, _)| *name == "memory_limit").map(|(_, why)| why.clone());
    Err(EngineError::WouldNotFit { bytes: *bytes, available, limit: limit.unwrap_or_else(|| "memory".into()) })
}

/// The inputs of steps.
fn slots(plans: &[VerifiedPlan]) -> u64 {
    let of_plan = |plan: &VerifiedPlan| {
        let inputs =
            plan.graph.inputs_of(ValueSource::StepInput).map(|id| plan.graph.ty(id).bytes(&plan.bucket) as u64);
        // The batch has them once and the executor once.
        sum(inputs).saturating_mul(2)
    };
    sum(plans.iter().map(of_plan))
}

/// Everything else whose size the options decide: what an engine keeps of blocks, tokens and rows.
pub(super) fn kept_bytes(model: &Model, blocks: &[u64], options: &EngineOptions) -> u64 {
    let token = TOKEN + if options.speculation.most > 0 { GUESSED_TOKEN } else { 0 };
    // As many tokens as the cache can hold are kept.
    let positions = blocks.iter().copied().fold(0, u64::max).saturating_mul(block_positions(model) as u64);
    let rows = u64::from(options.logit_rows.max(options.max_seqs));
    // Rows that are reported are copies.
    let logits = rows.saturating_mul(model.vocab_size.into()).saturating_mul(4);
    // Hidden states that an MTP head has not read: those of a step, and what stays of each sequence.
    let waiting = u64::from(options.chunk.max(options.max_seqs)) + u64::from(options.max_seqs) * READ_ALONG as u64;
    let hidden = waiting.saturating_mul(model.previous_hidden().unwrap_or(0).into()).saturating_mul(4);
    let entries = sum(blocks.iter().copied()).saturating_mul(BLOCK_ENTRY);
    sum([entries, positions.saturating_mul(token), logits, hidden].into_iter())
}

fn sum(parts: impl Iterator<Item = u64>) -> u64 {
    parts.fold(0, u64::saturating_add)
}
