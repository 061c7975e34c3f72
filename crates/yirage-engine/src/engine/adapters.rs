//! Adapters beside the model: which there are, what a request gets of them, and others in their place.
//!
//! It knows names, scales and where columns lie, and nothing of what an adapter holds.

use super::core::Engine;
use super::request_adapters::RequestAdapters;
use crate::adapter_error::AdapterError;
use crate::error::EngineError;
use crate::load::{self, RebuiltStage, stage_devices};
use crate::loaded_stage::LoadedStage;
use crate::options::{AdapterScale, EngineAdapter, check_adapters, check_scale};
use crate::runner::{Runner, RunnerInputs};
use std::collections::HashMap;
use yirage_hal::{Bindings, WeightHandle};
use yirage_model::Checkpoint;
use yirage_model::lora::LoraLayout;

/// The layout of adapters in a model's graph.
pub(super) fn layout(adapters: &[EngineAdapter]) -> LoraLayout {
    let plain: Vec<_> = adapters.iter().map(|adapter| adapter.adapter.clone()).collect();
    LoraLayout::of(&plain)
}

/// Bytes that tell which adapters made the keys and values of a beginning, and at which scales.
pub(super) fn adapted(used: &[(u128, f32)]) -> Vec<u8> {
    used.iter().flat_map(|(digest, scale)| digest.to_le_bytes().into_iter().chain(scale.to_le_bytes())).collect()
}

impl Engine {
    /// The adapters, with the scales of requests that name none.
    pub fn adapters(&self) -> &[EngineAdapter] {
        &self.options.adapters
    }

    /// Changes the scales of requests that name none, from the next request on; what is not named becomes 0.
    ///
    /// # Errors
    /// [`EngineError::Adapter`]; nothing is changed then.
    pub fn set_adapter_scales(&mut self, scales: &[AdapterScale]) -> Result<(), EngineError> {
        let scales = self.scales_of(Some(scales))?;
        for (adapter, scale) in self.options.adapters.iter_mut().zip(scales) {
            adapter.scale = scale;
        }
        Ok(())
    }

    /// What a request gets that asks for these; none asks for what the model has by itself.
    pub(super) fn request_adapters(&self, asked: Option<&[AdapterScale]>) -> Result<RequestAdapters, AdapterError> {
        let scales = self.scales_of(asked)?;
        let digests = self.options.adapters.iter().map(|adapter| adapter.adapter.digest());
        let used = digests.zip(scales.iter().copied()).filter(|(_, scale)| *scale != 0.0).collect();
        Ok(RequestAdapters { used, row: layout(&self.options.adapters).row(&scales).into() })
    }

    /// A scale for each adapter.
    fn scales_of(&self, asked: Option<&[AdapterScale]>) -> Result<Vec<f32>, AdapterError> {
        let adapters = &self.options.adapters;
        let Some(asked) = asked else { return Ok(adapters.iter().map(|adapter| adapter.scale).collect()) };
        let mut scales: Vec<Option<f32>> = vec![None; adapters.len()];
        for AdapterScale { name, scale } in asked {
            let Some(at) = adapters.iter().position(|adapter| adapter.name == *name) else {
                let known = adapters.iter().map(|adapter| adapter.name.clone()).collect();
                return Err(AdapterError::Unknown { name: name.clone(), known });
            };
            check_scale(name, *scale)?;
            if scales[at].replace(*scale).is_some() {
                return Err(AdapterError::Twice { name: name.clone() });
            }
        }
        Ok(scales.into_iter().map(|scale| scale.unwrap_or(0.0)).collect())
    }

    /// Puts other adapters beside the model of `checkpoint`, which this engine was loaded from. Requests that run go on with
    /// theirs. Plans are compiled for it; the model's weights stay where they are.
    ///
    /// # Errors
    /// [`EngineError::Adapter`]; an adapter that does not fit; whatever the device says. The engine is as it was then.
    pub fn replace_adapters(
        &mut self,
        checkpoint: &Checkpoint,
        adapters: Vec<EngineAdapter>,
    ) -> Result<(), EngineError> {
        check_adapters(&adapters, self.device.target().ranks)?;
        self.check_replaceable(&adapters)?;
        let options =
            crate::options::EngineOptions { adapters, context: Some(self.facts.context), ..self.options.clone() };
        let (model, rebuilt) = load::rebuild(checkpoint, &*self.device, &options, self.sampler.plans())?;
        let stages = self.rebind(checkpoint, rebuilt)?;
        let inputs = RunnerInputs {
            groups: model.groups.len(),
            dynamic_rope: self.dynamic_rope.clone(),
            embedded: model.embedded,
            block: crate::block_positions::block_positions(&model),
            scales: layout(&options.adapters).width() as usize,
            previous_hidden: false,
        };
        self.runner = Runner::new(&LoadedStage::runner_stages(&stages, &*self.device), inputs, options.executor)?;
        self.stages = stages;
        self.options.adapters = options.adapters;
        let layout = layout(&self.options.adapters);
        for request in self.requests.values_mut() {
            let digests = self.options.adapters.iter().map(|adapter| adapter.adapter.digest());
            let scale = |digest| request.adapters.used.iter().find(|used| used.0 == digest).map_or(0.0, |used| used.1);
            let scales: Vec<f32> = digests.map(scale).collect();
            request.adapters.row = layout.row(&scales).into();
        }
        Ok(())
    }

    /// Whether nothing that is computed or will be needs an adapter that goes.
    fn check_replaceable(&self, adapters: &[EngineAdapter]) -> Result<(), AdapterError> {
        if self.launched.is_some() {
            return Err(AdapterError::StepInFlight);
        }
        for EngineAdapter { name, adapter, .. } in &self.options.adapters {
            let digest = adapter.digest();
            let uses =
                |digest: u128| self.requests.values().filter(move |r| r.adapters.used.iter().any(|u| u.0 == digest));
            let requests = uses(digest).count();
            if requests > 0 && adapters.iter().all(|other| other.adapter.digest() != digest) {
                return Err(AdapterError::InUse { name: name.clone(), requests });
            }
        }
        Ok(())
    }

    /// The stages with the weights that are held already as the new plans want them, and the others.
    fn rebind(&self, checkpoint: &Checkpoint, rebuilt: Vec<RebuiltStage>) -> Result<Vec<LoadedStage>, EngineError> {
        let matrices = |name: &str| name.ends_with(".lora_a") || name.ends_with(".lora_b");
        let devices = stage_devices(&*self.device);
        let mut stages = Vec::with_capacity(rebuilt.len());
        for ((RebuiltStage { reads, model, weights, plans }, held), device) in
            rebuilt.into_iter().zip(&self.stages).zip(devices)
        {
            let kept = held.weights.entries.iter().filter(|entry| !matrices(&entry.name));
            let kept: HashMap<String, WeightHandle> = kept
                .filter(|entry| weights.entries.contains(entry))
                .filter_map(|entry| Some((entry.name.clone(), held.bindings.weights.get(&entry.name)?.clone())))
                .collect();
            let made = load::bind_weights(checkpoint, device, &model, &weights, kept, &mut |_, _| {})?;
            let bindings = Bindings { weights: made.weights, ..held.bindings.clone() };
            stages.push(LoadedStage { reads, weights, plans, bindings });
        }
        Ok(stages)
    }
}
