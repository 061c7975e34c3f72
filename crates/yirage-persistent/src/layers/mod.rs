//! Layers: one file each kind, with its methods, what they check, and the ops that they become.
//!
//! Layers know nothing of requests and devices.

mod allreduce;
mod attention;
mod choose;
mod embed;
mod experts;
mod float8;
mod gated;
mod latent;
mod linear;
mod lookup;
mod norm;
mod plain;
mod unsupported;

pub(crate) use allreduce::ALLREDUCE;
pub use attention::AttentionInputs;
pub use experts::Routing;
pub use latent::LatentAttention;
pub use unsupported::missing_layer;
