//! Anthropic's interface.

mod active;
mod answer;
mod history;
pub(crate) mod messages;
