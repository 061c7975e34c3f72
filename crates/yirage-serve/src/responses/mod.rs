//! OpenAI's responses: conversations as items, and answers that can be kept.

mod active;
mod answer;
mod background;
mod items;
mod output;
pub(crate) mod post;
pub(crate) mod stored;
