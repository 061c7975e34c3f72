//! From one row of logits to one token.
//!
//! A token is chosen by the op `sample`, in a small graph that is compiled as any other and runs on the device where the
//! logits lie; here its parameters are checked and its slots filled. The op's file says exactly what is computed.
//!
//! Everything is a pure function of the arguments: random numbers come from Philox4x32-10 keyed by the request's
//! seed, the index among its choices and the position ([`RngKey`]), so a token does not depend on what else is in the
//! batch, on what arrived before, on the order of steps, or on a preemption; and weights are computed with plain IEEE
//! operations (no platform `exp`), so it does not depend on the machine either.
//!
//! # Order of the steps
//! 1. the allowed-token mask;
//! 2. logit bias;
//! 3. repetition penalty (prompt and output), frequency and presence penalty (output);
//! 4. temperature 0: the largest logit, the smallest id among equals, and nothing further;
//! 5. temperature;
//! 6. min-p, relative to the likeliest token;
//! 7. top-k: exactly k tokens, smaller ids first among equal logits;
//! 8. top-p over what is left, renormalised: the fewest likeliest tokens whose weights reach p;
//! 9. the draw: the first token, in order of ids, at which the running share of what is left exceeds the random number.
//!
//! This is the order of vLLM. llama.cpp's default chain has the same steps 1 to 3, then top-k, top-p, min-p and
//! temperature last, so at temperatures other than 1 its top-p and min-p keep other sets. A request that asks for any of
//! llama.cpp's other samplers, or for an order ([`SamplerChain`]), goes through such a chain on the host.
//!
//! Log-probabilities are those of the model: of the raw row, before step 1.
//!
//! ```
//! use yirage_engine::sampling::{Sampler, SamplingParams, TokenCounts};
//! use yirage_hal::{Backend, OpenOptions, reference::Reference};
//!
//! let (device, _) = Reference::new().open(0, &OpenOptions::default())?;
//! let params = SamplingParams { top_p: 0.9, seed: 42, ..SamplingParams::default() }.checked(4)?;
//! let row = [0.1, 2.0, -1.0, 1.5];
//! let counts = TokenCounts::new(&[3, 0]);
//! let sampled = Sampler::new(device, 1).sample(&row, &params, &counts, None, 17)?;
//! assert!([1, 3, 0].contains(&sampled.token));
//! ```
//!
//! This module deliberately knows no tokenizer, no grammar (it is given a mask, which a [`Constraint`] may fill) and no
//! sequence state beside [`TokenCounts`].

mod chain;
mod constraint;
mod counts;
mod error;
mod key;
mod mask;
mod params;
mod restriction;
mod sampler;
mod unused;

pub use chain::{
    Candidates, ChainChoice, ChainParams, DrySettings, DynamicTemperature, MirostatSettings, SamplerChain,
    SamplerChainState, SamplerStage, SequenceBreakers, StageName, TokenCandidate, XtcSettings,
};
pub use constraint::Constraint;
pub use counts::TokenCounts;
pub use error::{ParamError, SampleError};
pub use key::RngKey;
pub use mask::TokenMask;
pub use params::{CheckedParams, SamplingParams};
pub(crate) use restriction::{RequestTokenLists, Restriction};
pub(crate) use sampler::SamplingInFlight;
pub use sampler::{Logits, PositionLogprobs, Sampler, SamplerInput, SamplerOutput, TokenLogprob};
pub use yirage_ir::op::sample::{GREEDY_BELOW, philox4x32_10};
