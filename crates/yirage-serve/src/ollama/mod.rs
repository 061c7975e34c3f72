//! ollama's interface. Streams are lines of JSON, and the usual way to answer.

mod active;
mod answer;
mod clock;
pub(crate) mod embed;
pub(crate) mod generate;
mod keep;
pub(crate) mod models;
mod options;
pub(crate) mod registry;
