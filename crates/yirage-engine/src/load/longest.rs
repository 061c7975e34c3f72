//! How long a context is that nobody asked for: as memory allows.

use super::cache::cache_group;
use super::sizes::DeviceSizes;
use super::stage::{BuiltStage, stage_devices};
use crate::error::EngineError;
use crate::limits::MAX_CONTEXT;
use crate::options::{CacheSize, EngineOptions};
use yirage_hal::Device;
use yirage_model::arch::Model;

/// Positions by which a context is chosen.
const STEP: u32 = 256;

/// What a stage's device has room for.
struct StageRoom {
    /// Bytes of a block of each cache group.
    blocks: Vec<u64>,
    /// Bytes for the cache of one sequence.
    room: u64,
}

/// The longest context from `least` to `most` whose cache for one sequence takes at most `within` bytes, and leaves as much room
/// beside the weights as the cache of all sequences and the same again, on each stage's device; `least` where none does.
///
/// # Errors
/// What the devices say of sizes.
pub(super) fn longest(
    (model, stages): (&Model, &[BuiltStage]),
    (least, most): (u32, u32),
    within: u64,
    device: &dyn Device,
    options: &EngineOptions,
) -> Result<u32, EngineError> {
    let seqs = if let CacheSize::Sequences(seqs) = options.cache { seqs.max(1) } else { 1 };
    let room = |(stage, device): (&BuiltStage, &dyn Device)| {
        let sizes = DeviceSizes::new(device, &stage.model, &stage.weights)?;
        let (info, held) = (device.info(), device.memory());
        let taken = sizes.weights.values().copied().fold(held.used(), u64::saturating_add);
        let share = |free: u64| free.saturating_sub(taken) / 2 / u64::from(seqs);
        let room = info.memory_bytes.map_or(u64::MAX, share);
        Ok::<_, EngineError>((sizes.positions, StageRoom { blocks: sizes.group_blocks(&stage.model), room }))
    };
    let rooms = stages.iter().zip(stage_devices(device)).map(room).collect::<Result<Vec<_>, _>>()?;
    let holds = |context: u32| {
        let bytes = |(positions, stage): &(usize, StageRoom)| {
            let group = |(g, each): (usize, &u64)| {
                let blocks =
                    cache_group(model, g).peak_blocks(context as usize, options.chunk as usize, *positions) as u64;
                blocks.saturating_mul(*each)
            };
            stage.blocks.iter().enumerate().map(group).fold(0, u64::saturating_add)
        };
        let has_room = rooms.iter().all(|stage| bytes(stage) <= stage.1.room);
        has_room && rooms.iter().map(bytes).fold(0, u64::saturating_add) <= within
    };
    let most = most.min(MAX_CONTEXT);
    if holds(most) {
        return Ok(most.max(least));
    }
    // More positions never take less, so the last step that fits is found by halves.
    let (mut fits, mut exceeds) = (least / STEP, most.div_ceil(STEP));
    while exceeds.saturating_sub(fits) > 1 {
        let middle = fits.midpoint(exceeds);
        match holds(middle.saturating_mul(STEP)) {
            true => fits = middle,
            false => exceeds = middle,
        }
    }
    Ok(fits.saturating_mul(STEP).max(least))
}
