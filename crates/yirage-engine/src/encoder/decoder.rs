//! A decoder as an encoder: vectors of texts from its hidden states, scores of pairs from what it says of them.
//!
//! It runs as an engine does, so texts of a call are computed together and equal beginnings once.

use super::core::EncoderFacts;
use super::decoder_task::{DecoderTask, ScoreHead};
use super::options::EncoderOptions;
use super::pool::Embedding;
use crate::encoder_input::{Bounds, EncoderInput};
use crate::engine::{Engine, Event, Request};
use crate::error::EngineError;
use crate::load::LoadProgressFn;
use crate::options::EngineOptions;
use crate::packed::Notice;
use crate::scheduler::{FinishReason, LogitsWanted, SeqId};
use std::collections::HashMap;
use std::sync::Arc;
use yirage_hal::{Device, HalError};
use yirage_model::arch::ModelOutput;
use yirage_model::config::Pooling;
use yirage_model::{Checkpoint, ModelError};

/// What the cache of the longest text may take without being asked for.
const CACHE_BYTES: u64 = 512 << 20;

/// A decoder that gives vectors or scores.
pub struct DecoderEncoder {
    engine: Engine,
    facts: EncoderFacts,
    bounds: Bounds,
    task: DecoderTask,
}

impl DecoderEncoder {
    /// Loads the model of `checkpoint` for `task` on `device`.
    ///
    /// # Errors
    /// As [`Engine::load`].
    pub fn load(
        checkpoint: &Checkpoint,
        task: DecoderTask,
        device: Arc<dyn Device>,
        options: &EncoderOptions,
        progress: LoadProgressFn,
    ) -> Result<DecoderEncoder, EngineError> {
        let options = EngineOptions {
            precision: options.precision,
            executor: options.executor,
            chunk: options.chunk,
            tuning: options.tuning.clone(),
            context: task.longest.map(|longest| longest.saturating_add(1)),
            context_within: Some(CACHE_BYTES),
            hidden: !matches!(task.head, Some(ScoreHead::Tokens { .. })),
            ..EngineOptions::default()
        };
        let engine = Engine::load(checkpoint, device, &options, progress)?;
        let of = engine.facts();
        // A token is sampled behind a text, and has a position.
        let longest = of.context.saturating_sub(1).max(1);
        let output = match &task.head {
            None => ModelOutput::Hidden { width: task.width },
            Some(_) => ModelOutput::Scores { labels: 1 },
        };
        let facts = EncoderFacts {
            architecture: of.architecture.clone(),
            vocabulary: of.vocabulary,
            longest,
            output,
            embedding: task.embedding,
            bytes: of.bytes,
            variant: of.variant.clone(),
        };
        let bounds = Bounds { tokens: longest, vocabulary: of.vocabulary, types: 1 };
        Ok(DecoderEncoder { engine, facts, bounds, task })
    }

    /// What is known of the model.
    pub fn facts(&self) -> &EncoderFacts {
        &self.facts
    }

    /// What became known of the kernels' variant since the last call.
    pub fn notices(&mut self) -> Vec<Notice> {
        self.engine.notices()
    }

    /// A vector for each input.
    ///
    /// # Errors
    /// [`EngineError::Encoder`] for inputs that the model does not take; [`ModelError::Unsupported`] for a model that
    /// scores; and what the device says.
    pub fn embed(&mut self, inputs: &[EncoderInput], how: Embedding) -> Result<Vec<Vec<f32>>, EngineError> {
        if self.task.head.is_some() {
            return Err(self.unfit("vectors of texts", "it scores pairs of texts: use `yirage rerank`"));
        }
        let wanted = if how.pooling == Pooling::Last { LogitsWanted::Last } else { LogitsWanted::All };
        let width = self.task.width as usize;
        let rows = self.rows(inputs, |request| request.hidden = Some(wanted))?;
        rows.into_iter().map(|rows| how.of(&rows, width).ok_or_else(|| short().into())).collect()
    }

    /// How well each input's second text answers its first: one number from 0 to 1.
    ///
    /// # Errors
    /// As [`DecoderEncoder::embed`], but [`ModelError::Unsupported`] for a model that does not score.
    pub fn score(&mut self, inputs: &[EncoderInput]) -> Result<Vec<Vec<f32>>, EngineError> {
        let Some(head) = self.task.head.clone() else {
            return Err(self.unfit("scores of texts", "it gives vectors of single texts: use `yirage embed`"));
        };
        let last = Some(LogitsWanted::Last);
        let rows = match &head {
            ScoreHead::Tokens { .. } => self.rows(inputs, |request| request.logits = last)?,
            ScoreHead::Rows(_) => self.rows(inputs, |request| request.hidden = last)?,
        };
        rows.iter().map(|row| Ok(vec![head.score(row).ok_or_else(short)?])).collect()
    }

    fn unfit(&self, what: &str, why: &str) -> EngineError {
        let what = format!("{what} by {}", self.facts.architecture);
        ModelError::Unsupported { what, why: why.into() }.into()
    }

    /// The rows that the requests ask for, of each input one behind the other.
    fn rows(&mut self, inputs: &[EncoderInput], ask: impl Fn(&mut Request)) -> Result<Vec<Vec<f32>>, EngineError> {
        for (i, input) in inputs.iter().enumerate() {
            self.bounds.check(i, input)?;
        }
        let mut of = HashMap::new();
        for (i, input) in inputs.iter().enumerate() {
            // The last row is told of a token that is sampled from it.
            let mut request = Request::greedy(input.ids.clone(), 1);
            ask(&mut request);
            of.insert(self.engine.add(request)?, i);
        }
        let mut rows = vec![Vec::new(); inputs.len()];
        while !of.is_empty() {
            for event in self.engine.step()? {
                take(event, &mut of, &mut rows)?;
            }
        }
        Ok(rows)
    }
}

/// Adds what an event has to its input's rows.
fn take(event: Event, of: &mut HashMap<SeqId, usize>, rows: &mut [Vec<f32>]) -> Result<(), EngineError> {
    match event {
        Event::Logits { seq, logits: row, .. } | Event::Hidden { seq, state: row, .. } => {
            if let Some(&input) = of.get(&seq) {
                rows[input].extend(row);
            }
        }
        Event::Finished { seq, reason, .. } => {
            of.remove(&seq);
            if let FinishReason::Error(why) = reason {
                return Err(HalError::Step(why).into());
            }
        }
        _ => {}
    }
    Ok(())
}

fn short() -> HalError {
    HalError::Step("the step gave fewer rows than were asked for".into())
}
