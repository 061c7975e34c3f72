//! The encoder: one step after the other.

use super::batches::cut;
use super::pool::Embedding;
use crate::encoder_input::{Bounds, EncoderInput};
use crate::error::EngineError;
use crate::memory::LoadBytes;
use crate::packed::Notice;
use crate::variants::ChosenVariant;
use yirage_hal::{Executor, HalError, Outputs};
use yirage_ir::Dims;
use yirage_model::ModelError;
use yirage_model::arch::ModelOutput;

/// The output of an encoder's graph.
const OUTPUT: usize = 0;

/// Facts about a loaded encoder.
#[derive(Clone, Debug, PartialEq)]
pub struct EncoderFacts {
    /// The architecture.
    pub architecture: String,
    /// Tokens that the model knows.
    pub vocabulary: u32,
    /// Tokens of the longest input.
    pub longest: u32,
    /// What the model gives.
    pub output: ModelOutput,
    /// How the model's makers make a vector of a text.
    pub embedding: Embedding,
    /// Memory predicted before the load.
    pub bytes: LoadBytes,
    /// How its kernels go about products; none on a device that has one way.
    pub variant: Option<ChosenVariant>,
}

/// An encoder on a device.
pub struct Encoder {
    pub(super) facts: EncoderFacts,
    pub(super) notices: Vec<Notice>,
    pub(super) bounds: Bounds,
    /// Tokens of a step.
    pub(super) chunk: usize,
    /// Inputs of a step.
    pub(super) inputs: usize,
    pub(super) executor: Executor,
}

impl Encoder {
    /// What is known of the model.
    pub fn facts(&self) -> &EncoderFacts {
        &self.facts
    }

    /// What became known of the kernels' variant since the last call.
    pub fn notices(&mut self) -> Vec<Notice> {
        std::mem::take(&mut self.notices)
    }

    /// A vector for each input.
    ///
    /// # Errors
    /// [`EngineError::Encoder`] for inputs that the model does not take; [`ModelError::Unsupported`] for a model that
    /// scores; and what the device says.
    pub fn embed(&mut self, inputs: &[EncoderInput], how: Embedding) -> Result<Vec<Vec<f32>>, EngineError> {
        let ModelOutput::Hidden { width } = self.facts.output else {
            return Err(self.unfit("vectors of texts", "it scores pairs of texts: use `yirage rerank`"));
        };
        let mut out = Vec::with_capacity(inputs.len());
        self.each_step(inputs, |inputs, outputs| {
            let mut rows = outputs.floats(OUTPUT)?;
            for input in inputs {
                let own = rows.split_off(..input.ids.len() * width as usize).ok_or_else(short)?;
                out.push(how.of(own, width as usize).ok_or_else(short)?);
            }
            Ok(())
        })?;
        Ok(out)
    }

    /// The scores of each input, one a label.
    ///
    /// # Errors
    /// As [`Encoder::embed`], but [`ModelError::Unsupported`] for a model that does not score.
    pub fn score(&mut self, inputs: &[EncoderInput]) -> Result<Vec<Vec<f32>>, EngineError> {
        let ModelOutput::Scores { labels } = self.facts.output else {
            return Err(self.unfit("scores of texts", "it gives vectors of single texts: use `yirage embed`"));
        };
        let mut out = Vec::with_capacity(inputs.len());
        self.each_step(inputs, |_, outputs| {
            out.extend(outputs.floats(OUTPUT)?.chunks_exact(labels as usize).map(<[f32]>::to_vec));
            Ok(())
        })?;
        Ok(out)
    }

    fn unfit(&self, what: &str, why: &str) -> EngineError {
        let what = format!("{what} by {}", self.facts.architecture);
        ModelError::Unsupported { what, why: why.into() }.into()
    }

    /// Computes all inputs, and hands the outputs of each step on.
    fn each_step(
        &mut self,
        inputs: &[EncoderInput],
        mut done: impl FnMut(&[EncoderInput], &Outputs) -> Result<(), HalError>,
    ) -> Result<(), EngineError> {
        for (i, input) in inputs.iter().enumerate() {
            self.bounds.check(i, input)?;
        }
        let lengths: Vec<usize> = inputs.iter().map(|input| input.ids.len()).collect();
        for run in cut(&lengths, self.chunk, self.inputs) {
            let inputs = &inputs[run];
            done(inputs, self.step(inputs)?)?;
        }
        Ok(())
    }

    fn step(&mut self, inputs: &[EncoderInput]) -> Result<&Outputs, HalError> {
        let lengths = || inputs.iter().map(|input| input.ids.len());
        let (tokens, count) = (lengths().sum::<usize>() as u32, inputs.len() as u32);
        let of_seq = |(seq, length): (usize, usize)| std::iter::repeat_n(seq as i32, length);
        let executor = &mut self.executor;
        executor.set("ids", inputs.iter().flat_map(|input| input.ids.iter().map(|&id| id as i32)));
        if self.bounds.types > 0 {
            executor.set("types", inputs.iter().flat_map(|input| input.types.iter().map(|&of_type| of_type as i32)));
        }
        executor.set("positions", lengths().flat_map(|length| 0..length as i32));
        executor.set("seqs", lengths().enumerate().flat_map(of_seq));
        executor.set("rows", firsts(lengths()));
        executor.run(&Dims { tokens, seqs: count, blocks: 0, rows: count })
    }
}

/// Where each of neighbouring inputs begins.
fn firsts(lengths: impl Iterator<Item = usize>) -> impl Iterator<Item = i32> {
    lengths.scan(0, |next, length| {
        let first = *next;
        *next += length as i32;
        Some(first)
    })
}

fn short() -> HalError {
    HalError::Step("the step gave fewer rows than it has tokens".into())
}
