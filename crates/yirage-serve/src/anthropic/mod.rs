//! Anthropic's interface.

mod active;
mod answer;
mod blocks;
mod history;
pub(crate) mod messages;
