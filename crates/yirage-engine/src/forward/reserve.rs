//! Making room for sequences, and forgetting what is cached of them.

use super::core::Forward;
use super::kv_reservation::KvReservation;
use super::options::BesideLogits;
use crate::block_positions::block_positions;
use crate::error::EngineError;
use crate::forward_error::ForwardError;
use crate::limits::MAX_POOL_BLOCKS;
use crate::load::{DeviceSizes, check, kv_cache_type};
use crate::memory::LoadBytes;
use std::collections::HashMap;
use yirage_plancache::{BoundGraph, CacheError, ResidentTensors};

impl Forward {
    /// Forgets what is cached; with `sequences` there is room for so many from now on, and with `context` a sequence has so
    /// many positions at most.
    ///
    /// # Errors
    /// [`ForwardError::Context`] for more positions than the model was opened with, [`ForwardError::Rows`], and what the
    /// device says.
    pub fn reset_cache(&mut self, sequences: Option<usize>, context: Option<u32>) -> Result<(), EngineError> {
        if let Some(wanted) = context {
            if wanted == 0 || wanted > self.opened {
                return Err(ForwardError::Context { wanted, context: self.opened }.into());
            }
            if wanted != self.context {
                self.context = wanted;
                self.drop_reservation();
            }
        }
        match (sequences, &mut self.reservation) {
            (Some(sequences), room) if room.as_ref().is_none_or(|room| room.lengths.len() != sequences) => {
                self.reserve_sequences(sequences)
            }
            (_, Some(room)) => {
                room.lengths.fill(0);
                Ok(())
            }
            (_, None) => Ok(()),
        }
    }

    /// Sees to it that there is room for so many sequences; whether something cached was forgotten for it.
    pub(super) fn reserve(&mut self, sequences: usize) -> Result<bool, EngineError> {
        let (there, cached) = match &self.reservation {
            Some(room) => (room.lengths.len(), room.lengths.iter().any(|&length| length > 0)),
            None => (0, false),
        };
        if sequences <= there {
            return Ok(false);
        }
        self.reserve_sequences(sequences)?;
        Ok(cached)
    }

    fn drop_reservation(&mut self) {
        self.reservation = None;
        self.plans.clear();
    }

    fn reserve_sequences(&mut self, sequences: usize) -> Result<(), EngineError> {
        let weights = self.loaded_weights.clone().ok_or(ForwardError::NoWeights)?;
        // Their memory is there for what takes their place.
        self.drop_reservation();
        let positions = block_positions(&self.model) as u32;
        let blocks = self.context.div_ceil(positions);
        let most = MAX_POOL_BLOCKS / blocks.max(1);
        let wanted = u32::try_from(sequences).ok().filter(|&wanted| (1..=most).contains(&wanted));
        let wanted = wanted.ok_or(ForwardError::Rows { rows: sequences, most })?;
        let pool = wanted as usize * blocks as usize;
        let sizes = DeviceSizes::new(&*self.device, &self.model, &self.weights)?;
        let cache =
            sizes.blocks.values().fold(0u64, |sum, &block| sum.saturating_add(block.saturating_mul(pool as u64)));
        check(&LoadBytes { weights: 0, cache, arena: 0, tables: 0 }, &*self.device)?;
        let mut states = HashMap::new();
        for (name, group) in &self.model.kv_cache_group {
            let width = self.model.groups[*group].k_width();
            let state = self.device.kv_cache(&kv_cache_type(&self.model, name)?, width, pool)?;
            states.insert(name.clone(), state);
        }
        let resident = ResidentTensors { weights, kv_caches: states };
        let mut graph = self.model.graph.clone();
        graph.outputs.extend(match self.options.beside {
            BesideLogits::Nothing => Vec::new(),
            BesideLogits::Layers => self.model.layer_outputs(),
            BesideLogits::MatmulInputs => self.model.matmul_inputs().values,
        });
        let graph = BoundGraph::resident(graph, resident).map_err(CacheError::from)?;
        self.reservation = Some(KvReservation { lengths: vec![0; sequences], blocks, positions, graph });
        Ok(())
    }
}
