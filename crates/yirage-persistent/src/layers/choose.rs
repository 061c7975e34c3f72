//! What chooses tokens from logits: `argmax_layer`, its two halves, and `sampling_layer`.

use crate::builder::KernelBuilder;
use crate::emit::{LayerEmitter, LayerOutput};
use crate::error::PersistentError;
use crate::grid::LaunchDims;
use crate::layer::Layer;
use crate::sampling_mode::SamplingMode;
use crate::tensor::TensorId;
use yirage_engine::sampling::{SampleError, SamplingParams};

const ARGMAX: &str = "argmax_layer";
const PARTIAL: &str = "argmax_partial_layer";
const REDUCE: &str = "argmax_reduce_layer";
const SAMPLING: &str = "sampling_layer";

#[derive(Debug)]
struct Choose {
    method: &'static str,
    choice: SamplingMode,
}

/// The first half of the argmax: its two outputs stand for the logits.
#[derive(Debug)]
struct ArgmaxPartial;

impl KernelBuilder {
    /// `output[t]` is the index of the largest of `input[t]`, the first of equals: the token that follows.
    ///
    /// # Errors
    /// [`PersistentError::Layer`] for an output of more than one element a row.
    pub fn argmax_layer(
        &mut self,
        input: TensorId,
        output: TensorId,
        launch: LaunchDims,
    ) -> Result<(), PersistentError> {
        self.check_width(ARGMAX, output, 1)?;
        self.record(Choose { method: ARGMAX, choice: SamplingMode::Greedy }, launch, &[input], &[output])
    }

    /// The first half of [`KernelBuilder::argmax_layer`]: largest values and their indices, part by part. The two are one
    /// thing here, which only [`KernelBuilder::argmax_reduce_layer`] reads.
    ///
    /// # Errors
    /// [`PersistentError::Layer`] for two outputs of other sizes than each other.
    pub fn argmax_partial_layer(
        &mut self,
        input: TensorId,
        output: [TensorId; 2],
        launch: LaunchDims,
    ) -> Result<(), PersistentError> {
        self.check_width(PARTIAL, output[1], self.width(output[0])?)?;
        self.record(ArgmaxPartial, launch, &[input], &output)
    }

    /// The second half of [`KernelBuilder::argmax_layer`].
    ///
    /// # Errors
    /// [`PersistentError::Layer`] for inputs that no first half wrote, and an output of more than one element a row.
    pub fn argmax_reduce_layer(
        &mut self,
        input: [TensorId; 2],
        output: TensorId,
        launch: LaunchDims,
    ) -> Result<(), PersistentError> {
        self.check_width(REDUCE, output, 1)?;
        let writers = input.map(|id| self.writer(id));
        if writers[0].is_none() || writers[0] != writers[1] || writers[0].map(|(method, _)| method) != Some(PARTIAL) {
            let why = "its two inputs are those that one argmax_partial_layer wrote".into();
            return Err(PersistentError::Layer { layer: REDUCE, why });
        }
        self.record(Choose { method: REDUCE, choice: SamplingMode::Greedy }, launch, &input, &[output])
    }

    /// `output[t]` is a token that is drawn by the kernel's sampling parameters with this `seed`: temperature, top-k, top-p
    /// and the others. Each request draws numbers of its own, whatever runs beside it. Mirage's
    /// `sampling_sm100_layer` is this one with a temperature of 1 and no filter.
    ///
    /// # Errors
    /// [`PersistentError::Layer`] for an output of more than one element a row; parameters out of range, or that ask for
    /// samplers which no device has.
    pub fn sampling_layer(
        &mut self,
        input: TensorId,
        output: TensorId,
        seed: u64,
        launch: LaunchDims,
    ) -> Result<(), PersistentError> {
        self.check_width(SAMPLING, output, 1)?;
        let params = SamplingParams { seed, ..self.declared.config.sampling.clone() };
        if params.clone().checked(self.width(input)? as usize)?.is_on_host() {
            return Err(SampleError::OnHost(params.chain.asked()).into());
        }
        self.record(Choose { method: SAMPLING, choice: SamplingMode::Sampled(params) }, launch, &[input], &[output])
    }
}

impl Layer for Choose {
    fn method(&self) -> &'static str {
        self.method
    }

    fn chooses(&self) -> bool {
        true
    }

    fn emit(&self, e: &mut LayerEmitter<'_>) -> Result<Vec<LayerOutput>, PersistentError> {
        Ok(vec![e.choose(self.choice.clone())?])
    }
}

impl Layer for ArgmaxPartial {
    fn method(&self) -> &'static str {
        PARTIAL
    }

    fn row_by_row(&self) -> bool {
        true
    }

    fn emit(&self, e: &mut LayerEmitter<'_>) -> Result<Vec<LayerOutput>, PersistentError> {
        let logits = LayerOutput::Logits(e.read(0)?);
        Ok(vec![logits.clone(), logits])
    }
}
