//! From files to a model that is ready.

use crate::error::SessionError;
use crate::pictures::PictureReader;
use crate::texts::TextProcessor;
use std::sync::Arc;
use yirage_engine::{Engine, EngineOptions, LoadProgressFn, VisionTower};
use yirage_hal::Device;
use yirage_model::arch::picture_token;
use yirage_model::{Checkpoint, GenerationConfig, RawConfig};

/// An engine with the model's texts and suggestions, on no thread yet.
pub struct LoadedEngine {
    /// The engine.
    pub engine: Engine,
    /// Tokenizer and templates, where the model has them.
    pub texts: Option<Arc<TextProcessor>>,
    /// What the model's makers suggest.
    pub generation: GenerationConfig,
    /// What reads pictures, where the model does and was loaded with a place for them.
    pub vision: Option<LoadedVision>,
}

/// A vision tower, and how its pictures are read.
pub struct LoadedVision {
    /// The tower.
    pub tower: VisionTower,
    /// From files to what it reads.
    pub reader: Arc<PictureReader>,
}

impl LoadedEngine {
    /// Loads the model of `checkpoint` on `device`. A model that reads pictures gets its vision tower where
    /// [`EngineOptions::embedded`] asks for it; other models have no place for rows of embeddings then either. `progress` gets bytes of weights done, and of all.
    ///
    /// # Errors
    /// Whatever is wrong with files, options or the device.
    pub fn load(
        checkpoint: &Checkpoint,
        device: Arc<dyn Device>,
        options: &EngineOptions,
        progress: LoadProgressFn<'_>,
    ) -> Result<LoadedEngine, SessionError> {
        let config = RawConfig::load(checkpoint)?;
        let generation = GenerationConfig::load(checkpoint, &config)?;
        let embedded = options.embedded && picture_token(&config)?.is_some();
        let options = &EngineOptions { embedded, ..options.clone() };
        let of_vision = device.clone();
        // The vocabulary takes as long as weights that need only be mapped.
        let (engine, texts) = std::thread::scope(|scope| {
            let reader = std::thread::Builder::new().name("yirage-texts".into());
            let texts = reader.spawn_scoped(scope, || TextProcessor::load(checkpoint));
            let engine = Engine::load(checkpoint, device, options, progress);
            let texts = match texts {
                Ok(thread) => thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)),
                // Where there is room for no further thread, one after the other.
                Err(_) => TextProcessor::load(checkpoint),
            };
            (engine, texts)
        });
        let (engine, texts) = (engine?, texts?.map(Arc::new));
        let vision = if embedded { load_vision(checkpoint, of_vision, options, texts.as_ref())? } else { None };
        Ok(LoadedEngine { engine, texts, generation, vision })
    }

    /// Loads a smaller model of the same vocabulary, whose guesses are verified from now on.
    ///
    /// # Errors
    /// As [`LoadedEngine::load`]; a vocabulary that differs.
    pub fn load_draft(&mut self, checkpoint: &Checkpoint, progress: LoadProgressFn<'_>) -> Result<(), SessionError> {
        let drafting = TextProcessor::load(checkpoint)?;
        let tokenizers = self.texts.as_deref().zip(drafting.as_ref());
        let tokenizers = tokenizers.map(|(model, draft)| (&model.tokenizer, &draft.tokenizer));
        Ok(self.engine.load_draft(checkpoint, tokenizers, progress)?)
    }

    /// The ids that end a text: those the model's settings name and those its tokenizer knows.
    pub fn ends(&self) -> Vec<u32> {
        let mut ends = self.generation.eos.clone();
        ends.extend(self.texts.iter().flat_map(|t| t.tokenizer.special_ids().ends.iter()));
        ends.sort_unstable();
        ends.dedup();
        ends
    }
}

fn load_vision(
    checkpoint: &Checkpoint,
    device: Arc<dyn Device>,
    options: &EngineOptions,
    texts: Option<&Arc<TextProcessor>>,
) -> Result<Option<LoadedVision>, SessionError> {
    let Some(tower) = VisionTower::load(checkpoint, &*device, options, &mut |_, _| {})? else { return Ok(None) };
    let reader = Arc::new(PictureReader::load(checkpoint, &tower, texts)?);
    Ok(Some(LoadedVision { tower, reader }))
}
