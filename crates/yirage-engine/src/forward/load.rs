//! From a checkpoint to a forward pass: the graph at once, the weights when they are wanted.

use super::core::Forward;
use super::options::ForwardOptions;
use crate::error::EngineError;
use crate::forward_error::ForwardError;
use crate::load::{BuiltModel, DeviceSizes, LoadProgressFn, bind_weights, build, check};
use crate::memory::LoadBytes;
use std::collections::HashMap;
use std::sync::Arc;
use yirage_hal::Device;
use yirage_model::arch::Model;
use yirage_model::{Checkpoint, RawConfig};
use yirage_plancache::{PlanCache, ResidentWeights};

impl Forward {
    /// Builds the graph of `checkpoint`'s model for `device`. No weight is read.
    ///
    /// # Errors
    /// Whatever is wrong with files or options; [`ModelError::Unsupported`](yirage_model::ModelError::Unsupported) for an
    /// encoder.
    pub fn open(
        checkpoint: &Checkpoint,
        device: Arc<dyn Device>,
        options: &ForwardOptions,
    ) -> Result<Forward, EngineError> {
        let built = build(checkpoint, &*device, &options.engine())?;
        let BuiltModel { context, kv, .. } = built;
        let (model, weights) = built.whole("a forward pass")?;
        let tied = RawConfig::load(checkpoint)?.opt_bool("tie_word_embeddings")?;
        Ok(Forward {
            plans: Arc::new(PlanCache::new(device.clone(), options.plans.clone())),
            device,
            options: options.clone(),
            model,
            weights,
            opened: context,
            context,
            kv,
            ties_head: tied == Some(true),
            loaded_weights: None,
            reservation: None,
            sampler: None,
        })
    }

    /// Loads the weights of `checkpoint`, which is of the same model; formats of its tensors may differ. What was cached and
    /// planned before is dropped. `progress` gets bytes of weights done, and of all.
    ///
    /// # Errors
    /// [`ForwardError::OtherModel`]; [`EngineError::WouldNotFit`] with the numbers; and whatever is wrong with the files.
    /// The weights of before are then still there, unless there was too little memory for both.
    pub fn load_weights(&mut self, checkpoint: &Checkpoint, progress: LoadProgressFn<'_>) -> Result<(), EngineError> {
        let options = ForwardOptions { context: Some(self.opened), kv: Some(self.kv), ..self.options.clone() };
        let (model, weights) = build(checkpoint, &*self.device, &options.engine())?.whole("a forward pass")?;
        same_model(&self.model, &model, checkpoint)?;
        let sizes = DeviceSizes::new(&*self.device, &model, &weights)?;
        let bytes = sizes.weights.values().copied().fold(0, u64::saturating_add);
        let needs = LoadBytes { weights: bytes, cache: 0, arena: 0, tables: 0 };
        if check(&needs, &*self.device).is_err() {
            // The old ones make room.
            self.drop_weights();
        }
        check(&needs, &*self.device)?;
        let bound = bind_weights(checkpoint, &*self.device, &model, &weights, HashMap::new(), progress)?;
        let entries = weights.entries.iter();
        let held = entries.filter_map(|entry| Some((entry.clone(), bound.weights.get(&entry.name)?.clone()))).collect();
        self.drop_weights();
        self.loaded_weights = Some(ResidentWeights::of(held));
        (self.model, self.weights) = (model, weights);
        Ok(())
    }

    /// Forgets weights, cache and plans.
    fn drop_weights(&mut self) {
        self.loaded_weights = None;
        self.reservation = None;
        self.plans.clear();
    }
}

/// Whether two graphs read weights of the same names and sizes.
fn same_model(own: &Model, other: &Model, checkpoint: &Checkpoint) -> Result<(), ForwardError> {
    let shape = |shape: &[usize]| format!("of shape {shape:?}");
    let count = own.weights.len().max(other.weights.len());
    for at in 0..count {
        let (own, other) = (own.weights.get(at), other.weights.get(at));
        let of = |weight: Option<&yirage_model::weights::WeightBinding>| {
            weight.map_or_else(|| ("nothing".to_owned(), "absent".to_owned()), |w| (w.name.clone(), shape(&w.shape)))
        };
        let ((name, expected), (other, found)) = (of(own), of(other));
        if (&name, &expected) != (&other, &found) {
            let weight = if own.is_some() { name } else { other };
            return Err(ForwardError::OtherModel { file: checkpoint.label(), weight, expected, found });
        }
    }
    Ok(())
}
