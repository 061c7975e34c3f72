//! What weights and blocks of states take on the device.

use super::cache::kv_cache_type;
use crate::block_positions::block_positions;
use crate::error::EngineError;
use std::collections::HashMap;
use yirage_hal::Device;
use yirage_model::arch::Model;
use yirage_plan::WeightPlan;
use yirage_plan::work::ResidentSizes;

/// Bytes of each weight and of a block of each state, by their names.
pub(crate) struct DeviceSizes {
    pub(crate) weights: HashMap<String, u64>,
    pub(crate) blocks: HashMap<String, u64>,
    /// Positions of a block.
    pub(super) positions: usize,
}

impl DeviceSizes {
    pub(crate) fn new(device: &dyn Device, model: &Model, weights: &WeightPlan) -> Result<DeviceSizes, EngineError> {
        let mut sizes =
            DeviceSizes { weights: HashMap::new(), blocks: HashMap::new(), positions: block_positions(model) };
        for entry in &weights.entries {
            sizes.weights.insert(entry.name.clone(), device.weight_bytes(entry)?);
        }
        for (name, group) in &model.kv_cache_group {
            let block = kv_cache_type(model, name)?;
            let bytes = device.kv_block_bytes(&block, model.groups[*group].k_width())?;
            sizes.blocks.insert(name.clone(), bytes);
        }
        Ok(sizes)
    }

    /// Bytes of a block of each cache group, of all its states together.
    pub(super) fn group_blocks(&self, model: &Model) -> Vec<u64> {
        let mut bytes = vec![0u64; model.groups.len()];
        for (name, group) in &model.kv_cache_group {
            bytes[*group] = bytes[*group].saturating_add(self.blocks[name]);
        }
        bytes
    }
}

impl ResidentSizes for DeviceSizes {
    fn weight(&self, name: &str) -> u64 {
        self.weights.get(name).copied().unwrap_or(0)
    }

    fn position(&self, name: &str) -> f64 {
        self.blocks.get(name).map_or(0.0, |&bytes| bytes as f64 / self.positions as f64)
    }
}
