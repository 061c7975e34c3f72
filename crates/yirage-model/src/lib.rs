//! Models on disk: safetensors, GGUF, configurations, architectures, tokenizers, chat templates.
#![forbid(unsafe_code)]

pub mod arch;
pub mod chat;
pub mod checkpoint;
pub mod config;
mod decode;
pub mod error;
pub mod flaw;
pub mod gguf;
pub mod gguf_config;
pub mod limits;
pub mod lint;
pub mod lora;
mod low_rank;
pub mod rope;
pub mod safetensors;
pub mod tensor_names;
pub mod tokenizer;
pub mod weights;

pub use checkpoint::{Checkpoint, CheckpointKind, StoredType, TensorInfo, TensorOverride};
pub use config::{ContextLimit, FrequencyDivisors, GenerationConfig, LayerType, RawConfig, RopeConfig, RopeScaling};
pub use decode::DecodedTensors;
pub use error::ModelError;
pub use gguf_config::GgufConfig;
pub use lora::LoraAdapter;
