//! From raw options to what the other crates take.

mod device;
mod encoder;
mod engine;
mod lora;
mod packed;
mod prompt;
mod sampler_chain;
mod sampling;
mod serve;
mod template;

pub(crate) use device::{DeviceSettings, open_options, refused, threads};
pub(crate) use encoder::{EncoderSettings, is_encoder};
pub(crate) use engine::{EngineSettings, precision};
pub(crate) use lora::LoraSettings;
pub(crate) use packed::weight_cache_folder;
pub(crate) use prompt::{PromptSource, read_input};
pub(crate) use sampling::ResolvedSampling;
pub(crate) use serve::{address, prefill_server, seconds, serve, serve_engine};
pub(crate) use template::template;
