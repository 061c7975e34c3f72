//! OpenAI's responses: conversations as items, and answers that can be kept.

mod answer;
mod background;
mod begun;
mod items;
mod output;
pub(crate) mod post;
pub(crate) mod stored;
