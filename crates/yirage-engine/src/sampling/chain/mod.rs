//! Samplers that run on the host, by llama.cpp's definitions and in an order that a request may choose.
//!
//! A request that asks for any of these goes through one chain of [`SamplerStage`]s over its row of logits, in llama.cpp's
//! order or its own; the op on the device takes no part. Each stage is a file and a line of [`SamplerStage::ALL`]; mirostat
//! takes the place of all of them but the temperature, as there. Arithmetic is f64 by a library of software alone, so a
//! token depends on no processor; what is drawn is named by the request's seed, choice and position.
//!
//! This folder deliberately knows no tokenizer: what breaks a sequence is given as tokens ([`SequenceBreakers`]).

mod breakers;
mod candidates;
mod dry;
mod entropy;
mod input;
mod min_p;
mod mirostat;
mod penalties;
mod settings;
mod stage;
mod state;
mod temperature;
mod top_k;
mod top_n_sigma;
mod top_p;
mod typical;
mod xtc;

pub use breakers::SequenceBreakers;
pub use candidates::{Candidates, TokenCandidate};
pub use input::ChainParams;
pub use settings::{DrySettings, DynamicTemperature, MirostatSettings, SamplerChain, StageName, XtcSettings};
pub use stage::SamplerStage;
pub use state::{ChainChoice, SamplerChainState};
