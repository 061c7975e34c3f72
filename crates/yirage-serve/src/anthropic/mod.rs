//! Anthropic's interface.

mod answer;
mod begun;
mod history;
pub(crate) mod messages;
