//! Speculative decoding: tokens are guessed, and one step verifies several guesses.
//!
//! # Why the output is the same to the byte
//! A sampled token is a function of the logits at its position, of the tokens before it (penalties), and of a random
//! number that is itself a function of seed, choice and position ([`crate::sampling::RngKey`]). A step with drafts
//! computes the logits of every drafted position and samples each position with exactly the random number and the
//! history that plain decoding has there, taking the drafts before it for the history. By induction: as long as drafts
//! equal the tokens sampled before them, the history is the one plain decoding has, so the next sampled token is the one
//! plain decoding gives; at the first draft that differs the sampled token stands and the rest is dropped; behind the
//! last accepted draft the row is there anyway and gives one token more. Rows of logits do not depend on what else a
//! step computes (that is the engine's invariant), so greedy and sampled outputs, log-probabilities and logits are
//! those of plain decoding, bit for bit.
//!
//! That is more than the published schemes promise, which keep the distribution (Y. Leviathan, M. Kalman, Y. Matias,
//! "Fast Inference from Transformers via Speculative Decoding", 2023; C. Chen et al., "Accelerating Large Language
//! Model Decoding with Speculative Sampling", 2023), and costs nothing: they accept a draft x with probability
//! min(1, p(x)/q(x)); for a guess without a distribution of its own, q(x) = 1, that is p(x), which is also how often
//! the sampled token equals x here. A draft model samples with the random number that the model will sample with, so
//! that where the two distributions are alike they mostly draw the same token; with q = p every draft is accepted.
//!
//! # The parts
//! [`lookup`](Lookup) guesses from the sequence itself, `draft` from a smaller model or from the layer of the model's own
//! checkpoint that predicts further tokens (multi-token prediction; DeepSeek-V3, arXiv 2412.19437). How many guesses a
//! step verifies is decided by a [`DraftLengthController`] from measured costs and from how often guesses were right. What is
//! guessed and when depends on the clock; what comes out does not.
//!
//! This module deliberately knows no text and nothing of how a step is planned.

mod acceptance;
mod controller;
#[cfg(test)]
mod controller_sim;
mod costs;
mod draft;
mod hidden_rows;
mod lookup;
mod recurrent;
mod speculator;

pub use acceptance::{Acceptance, DraftSource};
pub use controller::{ALLOWANCE, DecodeStepMeasurement, DraftLengthController, DraftProposal, StepCost};
pub use costs::Curve;
pub use lookup::{LEAST, Lookup, LookupPrediction, MOST_PLACES};

pub(crate) use draft::{DraftModel, LoadedModel};
pub(crate) use recurrent::{NO_WAY_BACK, cannot_guess};
pub(crate) use speculator::{DecodingSequence, Speculator};
