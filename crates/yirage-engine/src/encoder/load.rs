//! From a checkpoint to an encoder.

use super::core::{Encoder, EncoderFacts};
use super::options::EncoderOptions;
use super::pool::Embedding;
use crate::encoder_input::{Bounds, EncoderError};
use crate::error::EngineError;
use crate::limits::MAX_STEP_TOKENS;
use crate::load::{DeviceSizes, LoadProgressFn, bind_weights, check, whole_model_wanted};
use crate::memory::LoadBytes;
use crate::packed::Notice;
use crate::variants::{self, ModelMatmuls};
use std::collections::HashMap;
use std::sync::Arc;
use yirage_compile::{CompileOptions, compile, plan_weights};
use yirage_hal::{Device, Executor};
use yirage_ir::{Dims, ValueSource};
use yirage_model::arch::{self, BuildOptions, Model, ModelOutput};
use yirage_model::config::SentenceConfig;
use yirage_model::{Checkpoint, ModelError, RawConfig};
use yirage_plan::VerifiedPlan;

/// Tokens of an input for which steps have room. Attention takes memory for each input that a step may have, so that room
/// for as many inputs as tokens would be most of what a small model takes; steps of shorter inputs are not full.
const TOKENS: u32 = 8;

impl Encoder {
    /// Loads the model of `checkpoint` on `device`. What it takes is checked before anything is loaded.
    ///
    /// # Errors
    /// [`EngineError::WouldNotFit`] with the numbers; [`ModelError::Unsupported`] for a model that generates text; and
    /// whatever is wrong with files, options or the device.
    pub fn load(
        checkpoint: &Checkpoint,
        device: Arc<dyn Device>,
        options: &EncoderOptions,
        progress: LoadProgressFn,
    ) -> Result<Encoder, EngineError> {
        let config = RawConfig::load(checkpoint)?;
        // Encoders keep nothing.
        let build = |positions| arch::build(checkpoint, &config, BuildOptions::plain(positions));
        let sentence = SentenceConfig::load(checkpoint)?;
        let most = build(1)?.context;
        let longest = sentence.longest.map_or(most, |longest| longest.min(most));
        let model = build(longest)?;
        let bucket = bucket(&model, options.chunk, longest)?;
        if let Some(stages) = device.stages() {
            return Err(whole_model_wanted("an encoder", stages.len()));
        }
        let target = device.target();
        let weights = plan_weights(&model.graph, &target)?;
        let plan = compile(&model.graph, bucket, &target, &weights, &CompileOptions::new(options.precision))?;
        let sizes = DeviceSizes::new(&*device, &model, &weights)?;
        let bytes = predict(&sizes, &plan);
        check(&bytes, &*device)?;
        let mut bindings = bind_weights(checkpoint, &*device, &model, &weights, HashMap::new(), progress)?;
        let mut notices: Vec<Notice> = Notice::of_weights(checkpoint).into_iter().collect();
        let products = ModelMatmuls { plan: &weights, precision: options.precision, bytes: bytes.weights };
        let variant = variants::bind(&*device, products, &mut bindings, &options.tuning, &mut notices)?;
        let mut executor = Executor::new(&*device, &plan, &bindings)?;
        options.executor.map_or(Ok(()), |kind| executor.force(kind))?;
        Ok(Encoder {
            bounds: Bounds { tokens: longest, vocabulary: model.vocab_size, types: model.token_types },
            facts: EncoderFacts {
                architecture: model.name,
                vocabulary: model.vocab_size,
                longest,
                output: model.output,
                embedding: Embedding { pooling: sentence.pooling, normalise: sentence.normalise },
                bytes,
                variant,
            },
            notices,
            chunk: options.chunk as usize,
            inputs: bucket.seqs as usize,
            executor,
        })
    }
}

/// The largest step: a full one, or one of the longest input.
fn bucket(model: &Model, chunk: u32, longest: u32) -> Result<Dims, EngineError> {
    if model.output == ModelOutput::Logits {
        return Err(ModelError::Unsupported {
            what: format!("vectors of texts by {}", model.name),
            why: "it is no encoder, it generates text: use `yirage run`".into(),
        }
        .into());
    }
    let tokens = if chunk == 0 { 0 } else { chunk.max(longest) };
    if !(1..=MAX_STEP_TOKENS).contains(&tokens) {
        return Err(EncoderError::Step { tokens, most: MAX_STEP_TOKENS }.into());
    }
    let inputs = tokens.div_ceil(TOKENS);
    // No table of blocks is read, but a plan is made for one at least.
    Ok(Dims { tokens, seqs: inputs, blocks: 1, rows: inputs })
}

/// What the model takes. Nothing is kept of inputs but the slots and outputs of a step.
fn predict(sizes: &DeviceSizes, plan: &VerifiedPlan) -> LoadBytes {
    let of = |id| plan.graph.ty(id).bytes(&plan.bucket) as u64;
    let slots = plan.graph.inputs_of(ValueSource::StepInput).map(of).fold(0, u64::saturating_add);
    let outputs = plan.graph.outputs.iter().map(|&id| of(id)).fold(0, u64::saturating_add);
    LoadBytes {
        weights: sizes.weights.values().copied().fold(0, u64::saturating_add),
        cache: 0,
        arena: plan.arena,
        tables: slots.saturating_add(outputs),
    }
}
