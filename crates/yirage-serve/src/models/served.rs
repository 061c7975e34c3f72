//! What a model can do for clients.

use super::Generator;
use yirage_session::TextEncoder;

/// A model that is loaded.
pub enum Served {
    /// It generates text.
    Generator(Box<Generator>),
    /// It gives vectors or scores of texts.
    Encoder(Box<TextEncoder>),
}

impl Served {
    /// Bytes that it takes.
    pub(crate) fn bytes(&self) -> u64 {
        match self {
            Served::Generator(generator) => generator.model().facts().bytes.total(),
            Served::Encoder(encoder) => encoder.facts().bytes.total(),
        }
    }

    /// Tokens of the longest text it takes.
    pub(crate) fn context(&self) -> u32 {
        match self {
            Served::Generator(generator) => generator.model().facts().context,
            Served::Encoder(encoder) => encoder.facts().longest,
        }
    }
}
