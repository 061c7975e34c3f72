//! How long a context is that nobody asked for: as memory allows.

use super::cache::cache_group;
use super::sizes::DeviceSizes;
use crate::error::EngineError;
use crate::limits::MAX_CONTEXT;
use crate::options::{CacheSize, EngineOptions};
use yirage_hal::Device;
use yirage_model::arch::Model;
use yirage_plan::WeightPlan;

/// Positions by which a context is chosen.
const STEP: u32 = 256;

/// The longest context from `least` to `most` whose cache for one sequence takes at most `within` bytes, and leaves as much room
/// beside the weights as the cache of all sequences and the same again; `least` where none does.
///
/// # Errors
/// What the device says of sizes.
pub(super) fn longest(
    (model, weights): (&Model, &WeightPlan),
    (least, most): (u32, u32),
    within: u64,
    device: &dyn Device,
    options: &EngineOptions,
) -> Result<u32, EngineError> {
    let sizes = DeviceSizes::new(device, model, weights)?;
    let block_bytes = sizes.group_blocks(model);
    let (info, held) = (device.info(), device.memory());
    let taken = sizes.weights.values().copied().fold(held.used(), u64::saturating_add);
    let seqs = if let CacheSize::Sequences(seqs) = options.cache { seqs.max(1) } else { 1 };
    let share = |free: u64| free.saturating_sub(taken) / 2 / u64::from(seqs);
    let room = info.memory_bytes.map_or(u64::MAX, share);
    let bytes = |context: u32| {
        let group = |(g, each): (usize, &u64)| {
            let blocks =
                cache_group(model, g).peak_blocks(context as usize, options.chunk as usize, sizes.positions) as u64;
            blocks.saturating_mul(*each)
        };
        block_bytes.iter().enumerate().map(group).fold(0, u64::saturating_add)
    };
    let most = most.min(MAX_CONTEXT);
    if bytes(most) <= within.min(room) {
        return Ok(most.max(least));
    }
    // More positions never take less, so the last step that fits is found by halves.
    let (mut fits, mut exceeds) = (least / STEP, most.div_ceil(STEP));
    while exceeds.saturating_sub(fits) > 1 {
        let middle = fits.midpoint(exceeds);
        match bytes(middle.saturating_mul(STEP)) <= within.min(room) {
            true => fits = middle,
            false => exceeds = middle,
        }
    }
    Ok(fits.saturating_mul(STEP).max(least))
}
