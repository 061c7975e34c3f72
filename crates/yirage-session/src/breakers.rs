//! What breaks repetitions for the sampler `dry`: texts of requests as tokens of the model, the last ones kept.

use crate::texts::TextProcessor;
use std::sync::{Arc, Mutex, PoisonError};
use yirage_engine::Request;
use yirage_engine::sampling::SequenceBreakers;
use yirage_model::tokenizer::EncodeOptions;

/// The breakers that were asked for last: finding them looks at every token of the vocabulary.
#[derive(Default)]
pub(crate) struct BreakerCache {
    last: Mutex<Option<(Vec<String>, Arc<SequenceBreakers>)>>,
}

impl BreakerCache {
    /// Puts the tokens of the request's breakers into it. Without a tokenizer there are none.
    pub(crate) fn fill(&self, request: &mut Request, vocabulary: u32, texts: Option<&TextProcessor>) {
        let dry = &mut request.sampling.chain.dry;
        let Some(texts) = texts.filter(|_| dry.multiplier != 0.0 && !dry.sequence_breakers.is_empty()) else { return };
        let mut last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        let (_, breakers) = match last.take().filter(|(of, _)| *of == dry.sequence_breakers) {
            Some(known) => last.insert(known),
            None => {
                last.insert((dry.sequence_breakers.clone(), Arc::new(found(&dry.sequence_breakers, vocabulary, texts))))
            }
        };
        dry.breakers = breakers.clone();
    }
}

fn found(breakers: &[String], vocabulary: u32, texts: &TextProcessor) -> SequenceBreakers {
    let word = |token| texts.tokenizer.token_bytes(token).unwrap_or_default().into_owned();
    let options = EncodeOptions { add_special: false, parse_special: false };
    // Half a character has no tokens, and so ends a breaker.
    let tokens = |text: &[u8]| {
        let text = std::str::from_utf8(text).unwrap_or_default();
        texts.tokenizer.encode(text, options).unwrap_or_default()
    };
    SequenceBreakers::of_texts(breakers, vocabulary, word, tokens)
}
