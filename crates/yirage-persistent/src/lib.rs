//! Persistent kernels: a model built of layer methods, compiled, and run until all of its requests have ended.
//!
//! ```text
//! tensors + layer methods ─▶ KernelBuilder ─▶ compile ─▶ PersistentKernel ─▶ call: steps until everything has ended
//!                                         └─▶ test mode: the layers once, with their outputs
//! ```
//! The interface is that of Mirage's PersistentKernel (Cheng et al., arXiv 2512.22219): its layer methods, its metadata
//! tensors, its prompt lookup. The layers become a graph, and the engine runs it: its scheduler batches requests
//! continuously and prefills in chunks, its cache has pages. There is no second loop.
//!
//! This crate knows no Python and no vendor. What a caller asks for that means nothing here is told
//! once, as a [`KernelNotice`].
#![forbid(unsafe_code)]

mod builder;
mod bytes;
mod caches;
mod config;
mod declaration;
mod elements;
mod emit;
mod error;
mod float8;
mod grid;
mod kernel;
mod layer;
mod layers;
mod limits;
mod load;
mod lookup;
mod meta;
mod models;
mod notice;
mod origin;
mod pass;
mod processes;
mod ranks;
mod sampling_mode;
mod saved;
mod tensor;
mod test_mode;
mod wire;

pub use builder::KernelBuilder;
pub use bytes::{Owner, SharedBytes};
pub use caches::AppendedRows;
pub use config::{KernelConfig, KernelMode, PromptLookup};
pub use elements::KernelDType;
pub use error::PersistentError;
pub use grid::{GridDims, LaunchDims};
pub use kernel::{CallReport, EndedRequest, PersistentKernel};
pub use layers::{AttentionInputs, LatentAttention, Routing, missing_layer};
pub use lookup::{find_ngram, verify_greedy};
pub use meta::{MetaData, MetaTensor, MetaTensors};
pub use notice::KernelNotice;
pub use pass::TestValues;
pub use ranks::name_of_rank;
pub use tensor::{KernelTensor, TensorId};
pub use test_mode::{TestOutput, TestPass};
