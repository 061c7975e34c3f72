//! Ways in which a device's kernels compute the same bytes, of which the fastest is found by measurement.

use crate::error::HalError;
use crate::handle::WeightHandle;
use yirage_plan::Precision;

/// The ways of a device. A way is a text of choices, `NAME=VALUE` with commas between them. The choice never changes bytes.
pub trait Variants: Send + Sync {
    /// What the fastest way depends on beside the weights, in words: the processor, the workers, the kernels' build.
    fn facts(&self) -> String;
    /// The way of programs that are loaded from now on, with every choice.
    fn selected(&self) -> String;
    /// Selects a way for programs that are loaded from now on. Choices that `text` does not make stay as they are.
    ///
    /// # Errors
    /// [`HalError::Option`] for choices and values that the device does not have.
    fn select(&self, text: &str) -> Result<(), HalError>;
    /// What is to be measured, in order: each question is answered before the next is asked.
    fn questions(&self) -> Vec<Question>;
    /// Sets up measurements of products of `tokens` tokens with some of these weights, more bytes than caches hold where
    /// there are as many.
    ///
    /// # Errors
    /// [`HalError::OutOfMemory`]; [`HalError::Unsupported`] where no weight is a matrix of products.
    fn trial(
        &self,
        weights: &[WeightHandle],
        precision: Precision,
        tokens: usize,
    ) -> Result<Box<dyn Trial + '_>, HalError>;
}

/// Choices between which measurement decides.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Question {
    /// Tokens of the products that tell them apart.
    pub tokens: usize,
    /// The answers, each with the same choices.
    pub answers: Vec<String>,
}

/// Measurements of the same products.
pub trait Trial {
    /// Seconds of all products so.
    ///
    /// # Errors
    /// Those of [`Variants::select`]; [`HalError::Device`].
    fn seconds(&mut self, variant: &str) -> Result<f64, HalError>;
}
