//! Prompt lookup: `find_ngram_partial_layer`, `find_ngram_global_layer`, `target_verify_greedy_layer`.
//!
//! Guessing and verifying are what the engine does around each step, so these layers say that it shall and how. Alone, in
//! test mode, they give what Mirage's give.

use crate::builder::KernelBuilder;
use crate::config::PromptLookup;
use crate::emit::{HostOutput, LayerEmitter, LayerOutput};
use crate::error::PersistentError;
use crate::grid::LaunchDims;
use crate::layer::Layer;
use crate::tensor::TensorId;

const FIND_PARTIAL: &str = "find_ngram_partial_layer";
const FIND: &str = "find_ngram_global_layer";
const VERIFY: &str = "target_verify_greedy_layer";

#[derive(Debug)]
struct FindPartial;

#[derive(Debug)]
struct Find {
    lookup: PromptLookup,
    tokens: TensorId,
}

#[derive(Debug)]
struct VerifyLayer;

/// What the engine does behind each step that verified guesses.
#[derive(Debug)]
struct VerifySteps;

impl KernelBuilder {
    /// The first half of [`KernelBuilder::find_ngram_global_layer`].
    ///
    /// # Errors
    /// [`PersistentError::Option`] for sizes out of range.
    pub fn find_ngram_partial_layer(
        &mut self,
        input: TensorId,
        output: TensorId,
        ngram_size: u32,
        launch: LaunchDims,
    ) -> Result<(), PersistentError> {
        PromptLookup { ngram_size, ..PromptLookup::default() }.check()?;
        self.of(input)?;
        self.record(FindPartial, launch, &[], &[output])
    }

    /// Guesses: `output` is `[requests, spec_length + 1]`, the last token and what followed the first earlier place of the
    /// last `ngram_size` tokens of each request, -1 where there is none. A compiled kernel then guesses in each step, from the
    /// tokens of its metadata; test mode does from those that `input` has, `[requests, positions]`.
    ///
    /// # Errors
    /// [`PersistentError::Option`] for sizes out of range, [`PersistentError::Layer`] for an output that does not fit.
    pub fn find_ngram_global_layer(
        &mut self,
        input: TensorId,
        output: TensorId,
        ngram_size: u32,
        spec_length: u32,
        launch: LaunchDims,
    ) -> Result<(), PersistentError> {
        let lookup = PromptLookup { ngram_size, spec_length };
        lookup.check()?;
        self.of(input)?;
        self.check_width(FIND, output, spec_length + 1)?;
        self.record(Find { lookup, tokens: input }, launch, &[], &[output])
    }

    /// The guesses of a [`PromptLookup`], as Mirage's handler makes them of two layers: the tensor `spec_tokens`.
    ///
    /// # Errors
    /// As [`KernelBuilder::find_ngram_global_layer`].
    pub fn prompt_lookup_spec_handler(
        &mut self,
        lookup: PromptLookup,
        tokens: TensorId,
        launch: LaunchDims,
    ) -> Result<TensorId, PersistentError> {
        lookup.check()?;
        let requests = self.declared.meta.requests() as u32;
        let (name, width) = ("spec_tokens", lookup.spec_length + 1);
        let output = self.new_tensor(&[requests, width], crate::elements::KernelDType::Int64, name)?;
        self.find_ngram_global_layer(tokens, output, lookup.ngram_size, lookup.spec_length, launch)?;
        Ok(output)
    }

    /// Takes the longest prefix of the guesses that the target's own tokens confirm, and one token more: what greedy
    /// decoding gives. `spec_tokens` and `target_output` are `[requests, spec_length + 1]`, `output` is `[requests, 2]`: how
    /// many guesses were right, and the token behind them. Targets of as many rows as a step has tokens, which a layer of
    /// this kernel chooses, are verified by the engine in each step, and `output` is its own.
    ///
    /// # Errors
    /// [`PersistentError::Layer`] for sizes that do not fit.
    pub fn target_verify_greedy_layer(
        &mut self,
        spec_tokens: TensorId,
        target_output: TensorId,
        output: TensorId,
        launch: LaunchDims,
    ) -> Result<(), PersistentError> {
        let (guessed, target) = (self.width(spec_tokens)?, self.width(target_output)?);
        let of_the_step = self.of(target_output)?.rows() != self.of(spec_tokens)?.rows();
        if target == 1 && of_the_step && self.chosen(target_output) {
            return self.record(VerifySteps, launch, &[], &[output]);
        }
        if target != guessed && target != 1 {
            let why = format!("{guessed} guesses a request have as many targets, not {target}");
            return Err(PersistentError::Layer { layer: VERIFY, why });
        }
        self.record(VerifyLayer, launch, &[spec_tokens, target_output], &[output])
    }
}

impl Layer for VerifySteps {
    fn method(&self) -> &'static str {
        VERIFY
    }

    fn emit(&self, _: &mut LayerEmitter<'_>) -> Result<Vec<LayerOutput>, PersistentError> {
        Ok(vec![LayerOutput::Engine])
    }
}

impl Layer for FindPartial {
    fn method(&self) -> &'static str {
        FIND_PARTIAL
    }

    fn emit(&self, _: &mut LayerEmitter<'_>) -> Result<Vec<LayerOutput>, PersistentError> {
        Ok(vec![LayerOutput::Engine])
    }
}

impl Layer for Find {
    fn method(&self) -> &'static str {
        FIND
    }

    fn emit(&self, e: &mut LayerEmitter<'_>) -> Result<Vec<LayerOutput>, PersistentError> {
        e.look_up(self.lookup);
        Ok(vec![LayerOutput::Host(HostOutput::Guesses { lookup: self.lookup, tokens: e.own(self.tokens) })])
    }
}

impl Layer for VerifyLayer {
    fn method(&self) -> &'static str {
        VERIFY
    }

    fn emit(&self, e: &mut LayerEmitter<'_>) -> Result<Vec<LayerOutput>, PersistentError> {
        let reads = [e.tensor(0)?, e.tensor(1)?];
        Ok(vec![LayerOutput::Host(HostOutput::Verified { guesses: reads[0], targets: reads[1] })])
    }
}
