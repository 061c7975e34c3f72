//! Anthropic's interface.

mod answer;
mod history;
pub(crate) mod messages;
