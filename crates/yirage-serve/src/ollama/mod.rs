//! ollama's interface. Streams are lines of JSON, and the usual way to answer.

mod answer;
mod asked;
mod begun;
mod clock;
pub(crate) mod embed;
pub(crate) mod generate;
mod keep;
pub(crate) mod models;
pub(crate) mod registry;
