//! Ways in which a device's kernels compute the same bytes, of which the fastest is found by measurement.

use crate::error::HalError;
use crate::handle::WeightHandle;
use yirage_plan::Precision;

/// The ways of a device. A way is a text of choices, `NAME=VALUE` with commas between them. The choice never changes bytes.
pub trait KernelVariants: Send + Sync {
    /// What the fastest way depends on beside the weights, in words: the processor, the workers, the kernels' build.
    fn facts(&self) -> String;
    /// The device's own way with the choices of `text`, every choice told.
    ///
    /// # Errors
    /// [`HalError::Option`] for choices and values that the device does not have.
    fn resolve(&self, text: &str) -> Result<String, HalError>;
    /// What is to be measured, in order: each question is answered before the next is asked.
    fn questions(&self) -> Vec<Question>;
    /// Sets up measurements of products of `tokens` tokens with these weights: in a short one some of them, more bytes than
    /// caches hold where there are as many.
    ///
    /// # Errors
    /// [`HalError::OutOfMemory`]; [`HalError::Unsupported`] where no weight is a matrix of products.
    fn timer(
        &self,
        weights: &[WeightHandle],
        precision: Precision,
        tokens: usize,
        length: Length,
    ) -> Result<Box<dyn VariantTimer + '_>, HalError>;
}

/// How much a measurement goes through.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Length {
    /// As little as tells answers apart.
    Short,
    /// Every weight.
    Full,
}

/// What is said of choices on a device of a backend that has none.
pub fn no_variants(backend: &str, variant: &str) -> HalError {
    HalError::Unsupported {
        what: format!("the variant {variant}"),
        why: format!("kernels of the device {backend} compute in one way"),
    }
}

/// Choices between which measurement decides.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Question {
    /// Tokens of the products that tell them apart in a short measurement.
    pub tokens: usize,
    /// Tokens of the steps that the answer is for, and of a full measurement.
    pub step: usize,
    /// The answers, each with the same choices.
    pub answers: Vec<String>,
}

/// Measurements of the same products.
pub trait VariantTimer {
    /// Seconds of all products by the device's own way with these choices.
    ///
    /// # Errors
    /// Those of [`KernelVariants::resolve`]; [`HalError::Device`].
    fn seconds(&mut self, variant: &str) -> Result<f64, HalError>;
}
